#include "core/plugin_note.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include <elf.h>
#include <gtest/gtest.h>

#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The message for a file of these bytes, "ok" if it is a plugin.
std::string verdict(const std::string& bytes) {
  const test::TempDir dir;
  const auto facts = read_plugin_file(dir.write("p.so", bytes));
  return facts.ok() ? "ok" : facts.status().message();
}

// The good fake with some bytes replaced.
template <typename T>
std::string patched(size_t offset, T value) {
  std::string bytes = read_file(test::fake("good"));
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

TEST(PluginNote, ReadsAPlugin) {
  const auto facts = read_plugin_file(test::fake("good"));
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_EQ(facts->note.id, "fake-good");
  EXPECT_EQ(facts->note.version, "1.2.3");
  EXPECT_EQ(facts->note.kind, PluginKind::kOther);
  EXPECT_EQ(facts->note.abi_max_minor, 1u);
  EXPECT_EQ(facts->elf.build_id.size(), 40u);
  EXPECT_FALSE(facts->elf.executable_stack);
  const auto& needed = facts->elf.needed;
  EXPECT_NE(std::find(needed.begin(), needed.end(), "libc.so.6"), needed.end());
}

TEST(PluginNote, SeesAnExecutableStack) {
  const auto facts = read_plugin_file(test::fake("executable_stack"));
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(facts->elf.executable_stack);
}

TEST(PluginNote, NamesFilesThatAreNoPlugin) {
  EXPECT_EQ(verdict(""), "not an ELF file");
  EXPECT_EQ(verdict("#!/bin/sh\necho hello\n"), "not an ELF file");
  EXPECT_EQ(
      verdict("\x7f"
              "ELF"),
      "the ELF header is cut");
  EXPECT_EQ(verdict(patched<uint8_t>(EI_CLASS, ELFCLASS32)), "a 32-bit ELF file, expected 64-bit");
  EXPECT_EQ(
      verdict(patched<uint8_t>(EI_DATA, ELFDATA2MSB)),
      "a big-endian ELF file, expected little-endian");
  EXPECT_EQ(
      verdict(patched<uint16_t>(offsetof(Elf64_Ehdr, e_machine), EM_PPC64)),
      "ELF for ppc64, expected x86-64");
  EXPECT_EQ(
      verdict(patched<uint16_t>(offsetof(Elf64_Ehdr, e_type), ET_REL)),
      "not a shared library (ELF type 1)");
  const auto plain = read_plugin_file("/proc/self/exe");
  EXPECT_FALSE(plain.ok());
  EXPECT_EQ(read_plugin_file("/dev/null").status().message(), "not a regular file");
  EXPECT_EQ(
      read_plugin_file("/nowhere.so").status().message(),
      "cannot be read: No such file or directory");
}

TEST(PluginNote, NamesTablesOutsideOfTheFile) {
  for (const size_t field : {offsetof(Elf64_Ehdr, e_phoff), offsetof(Elf64_Ehdr, e_shoff)}) {
    for (const uint64_t offset : {uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 64}) {
      const std::string text = verdict(patched<uint64_t>(field, offset));
      EXPECT_NE(text.find("header table at offset"), std::string::npos) << text;
      EXPECT_NE(text.find("outside of the file"), std::string::npos) << text;
    }
  }
  EXPECT_NE(
      verdict(patched<uint16_t>(offsetof(Elf64_Ehdr, e_phentsize), 8)).find("entries are of 8"),
      std::string::npos);
  EXPECT_NE(
      verdict(patched<uint16_t>(offsetof(Elf64_Ehdr, e_shnum), 0xffff)).find("65535 entries"),
      std::string::npos);
}

// Whatever single byte is broken and wherever the file is cut: a verdict, no crash (this test earns
// its keep under the sanitizers).
TEST(PluginNote, SurvivesCutAndBrokenFiles) {
  const std::string good = read_file(test::fake("good"));
  const test::TempDir dir;
  Elf64_Ehdr header = {};
  std::memcpy(&header, good.data(), sizeof header);
  const size_t headers_end = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  for (size_t cut = 0; cut < headers_end; cut += 7) {
    EXPECT_FALSE(read_plugin_file(dir.write("cut.so", good.substr(0, cut))).ok());
  }
  const auto broken = dir.write("broken.so", good);
  std::fstream file(broken, std::ios::binary | std::ios::in | std::ios::out);
  for (size_t at = 0; at < headers_end + 512; ++at) {
    const auto put = [&](char byte) {
      file.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
    };
    put(static_cast<char>(good[at] ^ 0xff));
    const auto facts = read_plugin_file(broken);
    EXPECT_TRUE(facts.ok() || !facts.status().message().empty());
    put(good[at]);
  }
  EXPECT_TRUE(read_plugin_file(broken).ok());
}

constexpr char kGoodNote[] =
    "id=cuda-sm61\nversion=0.1.0\nvendor=Pavo\nlicense=MIT\nabi=0.1-3\nkind=cuda\n"
    "sass=sm_61\nptx=compute_61,compute_90a\ntoolkit=12.4\ndriver_min=12040\nneeds=libcublas.so."
    "12\n";

TEST(PluginNote, ParsesEveryKey) {
  const auto note = parse_plugin_note(std::string(kGoodNote) + "future=1\n" + std::string(3, '\0'));
  ASSERT_TRUE(note.ok()) << note.status().message();
  EXPECT_EQ(note->vendor, "Pavo");
  EXPECT_EQ(note->abi_major, 0u);
  EXPECT_EQ(note->abi_min_minor, 1u);
  EXPECT_EQ(note->abi_max_minor, 3u);
  EXPECT_EQ(note->kind, PluginKind::kCuda);
  ASSERT_EQ(note->sass.size(), 1u);
  EXPECT_EQ(note->sass[0].capability, 61);
  ASSERT_EQ(note->ptx.size(), 2u);
  EXPECT_EQ(note->ptx[1].capability, 90);
  EXPECT_TRUE(note->ptx[1].specific);
  EXPECT_EQ(note->toolkit, 12040);
  EXPECT_EQ(cuda_version_text(note->toolkit), "12.4");
  EXPECT_EQ(note->driver_min, 12040);
  EXPECT_EQ(note->needs, std::vector<std::string>{"libcublas.so.12"});
}

TEST(PluginNote, NamesTheKeyThatIsWrong) {
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string text = kGoodNote;
    text.replace(text.find(from), from.size(), to);
    return parse_plugin_note(text).status().message();
  };
  EXPECT_EQ(replaced("id=cuda-sm61\n", ""), "plugin note: key id is missing");
  EXPECT_NE(replaced("cuda-sm61", "../../x").find("id=../../x, expected"), std::string::npos);
  EXPECT_NE(replaced("0.1-3", "0.3-1").find("abi=0.3-1, expected"), std::string::npos);
  EXPECT_NE(replaced("0.1-3", "1").find("abi=1, expected"), std::string::npos);
  EXPECT_NE(replaced("=sm_61", "=61").find("sass=61, expected"), std::string::npos);
  EXPECT_NE(replaced("=sm_61", "=sm_99999999999").find("sass="), std::string::npos);
  EXPECT_NE(replaced("12.4", "latest").find("toolkit=latest, expected"), std::string::npos);
  EXPECT_NE(replaced("kind=cuda", "kind=tpu").find("kind=tpu, expected"), std::string::npos);
  EXPECT_NE(replaced("12040\n", "-1\n").find("driver_min=-1, expected"), std::string::npos);
  EXPECT_NE(
      replaced("vendor=Pavo", "vendor=\x1b[2J").find("control characters"), std::string::npos);
  EXPECT_NE(replaced("vendor=Pavo", "id=again").find("appears twice"), std::string::npos);
  EXPECT_NE(replaced("vendor=Pavo", "vendor").find("not of the form"), std::string::npos);
  EXPECT_NE(
      replaced("sass=sm_61\nptx=compute_61,compute_90a\n", "").find("neither sass nor ptx"),
      std::string::npos);
}

}  // namespace
}  // namespace pavo

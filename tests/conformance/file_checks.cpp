// L0, before any code runs: the note, the exports, what the dynamic linker is asked for.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include <elf.h>

#include "core/plugin_note.h"
#include "tests/conformance/checks.h"

namespace pavo::conformance {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

template <typename T>
bool read_at(const std::string& bytes, uint64_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    return false;
  }
  std::memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

// Names that the dynamic symbol table defines for others. False if there is none to be read.
bool exported_names(const std::string& bytes, std::vector<std::string>* names) {
  Elf64_Ehdr header;
  if (!read_at(bytes, 0, &header)) {
    return false;
  }
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table;
    Elf64_Shdr strings;
    if (!read_at(bytes, header.e_shoff + i * sizeof table, &table) || table.sh_type != SHT_DYNSYM ||
        !read_at(bytes, header.e_shoff + table.sh_link * sizeof strings, &strings)) {
      continue;
    }
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!read_at(bytes, table.sh_offset + at, &symbol)) {
        return false;
      }
      const bool local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL;
      const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
      const uint64_t name = strings.sh_offset + symbol.st_name;
      if (!local && symbol.st_shndx != SHN_UNDEF && name < bytes.size() &&
          (visibility == STV_DEFAULT || visibility == STV_PROTECTED)) {
        names->emplace_back(bytes.data() + name);
      }
    }
    return true;
  }
  return false;
}

void check_note(Context& context) {
  const auto facts = read_plugin_file(context.options().plugin);
  if (!facts.ok()) {
    context.fault(facts.status().message());
    return;
  }
  const PluginNote& note = facts->note;
  context.expect(
      note.abi_major == PAVO_ABI_MAJOR && note.abi_min_minor <= PAVO_ABI_MINOR &&
          note.abi_max_minor >= PAVO_ABI_MINOR,
      "expected an ABI range that holds " + std::to_string(PAVO_ABI_MAJOR) + "." +
          std::to_string(PAVO_ABI_MINOR));
  context.expect(!note.version.empty(), "expected a version");
  context.expect(!note.license.empty(), "expected a license");
  context.note(note.id + " " + note.version);
}

void check_exports(Context& context) {
  std::vector<std::string> names;
  if (!exported_names(read_file(context.options().plugin), &names)) {
    context.fault("expected a dynamic symbol table, found none");
    return;
  }
  context.expect(
      std::find(names.begin(), names.end(), PAVO_PLUGIN_QUERY_NAME) != names.end(),
      "expected the symbol " PAVO_PLUGIN_QUERY_NAME);
  for (const std::string& name : names) {
    context.expect(
        name == PAVO_PLUGIN_QUERY_NAME,
        "expected no other symbol than " PAVO_PLUGIN_QUERY_NAME ", found " + name +
            "; build with hidden visibility or a version script");
  }
}

void check_stack(Context& context) {
  const auto facts = read_elf_facts(context.options().plugin);
  if (!facts.ok()) {
    context.fault(facts.status().message());
    return;
  }
  context.expect(
      !facts->executable_stack,
      "expected a stack that is not executable; link with -Wl,-z,noexecstack");
}

}  // namespace

std::vector<Check> file_checks() {
  return {
      {"L0.note", "the ELF note says what the plugin is", check_note},
      {"L0.exports", "only " PAVO_PLUGIN_QUERY_NAME " is exported", check_exports},
      {"L0.stack", "no executable stack is asked for", check_stack}};
}

}  // namespace pavo::conformance

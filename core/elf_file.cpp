#include "core/elf_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pavo {
namespace {

// Far above what linkers write; they bound the memory that a hostile file can ask for.
constexpr uint64_t kMaxHeaders = 4096;
constexpr uint64_t kMaxNoteBytes = 1 << 20;
constexpr uint64_t kMaxDynamicBytes = 1 << 20;
constexpr size_t kMaxNotes = 256;
constexpr size_t kMaxNameBytes = 256;

#if defined(__x86_64__)
constexpr uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kOwnMachine = EM_AARCH64;
#else
#error "name this machine's ELF number here"
#endif

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "arm";
    case EM_PPC64:
      return "ppc64";
    case EM_RISCV:
      return "riscv";
    default:
      return "machine " + std::to_string(machine);
  }
}

Status bad(std::string text) {
  return Status(Code::kInvalidFile, std::move(text));
}

class Reader {
 public:
  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  Status open(const std::filesystem::path& path) {
    // Non-blocking, so that a FIFO or a device in the folder cannot stop the program.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info = {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) {
      return Status(Code::kIo, std::string("cannot be read: ") + std::strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
      return bad("not a regular file");
    }
    size_ = static_cast<uint64_t>(info.st_size);
    mtime_ns_ = static_cast<int64_t>(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
    return Status();
  }

  uint64_t size() const { return size_; }
  int64_t mtime_ns() const { return mtime_ns_; }

  Status read(uint64_t offset, uint64_t count, void* out, const char* what) const {
    if (offset > size_ || count > size_ - offset) {
      return bad(
          std::string(what) + " at offset " + std::to_string(offset) + " with " +
          std::to_string(count) + " bytes lies outside of the file of " + std::to_string(size_) +
          " bytes; the file is cut or damaged");
    }
    auto* target = static_cast<char*>(out);
    while (count > 0) {
      const ssize_t got = ::pread(fd_, target, count, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return Status(
            Code::kIo,
            std::string("cannot read ") + what + ": " +
                (got == 0 ? "the file got shorter" : std::strerror(errno)));
      }
      target += got;
      offset += static_cast<uint64_t>(got);
      count -= static_cast<uint64_t>(got);
    }
    return Status();
  }

  template <typename T>
  Result<std::vector<T>> read_table(
      uint64_t offset, uint64_t count, uint64_t entry_bytes, const char* what) const {
    if (count > 0 && entry_bytes != sizeof(T)) {
      return bad(
          std::string(what) + " entries are of " + std::to_string(entry_bytes) +
          " bytes, expected " + std::to_string(sizeof(T)));
    }
    if (count > kMaxHeaders) {
      return bad(
          std::string(what) + " has " + std::to_string(count) + " entries, expected at most " +
          std::to_string(kMaxHeaders));
    }
    std::vector<T> table(count);
    PAVO_RETURN_IF_ERROR(read(offset, count * sizeof(T), table.data(), what));
    return table;
  }

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
  int64_t mtime_ns_ = 0;
};

Result<Elf64_Ehdr> read_header(const Reader& file) {
  Elf64_Ehdr header = {};
  if (file.size() < SELFMAG) {
    return bad("not an ELF file");
  }
  PAVO_RETURN_IF_ERROR(file.read(0, SELFMAG, &header, "ELF magic"));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return bad("not an ELF file");
  }
  if (file.size() < EI_NIDENT) {
    return bad("the ELF header is cut");
  }
  PAVO_RETURN_IF_ERROR(file.read(0, EI_NIDENT, &header, "ELF header"));
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    return bad("a 32-bit ELF file, expected 64-bit");
  }
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return bad("a big-endian ELF file, expected little-endian");
  }
  PAVO_RETURN_IF_ERROR(file.read(0, sizeof header, &header, "ELF header"));
  if (header.e_machine != kOwnMachine) {
    return bad(
        "ELF for " + machine_name(header.e_machine) + ", expected " + machine_name(kOwnMachine));
  }
  if (header.e_type != ET_DYN) {
    return bad("not a shared library (ELF type " + std::to_string(header.e_type) + ")");
  }
  return header;
}

uint64_t padded(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// One area of notes, as a segment or a section gives it. A malformed area ends at its fault: other
// tools write notes too, and theirs are none of our business.
Status collect_notes(
    const Reader& file,
    uint64_t offset,
    uint64_t size,
    uint64_t alignment,
    std::vector<ElfNote>* notes) {
  if (size > kMaxNoteBytes) {
    return bad("notes of " + std::to_string(size) + " bytes, expected at most 1 MiB");
  }
  std::string area(size, '\0');
  PAVO_RETURN_IF_ERROR(file.read(offset, size, area.data(), "notes"));
  const uint64_t unit = alignment == 8 ? 8 : 4;
  uint64_t at = 0;
  while (at <= size && size - at >= sizeof(Elf64_Nhdr) && notes->size() < kMaxNotes) {
    Elf64_Nhdr header = {};
    std::memcpy(&header, area.data() + at, sizeof header);
    const uint64_t name_at = at + sizeof header;
    const uint64_t text_at = at + padded(sizeof header + uint64_t{header.n_namesz}, unit);
    if (text_at > size || header.n_descsz > size - text_at) {
      return Status();
    }
    ElfNote note;
    note.name = area.substr(name_at, header.n_namesz);
    if (!note.name.empty() && note.name.back() == '\0') {
      note.name.pop_back();
    }
    note.type = header.n_type;
    note.description = area.substr(text_at, header.n_descsz);
    notes->push_back(std::move(note));
    at = text_at + padded(header.n_descsz, unit);
  }
  return Status();
}

// File offset of a virtual address, nothing if no loaded segment holds it.
std::optional<uint64_t> file_offset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

Status collect_needed(
    const Reader& file,
    const std::vector<Elf64_Phdr>& segments,
    const Elf64_Phdr& dynamic,
    std::vector<std::string>* needed) {
  if (dynamic.p_filesz > kMaxDynamicBytes) {
    return bad("dynamic section of " + std::to_string(dynamic.p_filesz) + " bytes is too large");
  }
  std::vector<Elf64_Dyn> entries(dynamic.p_filesz / sizeof(Elf64_Dyn));
  PAVO_RETURN_IF_ERROR(file.read(
      dynamic.p_offset, entries.size() * sizeof(Elf64_Dyn), entries.data(), "dynamic section"));
  uint64_t strings = 0;
  uint64_t strings_size = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) {
      break;
    }
    strings = entry.d_tag == DT_STRTAB ? entry.d_un.d_ptr : strings;
    strings_size = entry.d_tag == DT_STRSZ ? entry.d_un.d_val : strings_size;
  }
  const std::optional<uint64_t> table = file_offset(segments, strings);
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) {
      break;
    }
    if (entry.d_tag != DT_NEEDED) {
      continue;
    }
    if (!table || entry.d_un.d_val >= strings_size || *table + entry.d_un.d_val >= file.size()) {
      return bad("the name of a needed library lies outside of the file");
    }
    const uint64_t offset = *table + entry.d_un.d_val;
    const uint64_t count =
        std::min({uint64_t{kMaxNameBytes}, strings_size - entry.d_un.d_val, file.size() - offset});
    std::string name(count, '\0');
    PAVO_RETURN_IF_ERROR(file.read(offset, count, name.data(), "name of a needed library"));
    name.resize(std::min(name.find('\0'), name.size()));
    needed->push_back(std::move(name));
  }
  return Status();
}

void find_build_id(ElfFacts* facts) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const ElfNote& note : facts->notes) {
    if (note.name == "GNU" && note.type == NT_GNU_BUILD_ID && note.description.size() <= 64) {
      for (const char c : note.description) {
        facts->build_id += kHex[static_cast<unsigned char>(c) >> 4];
        facts->build_id += kHex[static_cast<unsigned char>(c) & 15];
      }
      return;
    }
  }
}

}  // namespace

Result<ElfFacts> read_elf_facts(const std::filesystem::path& path) {
  Reader file;
  PAVO_RETURN_IF_ERROR(file.open(path));
  PAVO_ASSIGN_OR_RETURN(const Elf64_Ehdr header, read_header(file));
  PAVO_ASSIGN_OR_RETURN(
      const auto segments,
      file.read_table<Elf64_Phdr>(
          header.e_phoff, header.e_phnum, header.e_phentsize, "program header table"));
  PAVO_ASSIGN_OR_RETURN(
      const auto sections,
      file.read_table<Elf64_Shdr>(
          header.e_shoff, header.e_shnum, header.e_shentsize, "section header table"));

  ElfFacts facts;
  facts.file_bytes = static_cast<int64_t>(file.size());
  facts.mtime_ns = file.mtime_ns();
  facts.executable_stack = true;  // what the system assumes when the file does not say
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_NOTE) {
      PAVO_RETURN_IF_ERROR(
          collect_notes(file, segment.p_offset, segment.p_filesz, segment.p_align, &facts.notes));
    } else if (segment.p_type == PT_GNU_STACK) {
      facts.executable_stack = (segment.p_flags & PF_X) != 0;
    } else if (segment.p_type == PT_DYNAMIC) {
      PAVO_RETURN_IF_ERROR(collect_needed(file, segments, segment, &facts.needed));
    }
  }
  // Some linkers put notes of unknown names into no segment.
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_NOTE) {
      PAVO_RETURN_IF_ERROR(collect_notes(
          file, section.sh_offset, section.sh_size, section.sh_addralign, &facts.notes));
    }
  }
  find_build_id(&facts);
  return facts;
}

}  // namespace pavo

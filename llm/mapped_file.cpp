#include "llm/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mapped_files.h"
#include "llm/message.h"

namespace pavo::llm {
namespace {

// Closes on every path out of open(); the mapping outlives the descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status failed(const char* action, const std::string& path, const std::string& reason) {
  return {Code::kInvalidFile, concat("cannot ", action, " ", quote(path), ": ", reason)};
}

// std::strerror is not required to be thread-safe; this form is.
std::string reason_of(int error) {
  return std::error_code(error, std::generic_category()).message();
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a named pipe without a writer is then refused below instead of hanging here.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) {
    return failed("open", path, reason_of(errno));
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return failed("examine", path, reason_of(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    return failed("read", path, "expected a file, found a directory");
  }
  if (!S_ISREG(info.st_mode)) {
    return failed("read", path, "expected a regular file, found a device, pipe or socket");
  }
  if (info.st_size == 0) {
    return failed("read", path, "the file is empty; the download may be incomplete");
  }
  if (static_cast<uint64_t>(info.st_size) > SIZE_MAX) {
    return failed("read", path, "the file is larger than this program's address space");
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) {
    return failed("map", path, reason_of(errno));
  }
  MappedFile file;
  file.bytes_ = {static_cast<const std::byte*>(address), size};
  add_mapped_file(address, size, path);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    remove_mapped_file(bytes_.data());
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace pavo::llm

#include "core/private_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pavo {
namespace {

namespace fs = std::filesystem;

Status io_error(const fs::path& path, const std::string& what) {
  return Status(Code::kIo, path.string() + ": " + what);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(put > 0 ? static_cast<size_t>(put) : 0);
  }
  return true;
}

}  // namespace

Status make_private_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) {
    return Status();
  }
  PAVO_RETURN_IF_ERROR(make_private_folders(folder.parent_path()));
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return io_error(folder, std::strerror(errno));
  }
  return Status();
}

std::optional<std::string> read_private_file(const fs::path& path, size_t max_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return std::nullopt;
  }
  struct stat info = {};
  const bool fits = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                    info.st_uid == ::geteuid() && static_cast<size_t>(info.st_size) <= max_bytes;
  std::string text(fits ? static_cast<size_t>(info.st_size) : 0, '\0');
  const ssize_t got = fits ? ::read(fd, text.data(), text.size()) : -1;
  ::close(fd);
  if (got < 0) {
    return std::nullopt;
  }
  text.resize(static_cast<size_t>(got));
  return text;
}

Status write_private_file(const fs::path& path, std::string_view text) {
  PAVO_RETURN_IF_ERROR(make_private_folders(path.parent_path()));
  std::string temporary = path.string() + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) {
    return io_error(path, std::strerror(errno));
  }
  const bool written = write_all(fd, text);
  const int error = errno;
  if (::close(fd) != 0 || !written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = written ? errno : error;
    ::unlink(temporary.c_str());
    return io_error(path, std::strerror(reason));
  }
  return Status();
}

}  // namespace pavo

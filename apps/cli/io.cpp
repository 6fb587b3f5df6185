#include "apps/cli/io.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host_api.h"

namespace pavo::cli {

Status StandardOutput::write(std::string_view text) {
  while (!text.empty() && !closed_) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      return Status(Code::kIo, std::string("writing to standard output: ") + std::strerror(errno));
    }
  }
  return Status();
}

void note(const std::string& text) {
  std::string lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines += printable(std::string_view(text).substr(begin, end - begin), text.size()) + "\n";
    begin = end + 1;
  }
  // Nobody is left to be told if this fails.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, lines.data(), lines.size());
}

namespace {

Status read_failure(const std::string& path) {
  return Status(Code::kInvalidFile, "cannot read '" + path + "': " + std::strerror(errno));
}

// A context of the most tokens that there may be, a few bytes each. Endless input ends here.
constexpr size_t kMaxInputBytes = 256 << 20;

Result<std::string> read_descriptor(int descriptor, const std::string& path) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count == 0) {
      return text;
    }
    if (count > 0) {
      text.append(buffer.data(), static_cast<size_t>(count));
      if (text.size() > kMaxInputBytes) {
        return Status(
            Code::kInvalidFile,
            "cannot use '" + path + "': expected at most " + std::to_string(kMaxInputBytes) +
                " bytes, found more; give a part of it");
      }
    } else if (errno != EINTR) {
      return read_failure(path);
    }
  }
}

}  // namespace

Result<std::string> read_all(const std::string& path) {
  if (path == "-") {
    return read_descriptor(STDIN_FILENO, "standard input");
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return read_failure(path);
  }
  Result<std::string> text = read_descriptor(descriptor, path);
  ::close(descriptor);
  return text;
}

namespace {

// Whether a file of a Hub directory may be one that is read with it.
bool is_checkpoint_part(const std::filesystem::path& file) {
  const std::string name = file.filename();
  return file.extension() == ".safetensors" || name.starts_with("model") ||
         name.starts_with("config") || name.starts_with("tokenizer");
}

}  // namespace

Status check_output(
    const std::string& option, const std::string& path, const std::vector<std::string>& others) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return Status();
  }
  const fs::path file = fs::canonical(path, error);
  for (const std::string& other : others) {
    // Links of both kinds are followed; what does not exist is equivalent to nothing.
    const bool is_part =
        is_checkpoint_part(file) && fs::equivalent(file.parent_path(), other, error);
    if (is_part || fs::equivalent(path, other, error)) {
      return Status(
          Code::kInvalidArgument,
          option + ": expected a file to write, found '" + path + "', which belongs to '" + other +
              "' that this command reads or writes; give another name");
    }
  }
  return Status();
}

}  // namespace pavo::cli

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "llm/message.h"
#include "llm/safetensors.h"

namespace pavo::llm {
namespace {

Status failed(const char* action, const std::string& path) {
  const std::string reason = std::error_code(errno, std::generic_category()).message();
  return {Code::kIo, concat("cannot ", action, " ", quote(path), ": ", reason)};
}

// Where the bytes go first, and the name they get once they are whole.
struct Target {
  std::string written;
  std::string final;
};

Target find_target(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_new = fs::symlink_status(path, error).type() == fs::file_type::not_found;
  // Renaming onto /dev/null, a pipe or the link /dev/stdout would replace it: those are written
  // directly, and so is what a link to nowhere names.
  if (!is_new && !fs::is_regular_file(path, error)) {
    return {path, path};
  }
  const fs::path resolved = fs::canonical(path, error);  // a link keeps pointing to the result
  const std::string final = error ? path : resolved.string();
  return {final + ".part" + std::to_string(::getpid()), final};
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    bytes = bytes.subspan(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return true;
}

// Length, JSON, padded with spaces so that the data starts at a multiple of 8.
std::string make_header(const std::string& name, int64_t rows, int64_t columns, size_t data_bytes) {
  const nlohmann::json header = {
      {name, {{"dtype", "F32"}, {"shape", {rows, columns}}, {"data_offsets", {0, data_bytes}}}}};
  // Replacing, since the default handler throws on a name that is not UTF-8.
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

}  // namespace

Status write_safetensors_f32(
    const std::string& path,
    const std::string& name,
    int64_t rows,
    int64_t columns,
    std::span<const float> values) {
  // Sizes are compared by division: the product of two hostile numbers may overflow.
  const uint64_t found = values.size();
  const auto wanted_rows = static_cast<uint64_t>(std::max<int64_t>(rows, 0));
  const auto wanted_columns = static_cast<uint64_t>(std::max<int64_t>(columns, 0));
  const bool fits = wanted_columns == 0
                        ? found == 0
                        : found % wanted_columns == 0 && found / wanted_columns == wanted_rows;
  if (rows < 0 || columns < 0 || !fits) {
    return {
        Code::kInvalidArgument,
        concat(
            "safetensors: expected rows * columns values for [",
            rows,
            ", ",
            columns,
            "], found ",
            values.size())};
  }
  const std::string header = make_header(name, rows, columns, values.size_bytes());
  const Target target = find_target(path);
  const int fd = ::open(target.written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return failed("create", target.written);
  }
  Status status;
  if (!write_all(fd, std::as_bytes(std::span(header))) || !write_all(fd, std::as_bytes(values))) {
    status = failed("write", target.written);
  }
  if (::close(fd) != 0 && status.ok()) {
    status = failed("write", target.written);
  }
  if (target.written == target.final) {
    return status;
  }
  if (status.ok() && ::rename(target.written.c_str(), target.final.c_str()) != 0) {
    status = failed("write", target.final);
  }
  if (!status.ok()) {
    ::unlink(target.written.c_str());
  }
  return status;
}

}  // namespace pavo::llm

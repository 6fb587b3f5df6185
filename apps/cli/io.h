// Files and standard streams of the commands. Text goes to standard output, all else to standard
// error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pavo::cli {

// Writes all of it to standard output at once. A reader that went away (`pavo ... | head`) is no
// error: closed() then says so and later calls do nothing. kIo for other failures (disk full).
class StandardOutput {
 public:
  Status write(std::string_view text);
  bool closed() const { return closed_; }

 private:
  bool closed_ = false;
};

// Lines on standard error, for notes that belong to a run. What could upset a terminal is replaced.
void note(const std::string& text);

// The whole file, or standard input for "-". kInvalidFile names it and the system's reason, or that
// there are more than 256 MiB.
Result<std::string> read_all(const std::string& path);

// For an option that names a file to write, before anything is written: kInvalidArgument if that
// would destroy one of the other files of the command line, or a file of a checkpoint in a folder
// among them. Only what exists can be destroyed; an empty path names nothing.
Status check_output(
    const std::string& option, const std::string& path, const std::vector<std::string>& others);

}  // namespace pavo::cli

// Small files of the program's own, in the user's cache folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pavo {

// Nothing if the file is not there, is larger, is no regular file, or belongs to someone else.
std::optional<std::string> read_private_file(const std::filesystem::path& path, size_t max_bytes);

// Makes a folder and those above it that are missing, for the user alone. kIo.
Status make_private_folders(const std::filesystem::path& folder);

// Replaces the file at once: a reader sees the old or the new text, whole. Makes missing folders,
// for the user alone. kIo.
Status write_private_file(const std::filesystem::path& path, std::string_view text);

}  // namespace pavo

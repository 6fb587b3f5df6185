// Which addresses are mapped files, so that a fault there has the file's name on it. Reading a page
// that is gone (the file was cut, its disk failed) is SIGBUS, which no check beforehand can
// prevent; it would be taken for a crash of the plugin that happened to read. watch_crashes() ends
// the program with exit code 1 and one line instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pavo {

// At most 1024 files at a time; more are not known. Thread-safe.
void add_mapped_file(const void* address, size_t size, const std::string& path);
void remove_mapped_file(const void* address);

// The path (its last 200 bytes) of the file that is mapped there, or NULL. Async-signal-safe.
const char* mapped_file_at(uintptr_t address);

}  // namespace pavo

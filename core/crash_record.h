// Remembers, across processes, which plugin took the program down: a file for each time. The next
// start names the plugin and tries it in a child again; after a second time it is skipped until
// the files are deleted or the plugin is replaced. Contract: docs/faults.md.
#pragma once

#include <filesystem>
#include <string>

#include "core/elf_file.h"

namespace pavo {

struct CrashHistory {
  int strikes = 0;
  std::string last;  // one line: "crashed with SIGSEGV in submit"
};

class CrashRecords {
 public:
  static constexpr int kMaxStrikes = 2;

  // cache_folder: as in RegistryOptions; empty: nothing is remembered.
  explicit CrashRecords(const std::filesystem::path& cache_folder);

  // A replaced file starts with a clean record.
  static std::string key_of(const std::filesystem::path& plugin, const ElfFacts& elf);

  CrashHistory find(const std::string& key) const;
  // What a user deletes to give the plugin another chance; a pattern for the shell.
  std::string files_of(const std::string& key) const;
  void clear(const std::string& key) const;
  // Drops only what loading left behind, since loading has now worked.
  void clear_load_failures(const std::string& key) const;

  // Where this process writes one line when the plugin takes it down (from a signal handler).
  // Makes the folder. Empty if there is none.
  std::filesystem::path crash_file(const std::string& key) const;

 private:
  friend class LoadMarker;
  std::filesystem::path folder_;
};

// A file that is there while a plugin is being loaded. It is locked, so that others see whether
// its process still lives; what a dead process left behind counts as a strike.
class LoadMarker {
 public:
  LoadMarker(const CrashRecords& records, const std::string& key);
  LoadMarker(const LoadMarker&) = delete;
  LoadMarker& operator=(const LoadMarker&) = delete;
  ~LoadMarker();

 private:
  std::filesystem::path file_;
  int fd_ = -1;
};

}  // namespace pavo

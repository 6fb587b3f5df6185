#include "core/crash_record.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/host_api.h"
#include "core/private_file.h"

namespace pavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCrash = ".crash";
constexpr std::string_view kLoading = ".loading";
constexpr size_t kMaxLine = 256;

// No other process or call has this name.
std::string unique_name() {
  static std::atomic<int> counter{0};
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::to_string(::getpid()) + "-" + std::to_string(now.tv_sec) + "-" +
         std::to_string(counter.fetch_add(1));
}

// True if the process that made the marker is gone. One that is just being loaded holds the lock.
bool abandoned(const fs::path& marker) {
  const int fd = ::open(marker.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    return false;
  }
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return !locked;
}

void for_each_file(
    const fs::path& folder,
    const std::string& key,
    const std::function<void(const fs::path&, std::string_view ending)>& visit) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    for (const std::string_view ending : {kCrash, kLoading}) {
      if (name.starts_with(key + ".") && name.ends_with(ending)) {
        visit(it->path(), ending);
      }
    }
  }
}

void remove_file(const fs::path& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
}

}  // namespace

CrashRecords::CrashRecords(const fs::path& cache_folder)
    : folder_(cache_folder.empty() ? fs::path() : cache_folder / "crashes") {}

std::string CrashRecords::key_of(const fs::path& plugin, const ElfFacts& elf) {
  return plugin.stem().string() + "-" +
         hash_text(
             plugin.string() + " " + elf.build_id + " " + std::to_string(elf.file_bytes) + " " +
             std::to_string(elf.mtime_ns));
}

CrashHistory CrashRecords::find(const std::string& key) const {
  CrashHistory history;
  fs::file_time_type newest = fs::file_time_type::min();
  for_each_file(folder_, key, [&](const fs::path& file, std::string_view ending) {
    if (ending == kLoading && !abandoned(file)) {
      return;
    }
    history.strikes += 1;
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(file, error);
    if (!error && time >= newest) {
      newest = time;
      history.last = ending == kLoading
                         ? "ended while loading it"
                         : printable(read_private_file(file, kMaxLine).value_or("crashed in it"));
    }
  });
  return history;
}

std::string CrashRecords::files_of(const std::string& key) const {
  return (folder_ / (key + ".*")).string();
}

void CrashRecords::clear(const std::string& key) const {
  for_each_file(folder_, key, [](const fs::path& file, std::string_view) { remove_file(file); });
}

void CrashRecords::clear_load_failures(const std::string& key) const {
  for_each_file(folder_, key, [](const fs::path& file, std::string_view ending) {
    if (ending == kLoading && abandoned(file)) {
      remove_file(file);
    }
  });
}

fs::path CrashRecords::crash_file(const std::string& key) const {
  if (folder_.empty() || !make_private_folders(folder_).ok()) {
    return {};
  }
  return folder_ / (key + "." + unique_name() + std::string(kCrash));
}

LoadMarker::LoadMarker(const CrashRecords& records, const std::string& key) {
  if (records.folder_.empty() || !make_private_folders(records.folder_).ok()) {
    return;
  }
  const std::string name = key + "." + unique_name();
  const fs::path unlocked = records.folder_ / (name + ".tmp");
  fd_ = ::open(
      unlocked.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (fd_ < 0) {
    return;
  }
  // Locked before it gets the name that counts.
  file_ = records.folder_ / (name + std::string(kLoading));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 || ::rename(unlocked.c_str(), file_.c_str()) != 0) {
    remove_file(unlocked);
    file_.clear();
  }
}

LoadMarker::~LoadMarker() {
  if (!file_.empty()) {
    remove_file(file_);
  }
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

}  // namespace pavo

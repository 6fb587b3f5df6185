#include "core/plugin_search.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "core/system.h"

namespace pavo {
namespace {

namespace fs = std::filesystem;

// Owners whose files this process runs anyway: root, the user, and whoever owns the program (a
// build tree mounted into a container has another owner than the user there).
struct Trust {
  explicit Trust(const fs::path& executable) {
    struct stat info = {};
    if (!executable.empty() && ::stat(executable.c_str(), &info) == 0) {
      program_owner = info.st_uid;
    }
  }
  bool owner(uid_t uid) const { return uid == 0 || uid == ::geteuid() || uid == program_owner; }

  uid_t program_owner = 0;
};

std::string owner_fault(const std::string& what, uid_t uid) {
  return what + " is owned by user " + std::to_string(uid) + ", expected root or user " +
         std::to_string(::geteuid()) + "; change the owner or use another folder";
}

// Empty if nobody but trusted owners can put a file at or above path.
std::string directory_fault(const fs::path& path, const Trust& trust) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    return std::string("cannot be read: ") + std::strerror(errno);
  }
  if (!trust.owner(info.st_uid)) {
    return owner_fault("it", info.st_uid);
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return "it is writable by everybody; run chmod o-w on it";
  }
  for (fs::path above = path.parent_path(); above != above.root_path();
       above = above.parent_path()) {
    // In a sticky folder as /tmp only the owner can rename what lies in it.
    if (::stat(above.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0 &&
        (info.st_mode & S_ISVTX) == 0) {
      return "the folder above, " + above.string() + ", is writable by everybody";
    }
  }
  return {};
}

std::string file_fault(const fs::path& path, const Trust& trust) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    return std::string("cannot be read: ") + std::strerror(errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return "not a regular file";
  }
  if (!trust.owner(info.st_uid)) {
    return owner_fault("the file", info.st_uid);
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return "the file is writable by everybody; run chmod o-w on it";
  }
  const std::string fault = directory_fault(path.parent_path(), trust);
  return fault.empty() ? fault : "its folder " + path.parent_path().string() + ": " + fault;
}

class Search {
 public:
  explicit Search(const PluginPaths& paths) : trust_(paths.executable) {}

  void place(const std::string& entry, PlaceSource source, bool optional) {
    SearchPlace place;
    place.path = entry;
    place.source = source;
    result_.places.push_back(place);
    std::string reason = visit(place.path, optional);
    result_.places.back().searched = reason.empty();
    result_.places.back().reason = std::move(reason);
  }

  void skip(const std::string& entry, PlaceSource source, std::string reason) {
    result_.places.push_back({entry, source, false, std::move(reason)});
  }

  SearchResult take() && { return std::move(result_); }

 private:
  // Returns why the place is not searched, or nothing.
  std::string visit(const fs::path& entry, bool optional) {
    if (!entry.is_absolute()) {
      return "a relative path; plugins are never taken from the current directory, give the "
             "absolute path";
    }
    std::error_code error;
    const fs::path path = fs::canonical(entry, error);
    if (error) {
      return error == std::errc::no_such_file_or_directory && optional
                 ? "does not exist"
                 : "cannot be opened: " + error.message();
    }
    if (!fs::is_directory(path, error)) {
      add(path);
      return {};
    }
    std::string fault = directory_fault(path, trust_);
    return fault.empty() ? list(path) : fault;
  }

  std::string list(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> files;
    fs::directory_iterator it(folder, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      if (it->path().extension() == ".so") {
        files.push_back(it->path());
      }
    }
    if (error) {
      return "cannot be listed: " + error.message();
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      add(file);
    }
    return {};
  }

  void add(const fs::path& file) {
    FoundFile found;
    found.place = result_.places.size() - 1;
    std::error_code error;
    found.path = fs::canonical(file, error);
    if (error) {
      found.path = file;
      found.status = Status(Code::kIo, "cannot be opened: " + error.message());
    } else if (std::string fault = file_fault(found.path, trust_); !fault.empty()) {
      found.status = Status(Code::kInvalidFile, std::move(fault));
    } else if (!seen_.insert(found.path).second) {
      found.status = Status(Code::kInvalidFile, "the same file was found before");
    }
    result_.files.push_back(std::move(found));
  }

  Trust trust_;
  SearchResult result_;
  std::set<fs::path> seen_;
};

std::vector<std::string> split_path_list(std::string_view list) {
  std::vector<std::string> entries;
  while (!list.empty()) {
    const size_t at = std::min(list.find(':'), list.size());
    if (at > 0) {
      entries.emplace_back(list.substr(0, at));
    }
    list.remove_prefix(std::min(at + 1, list.size()));
  }
  return entries;
}

}  // namespace

const char* place_source_name(PlaceSource source) {
  switch (source) {
    case PlaceSource::kCommandLine:
      return "command line";
    case PlaceSource::kEnvironment:
      return "PAVO_PLUGIN_PATH";
    case PlaceSource::kConfig:
      return "config";
    case PlaceSource::kNextToBinary:
      return "next to the program";
    case PlaceSource::kInstallPrefix:
      return "install prefix";
  }
  return "unknown";
}

PluginPaths default_plugin_paths() {
  PluginPaths paths;
  paths.environment = trusted_environment("PAVO_PLUGIN_PATH");
  paths.executable = executable_path();
  return paths;
}

SearchResult search_plugins(const PluginPaths& paths) {
  Search search(paths);
  for (const std::string& entry : paths.command_line) {
    search.place(entry, PlaceSource::kCommandLine, false);
  }
  if (paths.environment) {
    for (const std::string& entry : split_path_list(*paths.environment)) {
      if (elevated_privileges()) {
        search.skip(entry, PlaceSource::kEnvironment, "ignored under elevated privileges");
      } else {
        search.place(entry, PlaceSource::kEnvironment, false);
      }
    }
  }
  for (const std::string& entry : paths.config) {
    search.place(entry, PlaceSource::kConfig, false);
  }
  if (!paths.executable.empty()) {
    const fs::path folder = paths.executable.parent_path();
    search.place(folder / "plugins", PlaceSource::kNextToBinary, true);
    search.place(
        (folder.parent_path() / "lib/pavo/plugins").string(), PlaceSource::kInstallPrefix, true);
  }
  return std::move(search).take();
}

}  // namespace pavo

#include "core/dynamic_library.h"

#include <list>
#include <mutex>
#include <system_error>
#include <utility>

#include <dlfcn.h>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>

#include "core/host_api.h"

namespace pavo {
namespace {

struct OpenLibraries {
  std::mutex mutex;
  std::list<boost::dll::shared_library> list;
};

// Never destroyed, see the header.
OpenLibraries& open_libraries() {
  static auto* const instance = new OpenLibraries();
  return *instance;
}

Status bad(std::string text) {
  return Status(Code::kInvalidFile, std::move(text));
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::filesystem::path& file) {
  namespace mode = boost::dll::load_mode;
  if (!file.is_absolute() && file.has_parent_path()) {
    return bad("expected an absolute path, got " + file.string());
  }
  try {
    boost::dll::shared_library library;
    std::error_code error;
    ::dlerror();
    library.load(
        file,
        error,
        mode::rtld_now | mode::rtld_local |
            (file.is_absolute() ? mode::default_mode : mode::search_system_folders));
    if (error || !library.is_loaded()) {
      // Boost.DLL leaves the linker's own message to be fetched.
      const char* text = ::dlerror();
      return bad(text != nullptr ? printable(text) : error.message());
    }
    OpenLibraries& libraries = open_libraries();
    const std::lock_guard<std::mutex> lock(libraries.mutex);
    libraries.list.push_back(std::move(library));
    return DynamicLibrary(&libraries.list.back());
  } catch (const std::exception& exception) {
    return bad(printable(exception.what()));
  }
}

void* DynamicLibrary::symbol(const char* name) const {
  const auto* library = static_cast<const boost::dll::shared_library*>(handle_);
  try {
    return library->has(name) ? &library->get<char>(name) : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // get() throws for a symbol that is not there
  }
}

}  // namespace pavo

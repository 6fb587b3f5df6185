// Boost.DLL behind three functions. What is opened here stays open until the process ends: plugins
// and drivers have threads and exit handlers that must never lose their code.
#pragma once

#include <filesystem>
#include <string>

#include "core/status.h"

namespace pavo {

class DynamicLibrary {
 public:
  // Binds all symbols now and keeps them local. An absolute path, or a bare name (libcuda.so.1)
  // that is looked up in the system's folders. kInvalidFile with the dynamic linker's message.
  static Result<DynamicLibrary> open(const std::filesystem::path& file);

  // NULL if the symbol is not exported. Function: a function type.
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  explicit DynamicLibrary(const void* handle) : handle_(handle) {}
  void* symbol(const char* name) const;

  const void* handle_ = nullptr;
};

}  // namespace pavo

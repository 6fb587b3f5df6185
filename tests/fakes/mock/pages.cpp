#include "tests/fakes/mock/pages.h"

#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

namespace pavo::mock {
namespace {

thread_local bool visible_scope = false;

uint64_t page_size() {
  static const auto size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

void protect(void* base, uint64_t bytes, int protection) {
  if (::mprotect(base, bytes, protection) != 0) {
    std::abort();  // the mock's own fault: it proves nothing any more
  }
}

}  // namespace

Pages& Pages::instance() {
  static auto* const pages = new Pages();  // outlives whatever still frees at the end
  return *pages;
}

void* Pages::allocate(uint64_t size, uint64_t alignment, bool visible) {
  const uint64_t page = page_size();
  if (size > UINT64_MAX / 2 || alignment > page) {
    return nullptr;
  }
  const uint64_t bytes = (size + page - 1) / page * page;
  void* base = ::mmap(nullptr, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return nullptr;
  }
  if (visible) {
    protect(base, bytes, PROT_READ | PROT_WRITE);
  }
  // As near to the guard page as the alignment allows.
  const uint64_t offset = (bytes - size) / alignment * alignment;
  void* memory = static_cast<char*>(base) + offset;
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_[memory] = {base, bytes, visible ? 1 : 0};
  return memory;
}

void Pages::release(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) {
    std::abort();
  }
  ::munmap(found->second.base, found->second.bytes + page_size());
  blocks_.erase(found);
}

void Pages::open(const void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Block& block = blocks_.at(memory);
  if (block.users++ == 0) {
    protect(block.base, block.bytes, PROT_READ | PROT_WRITE);
  }
}

void Pages::close(const void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Block& block = blocks_.at(memory);
  if (--block.users == 0) {
    protect(block.base, block.bytes, PROT_NONE);
  }
}

VisibleScope::VisibleScope() : outer_(visible_scope) {
  visible_scope = true;
}

VisibleScope::~VisibleScope() {
  visible_scope = outer_;
}

bool VisibleScope::active() {
  return visible_scope;
}

}  // namespace pavo::mock

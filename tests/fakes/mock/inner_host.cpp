// What the CPU plugin inside takes for its host: memory from the mock's pages.
#include "tests/fakes/mock/device.h"
#include "tests/fakes/mock/pages.h"

// The query function of the CPU plugin inside (inner.cpp).
extern "C" int32_t pavo_mock_inner_query(
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error);

namespace pavo::mock {

const pavo_plugin_api* inner_api = nullptr;
const pavo_host_api* host_api = nullptr;

namespace {

void* inner_alloc(void*, uint64_t size, uint64_t alignment) {
  return Pages::instance().allocate(size, alignment, VisibleScope::active());
}

void inner_free(void*, void* memory, uint64_t) {
  Pages::instance().release(memory);
}

void inner_log(void*, int32_t level, const char* message, uint64_t size) {
  host_api->log(host_api->context, level, message, size);
}

}  // namespace

int32_t load_inner(const pavo_host_api* host, pavo_error* error) {
  static const pavo_host_api inner_host = {
      sizeof(pavo_host_api),
      PAVO_ABI_MAJOR,
      PAVO_ABI_MINOR,
      0,
      nullptr,
      inner_alloc,
      inner_free,
      inner_log};
  host_api = host;
  return pavo_mock_inner_query(PAVO_ABI_MAJOR, 0, PAVO_ABI_MINOR, &inner_host, &inner_api, error);
}

}  // namespace pavo::mock

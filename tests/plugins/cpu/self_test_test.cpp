// The parts of the plugin that need no file: a device that opens, computes and closes.
#include <cstdlib>

#include <gtest/gtest.h>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/device.h"

namespace pavo::cpu {
namespace {

int64_t g_live_bytes = 0;

void* alloc(void*, uint64_t size, uint64_t alignment) {
  g_live_bytes += static_cast<int64_t>(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void release(void*, void* memory, uint64_t size) {
  g_live_bytes -= static_cast<int64_t>(size);
  std::free(memory);
}

void log(void*, int32_t, const char* message, uint64_t size) {
  ADD_FAILURE() << std::string(message, size);
}

constexpr pavo_host_api kHost = {
    sizeof(pavo_host_api), PAVO_ABI_MAJOR, PAVO_ABI_MINOR, 0, nullptr, alloc, release, log};

TEST(SelfTest, PassesWithEveryKernelSet) {
  for (const bool reference : {true, false}) {
    for (const int32_t threads : {1, 3}) {
      Options options;
      options.threads = threads;
      options.reference = reference;
      pavo_error error{};
      error.struct_size = sizeof error;
      {
        pavo_device device(kHost, options);
        EXPECT_EQ(self_test(&device, &error), PAVO_OK)
            << std::string(error.message, error.message_size);
      }
      EXPECT_EQ(g_live_bytes, 0);
    }
  }
}

}  // namespace
}  // namespace pavo::cpu

// The door to the device refuses what the plugin's chip cannot launch, dry or not.
#include "kernels/common/launch.h"

#include <gtest/gtest.h>

#include "tests/fakes/cudart.h"

namespace pavo::cuda {
namespace {

constexpr int64_t kSharedLimit = 48 << 10;

void nothing(fakes::KernelParams /*params*/) {}

cudaError_t launch(Launcher& launcher, dim3 grid, dim3 block, size_t shared_bytes) {
  return launcher.launch("nothing", &nothing, grid, block, shared_bytes, fakes::KernelParams{});
}

TEST(LaunchTest, LimitsOfTheChipHold) {
  struct Case {
    dim3 grid, block;
    size_t shared;
    bool fits;
  };
  const Case cases[] = {
      {{1}, {1024}, kSharedLimit, true},
      {{kMaxGridX, 1, 1}, {32, 32, 1}, 0, true},
      {{1, kMaxGridYz, kMaxGridYz}, {1, 1, 64}, 0, true},
      {{1}, {1}, kSharedLimit + 1, false},
      {{1}, {1025}, 0, false},
      {{1}, {33, 32}, 0, false},
      {{1}, {0}, 0, false},
      {{1}, {1, 1, 65}, 0, false},
      {{kMaxGridX + 1}, {1}, 0, false},
      {{1, kMaxGridYz + 1}, {1}, 0, false},
      {{1, 1, kMaxGridYz + 1}, {1}, 0, false}};
  for (const Case& c : cases) {
    Launcher launcher = Launcher::dry(kSharedLimit);
    EXPECT_EQ(
        launch(launcher, c.grid, c.block, c.shared),
        c.fits ? cudaSuccess : cudaErrorInvalidConfiguration)
        << "case " << &c - cases;
    EXPECT_EQ(launcher.launches(), c.fits ? 1 : 0) << "case " << &c - cases;
  }
}

TEST(LaunchTest, EmptyGridIsNoLaunch) {
  Launcher launcher = Launcher::dry(kSharedLimit);
  EXPECT_EQ(launch(launcher, dim3(0), dim3(32), 0), cudaSuccess);
  EXPECT_EQ(launch(launcher, dim3(1, 0), dim3(32), 0), cudaSuccess);
  EXPECT_EQ(launcher.launches(), 0);
}

}  // namespace
}  // namespace pavo::cuda

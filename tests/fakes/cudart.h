// A CUDA runtime without a GPU, linked in place of the real one: what the host side of the CUDA
// plugins is tested with.
//
// It is as late as the rules allow. A stream runs an operation only when something waits for it,
// and then only what that operation depends on, so that a missing wait shows as stale data. Device
// memory is inaccessible (mprotect) except while an operation runs. Every call can be made to fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace pavo::fakes {

struct FakeDevice {
  int major = 6;
  int minor = 1;
  unsigned char uuid_seed = 0;  // bytes of the UUID are seed, seed + 1, ...
  size_t memory_bytes = size_t{64} << 20;
  std::string uuid_hex = {};  // if not empty, the UUID's first bytes; zeros follow
};

// A fake kernel is a host function with this one parameter; it runs when its stream gets there.
struct KernelParams {
  alignas(16) unsigned char bytes[64];
};
using FakeKernel = void (*)(KernelParams);

// Things made and not yet destroyed.
struct Live {
  int64_t device_blocks, host_blocks, streams, events, graphs, executables;
  int64_t total() const {
    return device_blocks + host_blocks + streams + events + graphs + executables;
  }
};

// A kernel that nvcc compiled into this program, and the largest launch of it so far.
struct CompiledKernel {
  std::string name;  // mangled
  int64_t threads = 0;
  int64_t dynamic_shared = 0;
};

namespace cudart {

// Forgets everything. driver_version 0: no driver.
void reset(const std::vector<FakeDevice>& devices, int driver_version = 12080);

// The n-th call from now (counted from 1) returns `code`; after a sticky code all later ones too.
void fail_call(int64_t n, cudaError_t code);
// The next executed kernel ends with this error, which is sticky.
void fail_kernel(cudaError_t code);
// Graphs cannot be captured.
void refuse_capture();

// Queues `body` in the stream as a kernel.
cudaError_t launch(cudaStream_t stream, std::function<void()> body);

int64_t calls();
Live live();
// Kernels executed, and graphs launched.
int64_t kernels_run();
int64_t graph_launches();
std::vector<CompiledKernel> compiled_kernels();

}  // namespace cudart
}  // namespace pavo::fakes

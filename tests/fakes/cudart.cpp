#include "tests/fakes/cudart.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <sys/mman.h>

// The runtime's opaque types.
struct CUgraph_st {
  std::vector<std::function<void()>> ops;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> ops;
};
struct CUstream_st {
  std::deque<std::function<void()>> queue;
  uint64_t queued = 0;
  uint64_t done = 0;
  CUgraph_st* capture = nullptr;
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  uint64_t ticket = 0;
  int looks = 0;  // since it was recorded
};

namespace pavo::fakes {
namespace {

struct State {
  std::recursive_mutex mutex;
  std::vector<FakeDevice> devices;
  int driver_version = 0;
  int64_t calls = 0;
  int64_t fail_at = 0;
  cudaError_t fail_code = cudaSuccess;
  cudaError_t sticky = cudaSuccess;
  cudaError_t kernel_failure = cudaSuccess;
  cudaError_t last_error = cudaSuccess;
  bool refuse_capture = false;
  size_t device_bytes = 0;
  int64_t kernels_run = 0;
  int64_t graph_launches = 0;
  std::map<std::byte*, size_t> device_blocks;
  std::map<std::byte*, size_t> host_blocks;
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::set<CUgraph_st*> graphs;
  std::set<CUgraphExec_st*> executables;
};

State& state() {
  static State& s = *new State;  // outlives static objects that still make calls
  return s;
}

std::map<const void*, CompiledKernel>& compiled_kernels() {
  static auto& kernels = *new std::map<const void*, CompiledKernel>;
  return kernels;
}

bool is_sticky(cudaError_t code) {
  return code == cudaErrorIllegalAddress || code == cudaErrorLaunchFailure;
}

// Begins every counted call: the error to return, if it is to fail.
cudaError_t begin_call() {
  State& s = state();
  if (++s.calls == s.fail_at) {
    s.last_error = s.fail_code;
    s.sticky = is_sticky(s.fail_code) ? s.fail_code : s.sticky;
    return s.fail_code;
  }
  return s.sticky;
}

void protect(int protection) {
  for (const auto& [base, size] : state().device_blocks) {
    mprotect(base, size, protection);
  }
}

void run_op(const std::function<void()>& op) {
  protect(PROT_READ | PROT_WRITE);
  op();
  protect(PROT_NONE);
}

void run_until(CUstream_st* stream, uint64_t ticket) {
  while (stream->done < ticket) {
    const std::function<void()> op = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (state().sticky == cudaSuccess) {
      run_op(op);
    }
    ++stream->done;
  }
}

void enqueue(CUstream_st* stream, std::function<void()> op) {
  if (stream->capture != nullptr) {
    stream->capture->ops.push_back(std::move(op));
    return;
  }
  stream->queue.push_back(std::move(op));
  ++stream->queued;
}

template <typename T>
size_t release(std::map<std::byte*, T>& blocks, void* memory) {
  const auto found = blocks.find(static_cast<std::byte*>(memory));
  if (found == blocks.end()) {
    return 0;
  }
  const size_t size = found->second;
  munmap(memory, size);
  blocks.erase(found);
  return size;
}

void* map_memory(size_t size, int protection) {
  void* memory = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

namespace cudart {

void reset(const std::vector<FakeDevice>& devices, int driver_version) {
  State& s = state();
  const std::lock_guard<std::recursive_mutex> lock(s.mutex);
  s.devices = devices;
  s.driver_version = driver_version;
  s.calls = s.fail_at = s.kernels_run = s.graph_launches = 0;
  s.sticky = s.kernel_failure = s.last_error = cudaSuccess;
  s.refuse_capture = false;
}

void fail_call(int64_t n, cudaError_t code) {
  State& s = state();
  s.fail_at = s.calls + n;
  s.fail_code = code;
}

void fail_kernel(cudaError_t code) {
  state().kernel_failure = code;
}

void refuse_capture() {
  state().refuse_capture = true;
}

int64_t calls() {
  return state().calls;
}

Live live() {
  const State& s = state();
  const auto count = [](const auto& set) { return static_cast<int64_t>(set.size()); };
  return {
      count(s.device_blocks),
      count(s.host_blocks),
      count(s.streams),
      count(s.events),
      count(s.graphs),
      count(s.executables)};
}

int64_t kernels_run() {
  return state().kernels_run;
}

std::vector<CompiledKernel> compiled_kernels() {
  std::vector<CompiledKernel> kernels;
  for (const auto& [function, kernel] : fakes::compiled_kernels()) {
    kernels.push_back(kernel);
  }
  return kernels;
}

int64_t graph_launches() {
  return state().graph_launches;
}

}  // namespace cudart
}  // namespace pavo::fakes

using pavo::fakes::begin_call;
using pavo::fakes::State;
using pavo::fakes::state;

#define FAKE_LOCK     \
  State& s = state(); \
  const std::lock_guard<std::recursive_mutex> fake_lock(s.mutex)
#define FAKE_CALL                                                   \
  FAKE_LOCK;                                                        \
  if (const cudaError_t code = begin_call(); code != cudaSuccess) { \
    return code;                                                    \
  }                                                                 \
  static_cast<void>(s)

namespace pavo::fakes::cudart {

cudaError_t launch(cudaStream_t stream, std::function<void()> body) {
  FAKE_CALL;
  enqueue(stream, [body = std::move(body)] {
    State& now = state();
    ++now.kernels_run;
    if (now.kernel_failure != cudaSuccess) {
      now.sticky = now.kernel_failure;
    } else {
      body();
    }
  });
  return cudaSuccess;
}

}  // namespace pavo::fakes::cudart

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): CUDA's own names.
extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  FAKE_CALL;
  *version = s.driver_version;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  FAKE_CALL;
  if (s.driver_version == 0) {
    return cudaErrorInsufficientDriver;
  }
  *count = static_cast<int>(s.devices.size());
  return s.devices.empty() ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* properties, int ordinal) {
  FAKE_CALL;
  const pavo::fakes::FakeDevice& device = s.devices.at(static_cast<size_t>(ordinal));
  *properties = {};
  properties->major = device.major;
  properties->minor = device.minor;
  properties->multiProcessorCount = 30;
  properties->totalGlobalMem = device.memory_bytes;
  properties->sharedMemPerBlockOptin = size_t{227} << 10;
  properties->l2CacheSize = 3 << 20;
  properties->memoryClockRate = 3615000;
  properties->memoryBusWidth = 384;
  properties->clockRate = 1531000;
  std::strncpy(properties->name, "Fake Card", sizeof properties->name - 1);
  std::string hex = device.uuid_hex;
  hex.resize(32, '0');
  for (int i = 0; i < 16; ++i) {
    const int byte = device.uuid_hex.empty()
                         ? device.uuid_seed + i
                         : std::stoi(hex.substr(static_cast<size_t>(2 * i), 2), nullptr, 16);
    properties->uuid.bytes[i] = static_cast<char>(byte);
  }
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal) {
  FAKE_CALL;
  return ordinal >= 0 && static_cast<size_t>(ordinal) < s.devices.size() ? cudaSuccess
                                                                         : cudaErrorInvalidDevice;
}

cudaError_t cudaGetLastError() {
  FAKE_LOCK;
  return std::exchange(s.last_error, s.sticky);
}

const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
         : code == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress"
                                           : "cudaErrorOther";
}

const char* cudaGetErrorString(cudaError_t /*code*/) {
  return "said by the fake";
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  FAKE_CALL;
  *total = s.devices.at(0).memory_bytes;
  *free = *total - s.device_bytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t size) {
  FAKE_CALL;
  if (size > s.devices.at(0).memory_bytes - s.device_bytes) {
    s.last_error = cudaErrorMemoryAllocation;
    return cudaErrorMemoryAllocation;
  }
  *memory = pavo::fakes::map_memory(size, PROT_NONE);
  s.device_blocks.emplace(static_cast<std::byte*>(*memory), size);
  s.device_bytes += size;
  return cudaSuccess;
}

// What gives something back does it even if it returns an error.
cudaError_t cudaFree(void* memory) {
  FAKE_LOCK;
  s.device_bytes -= pavo::fakes::release(s.device_blocks, memory);
  return begin_call();
}

cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned int /*flags*/) {
  FAKE_CALL;
  *memory = pavo::fakes::map_memory(size, PROT_READ | PROT_WRITE);
  s.host_blocks.emplace(static_cast<std::byte*>(*memory), size);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  FAKE_LOCK;
  pavo::fakes::release(s.host_blocks, memory);
  return begin_call();
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  FAKE_CALL;
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  for (const auto& [base, size] : s.host_blocks) {
    if (address >= base && address < base + size) {
      attributes->type = cudaMemoryTypeHost;
    }
  }
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int /*flags*/) {
  FAKE_CALL;
  *stream = new CUstream_st;
  s.streams.insert(*stream);
  return cudaSuccess;
}

// As in CUDA, what is queued still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  FAKE_LOCK;
  pavo::fakes::run_until(stream, stream->queued);
  s.streams.erase(stream);
  delete stream;
  return begin_call();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAKE_CALL;
  pavo::fakes::run_until(stream, stream->queued);
  return s.sticky;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int /*flags*/) {
  FAKE_CALL;
  pavo::fakes::enqueue(stream, [from = event->stream, ticket = event->ticket] {
    if (from != nullptr) {
      pavo::fakes::run_until(from, ticket);
      pavo::fakes::protect(PROT_READ | PROT_WRITE);  // run_until has closed it
    }
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int /*flags*/) {
  FAKE_CALL;
  *event = new CUevent_st;
  s.events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  FAKE_LOCK;
  s.events.erase(event);
  delete event;
  return begin_call();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAKE_CALL;
  event->stream = stream;
  event->ticket = stream->queued;
  event->looks = 0;
  return cudaSuccess;
}

// Looking once or twice makes nothing run, or tidying up would hide a missing wait; who looks on
// waits.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  FAKE_CALL;
  constexpr int kIdleLooks = 8;
  if (event->stream == nullptr || event->stream->done >= event->ticket) {
    return cudaSuccess;
  }
  if (++event->looks > kIdleLooks) {
    pavo::fakes::run_until(event->stream, event->ticket);
  }
  return s.sticky == cudaSuccess ? cudaErrorNotReady : s.sticky;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAKE_CALL;
  if (event->stream != nullptr) {
    pavo::fakes::run_until(event->stream, event->ticket);
  }
  return s.sticky;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  FAKE_CALL;
  *milliseconds = static_cast<float>(end->ticket - start->ticket) * 0.001f;  // 1 us an operation
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(
    void* dst,
    size_t dst_pitch,
    const void* src,
    size_t src_pitch,
    size_t width,
    size_t height,
    cudaMemcpyKind /*kind*/,
    cudaStream_t stream) {
  FAKE_CALL;
  if (dst_pitch < width || src_pitch < width) {
    return cudaErrorInvalidPitchValue;
  }
  pavo::fakes::enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memcpy(
          static_cast<std::byte*>(dst) + row * dst_pitch,
          static_cast<const std::byte*>(src) + row * src_pitch,
          width);
    }
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* dst, const void* src, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(dst, size, src, size, size, 1, kind, stream);
}

cudaError_t cudaFuncSetAttribute(
    const void* /*kernel*/, cudaFuncAttribute /*what*/, int /*value*/) {
  FAKE_CALL;
  return cudaSuccess;
}

// Kernels that nvcc compiled cannot run here: they are only counted.
cudaError_t cudaLaunchKernel(
    const void* kernel,
    dim3 /*grid*/,
    dim3 block,
    void** values,
    size_t shared,
    cudaStream_t stream) {
  FAKE_CALL;
  pavo::fakes::KernelParams params = {};
  const auto found = pavo::fakes::compiled_kernels().find(kernel);
  const bool compiled = found != pavo::fakes::compiled_kernels().end();
  if (compiled) {
    pavo::fakes::CompiledKernel& record = found->second;
    record.threads = std::max(record.threads, int64_t{block.x} * block.y * block.z);
    record.dynamic_shared = std::max(record.dynamic_shared, static_cast<int64_t>(shared));
  } else {
    std::memcpy(&params, values[0], sizeof params);
  }
  pavo::fakes::enqueue(stream, [kernel, params, compiled] {
    State& now = state();
    ++now.kernels_run;
    if (now.kernel_failure != cudaSuccess) {
      now.sticky = now.kernel_failure;
    } else if (!compiled) {
      reinterpret_cast<pavo::fakes::FakeKernel>(const_cast<void*>(kernel))(params);
    }
  });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  FAKE_CALL;
  if (s.refuse_capture) {
    return cudaErrorNotSupported;
  }
  stream->capture = new CUgraph_st;
  s.graphs.insert(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FAKE_LOCK;
  CUgraph_st* captured = std::exchange(stream->capture, nullptr);
  const cudaError_t code = begin_call();
  if (code != cudaSuccess) {
    s.graphs.erase(captured);
    delete captured;
    *graph = nullptr;
    return code;
  }
  *graph = captured;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  FAKE_LOCK;
  s.graphs.erase(graph);
  delete graph;
  return begin_call();
}

cudaError_t cudaGraphInstantiate(
    cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long /*flags*/) {
  FAKE_CALL;
  *executable = new CUgraphExec_st{graph->ops};
  s.executables.insert(*executable);
  return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(
    cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* /*result*/) {
  FAKE_CALL;
  if (executable->ops.size() != graph->ops.size()) {
    return cudaErrorGraphExecUpdateFailure;
  }
  executable->ops = graph->ops;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  FAKE_LOCK;
  s.executables.erase(executable);
  delete executable;
  return begin_call();
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  FAKE_CALL;
  ++s.graph_launches;
  pavo::fakes::enqueue(stream, [ops = executable->ops] {
    for (const auto& op : ops) {
      op();
    }
  });
  return cudaSuccess;
}

// What the code that nvcc generates calls.
void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}
void __cudaRegisterFunction(
    void** /*handle*/,
    const char* host_function,
    char* device_function,
    const char* /*name*/,
    int /*threads*/,
    uint3* /*tid*/,
    uint3* /*bid*/,
    dim3* /*block*/,
    dim3* /*grid*/,
    int* /*size*/) {
  pavo::fakes::compiled_kernels()[host_function].name = device_function;
}
void __cudaRegisterVar(
    void** /*handle*/,
    char* /*host*/,
    char* /*device*/,
    const char* /*name*/,
    int /*ext*/,
    size_t /*size*/,
    int /*constant*/,
    int /*global*/) {}
cudaError_t __cudaPopCallConfiguration(
    dim3* /*grid*/, dim3* /*block*/, size_t* /*shared*/, void* /*stream*/) {
  return cudaErrorNotSupported;
}
unsigned __cudaPushCallConfiguration(
    dim3 /*grid*/, dim3 /*block*/, size_t /*shared*/, cudaStream_t /*stream*/) {
  return 1;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)

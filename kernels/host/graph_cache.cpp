#include "kernels/host/graph_cache.h"

#include <algorithm>
#include <iterator>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {

GraphCache::~GraphCache() {
  for (const Entry& entry : entries_) {
    cudaGraphExecDestroy(entry.executable);
  }
}

int32_t GraphCache::capture(
    cudaStream_t stream,
    const std::function<int32_t(pavo_error*)>& issue,
    cudaGraph_t* out,
    pavo_error* error) {
  // Other threads of the process may allocate meanwhile: their calls are not forbidden.
  PAVO_CUDA_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const int32_t issued = issue(error);
  const cudaError_t ended = cudaStreamEndCapture(stream, out);  // always, or the stream stays so
  if (issued != PAVO_OK) {
    if (*out != nullptr) {
      cudaGraphDestroy(*out);
      *out = nullptr;
    }
    cudaGetLastError();
    return issued;
  }
  if (ended != cudaSuccess) {
    return fail_cuda(error, ended, "cudaStreamEndCapture", nullptr);
  }
  ++captures_;
  return PAVO_OK;
}

// A full cache gives its oldest executable new addresses, which is cheaper than making one.
cudaError_t GraphCache::make_executable(
    cudaGraph_t graph, const std::vector<std::byte*>& addresses) {
  if (entries_.size() >= kMost) {
    cudaGraphExecUpdateResultInfo result = {};
    Entry& oldest = entries_.back();
    if (cudaGraphExecUpdate(oldest.executable, graph, &result) == cudaSuccess) {
      oldest.addresses = addresses;
      entries_.splice(entries_.begin(), entries_, std::prev(entries_.end()));
      return cudaSuccess;
    }
    cudaGetLastError();
    cudaGraphExecDestroy(oldest.executable);
    entries_.pop_back();
  }
  cudaGraphExec_t executable = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&executable, graph, 0);
  if (code == cudaSuccess) {
    entries_.push_front({addresses, executable});
  }
  return code;
}

int32_t GraphCache::run(
    cudaStream_t stream,
    const std::vector<std::byte*>& addresses,
    const std::function<int32_t(pavo_error*)>& issue,
    pavo_error* error) {
  if (!works_) {
    return issue(error);
  }
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.addresses == addresses;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    cudaGraph_t graph = nullptr;
    const int32_t captured = capture(stream, issue, &graph, error);
    cudaError_t code = cudaSuccess;
    if (captured == PAVO_OK) {
      code = make_executable(graph, addresses);
      cudaGraphDestroy(graph);
    }
    if (captured != PAVO_OK || code != cudaSuccess) {
      // The direct run is the judge: it works, or it says what is wrong.
      cudaGetLastError();
      works_ = false;
      return issue(error);
    }
  }
  PAVO_CUDA_TRY(cudaGraphLaunch(entries_.front().executable, stream));
  ++replays_;
  return PAVO_OK;
}

}  // namespace pavo::cuda

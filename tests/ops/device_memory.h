// Tensors of a test case in device memory, between guard bytes, moved by the plugin's own copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ops/op_case.h"

namespace pavo::test {

class DeviceMemory {
 public:
  explicit DeviceMemory(const Backend& backend);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // In the order of the graph's tensors. `shift` bytes are added to the offset, of weights only
  // where the plugin allows any.
  void add(const HostTensor& tensor, int64_t shift);
  void add_workspace(int64_t size_bytes);

  // Submits and waits. Status of the submit, or of the work.
  int32_t run(pavo_plan* plan, pavo_error* error);

  // Reads everything back into *tensors and returns what changed that should not have.
  std::vector<std::string> read_back(const OpCase& test_case, std::vector<HostTensor>* tensors);

 private:
  struct Block {
    pavo_buffer* buffer = nullptr;
    int64_t offset = 0;             // of the tensor
    int64_t size = 0;               // of the tensor
    std::vector<std::byte> before;  // the whole buffer before the run
    bool packed = false;            // opaque: only its guards are compared
  };

  void allocate(int64_t size, int64_t shift, Block* block);
  void upload(const Block& block);
  void pack(const HostTensor& tensor, Block* block);
  std::vector<std::byte> download(const Block& block);
  void copy(pavo_copy_region region);

  const Backend& backend_;
  pavo_timeline* timeline_ = nullptr;
  uint64_t value_ = 0;  // last one signalled
  std::vector<Block> blocks_;
  Block workspace_;
};

}  // namespace pavo::test

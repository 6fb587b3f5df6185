// One node with its tensors in host memory, asked and launched as the host side does it, but on the
// emulator. Every tensor has an allocation of exactly its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/kernel.h"

namespace pavo::cuda::testing {

class Memory {
 public:
  // `shift`: bytes that the start lies behind a multiple of 256.
  explicit Memory(int64_t bytes, int64_t shift = 0);
  std::byte* data() const { return block_.get() + shift_; }

 private:
  struct Free {
    void operator()(std::byte* block) const { ::operator delete(block, std::align_val_t(256)); }
  };
  std::unique_ptr<std::byte, Free> block_;
  int64_t shift_;
};

// Rows of a file of this type, all values of a size near one; and the same as packed rows.
struct WeightRows {
  std::vector<std::byte> file;
  std::vector<std::byte> packed;
};
WeightRows random_weight(int32_t type, int64_t rows, int64_t columns, std::mt19937& random);
// [rows * columns], as the CPU plugin decodes the file's rows.
std::vector<float> decoded(
    int32_t type, const std::vector<std::byte>& file, int64_t rows, int64_t columns);
std::vector<float> random_values(int64_t count, std::mt19937& random);

// Where rows of an activation lie: `gap` floats between them, `shift` floats before the first.
struct Placing {
  int64_t gap = 0;
  int64_t shift = 0;
};

class NodeFixture {
 public:
  explicit NodeFixture(int32_t op) { node_.op = op; }

  // Each returns the tensor's index, and adds an input.
  uint32_t activation(
      std::vector<int64_t> shape, const std::vector<float>& values, Placing placing = {});
  uint32_t indices(const std::vector<int32_t>& values);
  uint32_t indices(std::vector<int64_t> shape, const std::vector<int32_t>& values);
  // [pages, heads, PAVO_KV_PAGE_ROWS, dims] of these bytes.
  uint32_t pool(int32_t type, std::vector<int64_t> shape, const std::vector<std::byte>& bytes);
  uint32_t weight(
      int32_t type, uint32_t uses, std::vector<int64_t> shape, const std::vector<std::byte>& bytes);
  void absent() { inputs_.push_back(PAVO_NO_TENSOR); }
  // An output of NaN.
  uint32_t output(std::vector<int64_t> shape, Placing placing = {});

  // The output is a tensor that is also an input.
  void output_is(uint32_t tensor) { outputs_.push_back(tensor); }

  template <typename Params>
  void params(Params params) {
    params.struct_size = sizeof params;
    params_.resize(sizeof params);
    std::memcpy(params_.data(), &params, sizeof params);
  }
  // The refusal, or "" if the kernel ran. `launched` gets the variants that did.
  std::string run(const Kernel& kernel, std::vector<std::string>* launched = nullptr);
  // Rows of a tensor without their gaps.
  std::vector<float> values(uint32_t tensor) const;
  const std::byte* data(uint32_t tensor) const { return memory_[tensor].data(); }

  Caps caps;
  pavo_bucket bucket{sizeof(pavo_bucket), 0, 0, 0, 0};

 private:
  uint32_t add(pavo_tensor tensor, int64_t bytes, int64_t shift);

  std::deque<pavo_tensor> tensors_;
  std::vector<Memory> memory_;
  std::vector<uint32_t> inputs_, outputs_;
  std::vector<std::byte> params_;
  pavo_node node_{};
};

}  // namespace pavo::cuda::testing

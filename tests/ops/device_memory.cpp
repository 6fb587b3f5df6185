#include "tests/ops/device_memory.h"

#include <algorithm>

namespace pavo::test {
namespace {

constexpr int64_t kGuard = 256;  // also the largest alignment that a plugin may ask of activations
constexpr std::byte kGuardByte{0xa5};
constexpr int64_t kTimeoutNs = 60'000'000'000;

}  // namespace

DeviceMemory::DeviceMemory(const Backend& backend) : backend_(backend) {
  pavo_error error = empty_error();
  require_ok(
      backend_.api().timeline_create(backend_.device(), &timeline_, &error),
      error,
      "timeline_create");
}

DeviceMemory::~DeviceMemory() {
  for (const Block& block : blocks_) {
    backend_.api().buffer_destroy(block.buffer);
  }
  backend_.api().buffer_destroy(workspace_.buffer);
  backend_.api().timeline_destroy(timeline_);
}

void DeviceMemory::copy(pavo_copy_region region) {
  region.rows = 1;
  const pavo_fence wait = {timeline_, value_};
  const pavo_fence signal = {timeline_, ++value_};
  pavo_error error = empty_error();
  require_ok(
      backend_.api().copy(backend_.device(), &region, 1, &wait, 1, &signal, 1, &error),
      error,
      "copy");
  require_ok(
      backend_.api().timeline_wait(timeline_, value_, kTimeoutNs, &error), error, "timeline_wait");
}

// *block is already where the destructor finds it.
void DeviceMemory::allocate(int64_t size, int64_t shift, Block* block) {
  block->size = size;
  block->offset = kGuard + shift;
  const int64_t total = block->offset + size + kGuard;
  pavo_error error = empty_error();
  require_ok(
      backend_.api().buffer_create(
          backend_.device(), total, PAVO_MEMORY_DEVICE, &block->buffer, &error),
      error,
      "buffer_create");
  block->before.assign(static_cast<size_t>(total), kGuardByte);
}

void DeviceMemory::upload(const Block& block) {
  pavo_copy_region region{};
  region.src_host = block.before.data();
  region.dst = block.buffer;
  region.row_bytes = static_cast<int64_t>(block.before.size());
  copy(region);
}

std::vector<std::byte> DeviceMemory::download(const Block& block) {
  std::vector<std::byte> bytes(block.before.size());
  pavo_copy_region region{};
  region.src = block.buffer;
  region.dst_host = bytes.data();
  region.row_bytes = static_cast<int64_t>(bytes.size());
  copy(region);
  return bytes;
}

// Packs the second half of the rows first: they may come in any order.
void DeviceMemory::pack(const HostTensor& tensor, Block* block) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < tensor.desc.rank; ++i) {
    rows *= tensor.desc.shape[i];
  }
  const int64_t row_bytes = rows == 0 ? 0 : static_cast<int64_t>(tensor.bytes.size()) / rows;
  const pavo_binding target = {block->buffer, block->offset};
  pavo_error error = empty_error();
  const int64_t half = rows / 2;
  for (const auto& [begin, end] : {std::pair{half, rows}, std::pair{int64_t{0}, half}}) {
    require_ok(
        backend_.api().pack(
            backend_.device(),
            &tensor.desc,
            &target,
            tensor.bytes.data() + begin * row_bytes,
            begin,
            end - begin,
            &error),
        error,
        "pack");
  }
  block->packed = true;
}

void DeviceMemory::add(const HostTensor& tensor, int64_t shift) {
  Block& block = blocks_.emplace_back();
  if (tensor.desc.role != PAVO_ROLE_WEIGHT) {
    allocate(static_cast<int64_t>(tensor.bytes.size()), shift, &block);
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), block.before.begin() + block.offset);
    upload(block);
    return;
  }
  pavo_pack_info info{};
  info.struct_size = sizeof info;
  pavo_error error = empty_error();
  require_ok(
      backend_.api().pack_info(backend_.plugin(), backend_.caps(), &tensor.desc, &info, &error),
      error,
      "pack_info");
  allocate(info.size_bytes, info.alignment == 1 ? shift : 0, &block);
  upload(block);
  pack(tensor, &block);
}

void DeviceMemory::add_workspace(int64_t size_bytes) {
  allocate(size_bytes, 0, &workspace_);
  // NaN patterns: a kernel that reads what it has not written shows it.
  std::fill_n(
      workspace_.before.begin() + workspace_.offset,
      static_cast<size_t>(size_bytes),
      std::byte{0xff});
  upload(workspace_);
  workspace_.packed = true;
}

int32_t DeviceMemory::run(pavo_plan* plan, pavo_error* error) {
  std::vector<pavo_binding> bindings;
  for (const Block& block : blocks_) {
    bindings.push_back({block.buffer, block.offset});
  }
  const pavo_fence wait = {timeline_, value_};
  const pavo_fence signal = {timeline_, value_ + 1};
  pavo_submit submit{};
  submit.struct_size = sizeof submit;
  submit.binding_count = static_cast<uint32_t>(bindings.size());
  submit.bindings = bindings.data();
  submit.workspace = {workspace_.buffer, workspace_.offset};
  submit.waits = &wait;
  submit.wait_count = 1;
  submit.signals = &signal;
  submit.signal_count = 1;
  const int32_t code = backend_.api().submit(plan, &submit, error);
  if (code != PAVO_OK) {
    return code;
  }
  ++value_;
  return backend_.api().timeline_wait(timeline_, value_, kTimeoutNs, error);
}

std::vector<std::string> DeviceMemory::read_back(
    const OpCase& test_case, std::vector<HostTensor>* tensors) {
  std::vector<std::string> damage;
  const auto compare = [&](const Block& block,
                           const std::vector<std::byte>& after,
                           int64_t begin,
                           int64_t end,
                           const std::string& what) {
    if (!std::equal(after.begin() + begin, after.begin() + end, block.before.begin() + begin)) {
      damage.push_back(what);
    }
  };
  for (size_t i = 0; i <= blocks_.size(); ++i) {
    const bool is_tensor = i < blocks_.size();
    const Block& block = is_tensor ? blocks_[i] : workspace_;
    const std::string name = is_tensor ? "tensor " + std::to_string(i) : "workspace";
    const std::vector<std::byte> after = download(block);
    const auto total = static_cast<int64_t>(after.size());
    compare(block, after, 0, block.offset, "bytes before " + name);
    compare(block, after, block.offset + block.size, total, "bytes after " + name);
    if (!is_tensor) {
      continue;
    }
    HostTensor tensor = test_case.tensors[i];
    const bool written = tensor.is_output || tensor.desc.role == PAVO_ROLE_KV_POOL;
    if (!written && !block.packed) {
      compare(block, after, block.offset, block.offset + block.size, "input " + name);
    }
    if (!block.packed) {
      std::copy_n(after.begin() + block.offset, tensor.bytes.size(), tensor.bytes.begin());
    }
    tensors->push_back(std::move(tensor));
  }
  return damage;
}

}  // namespace pavo::test

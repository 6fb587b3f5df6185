#include "tests/bench/matmul_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "pavo/plugin_helpers.h"
#include "pavo/quant.h"

#include "tests/quantized.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::bench {
namespace {

using test::empty_error;
using test::require_ok;

constexpr int64_t kTimeoutNs = 120'000'000'000;
constexpr int64_t kPatternRows = 64;             // random rows, repeated: bytes are slow to make
constexpr int64_t kRotationBytes = 512LL << 20;  // of all copies: ten times the largest L2
constexpr int64_t kMostCopies = 16;
constexpr int64_t kCopyBytes = 1LL << 30;
constexpr int64_t kCheckedTokens = 17;
constexpr int kRounds = 5;
constexpr double kRoundS = 0.004;

pavo_tensor tensor(int32_t type, int32_t role, uint32_t uses, int64_t rows, int64_t columns) {
  pavo_tensor result{};
  result.struct_size = sizeof result;
  result.type = type;
  result.role = role;
  result.uses = uses;
  result.rank = 2;
  result.shape[0] = rows;
  result.shape[1] = columns;
  if (role == PAVO_ROLE_ACTIVATION) {
    result.stride[0] = columns * static_cast<int64_t>(sizeof(float));
    result.stride[1] = sizeof(float);
  }
  return result;
}

// Relative error of a dot product of random signs: of its factors, and in f32 that of the sum.
double error_limit(int32_t type, int32_t precision) {
  if (type == PAVO_TYPE_F32 || precision == PAVO_PRECISION_EXACT) {
    return 1e-5;
  }
  return 2 *
         test::factor_error(
             pavo_type_block_values(type) > 1 ? test::Arithmetic::kInt8 : test::Arithmetic::kHalf);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// Tensors: x, then a weight and an output per node; all outputs share one buffer.
struct MatmulDevice::Plan {
  Plan(MatmulDevice& owner, int64_t token_count, int32_t precision)
      : device(owner),
        tokens(token_count),
        x(test::Random().normals(token_count * owner.size_.columns)),
        params{sizeof params, precision} {
    const MatmulSize& size = device.size_;
    const size_t count = device.weights_.size();
    tensors.push_back(tensor(PAVO_TYPE_F32, PAVO_ROLE_ACTIVATION, 0, tokens, size.columns));
    for (size_t i = 0; i < count; ++i) {
      tensors.push_back(
          tensor(size.type, PAVO_ROLE_WEIGHT, PAVO_USE_MATMUL, size.rows, size.columns));
      tensors.push_back(tensor(PAVO_TYPE_F32, PAVO_ROLE_ACTIVATION, 0, tokens, size.rows));
      const auto weight = static_cast<uint32_t>(1 + 2 * i);
      operands.insert(operands.end(), {0u, weight, weight + 1});
    }
    for (const pavo_tensor& t : tensors) {
      tensor_list.push_back(&t);
    }
    for (size_t i = 0; i < count; ++i) {
      nodes.push_back(
          {sizeof(pavo_node),
           pavo_op_matmul,
           i,
           2,
           1,
           &operands[3 * i],
           &operands[3 * i + 2],
           &params,
           sdk::string("bench")});
    }
    for (const pavo_node& node : nodes) {
      node_list.push_back(&node);
    }
    bucket = {sizeof bucket, static_cast<int32_t>(tokens), 1, 0, 0};
    graph = {
        sizeof graph,
        static_cast<uint32_t>(tensor_list.size()),
        tensor_list.data(),
        static_cast<uint32_t>(node_list.size()),
        0,
        node_list.data(),
        &bucket};
  }
  ~Plan() {
    const pavo_plugin_api& api = device.backend_.api();
    api.plan_destroy(plan);
    for (pavo_buffer* buffer : {x_buffer, out_buffer, workspace}) {
      api.buffer_destroy(buffer);
    }
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  pavo_verdict ask() {
    std::vector<pavo_verdict> verdicts(nodes.size());
    std::vector<pavo_verdict*> pointers;
    for (pavo_verdict& verdict : verdicts) {
      verdict.struct_size = sizeof verdict;
      pointers.push_back(&verdict);
    }
    pavo_error error = empty_error();
    const test::Backend& backend = device.backend_;
    require_ok(
        backend.api().query_nodes(
            backend.plugin(), backend.caps(), &graph, pointers.data(), &error),
        error,
        "query_nodes");
    return verdicts.front();
  }

  void prepare() {
    pavo_error error = empty_error();
    pavo_plan_info info{};
    info.struct_size = sizeof info;
    const test::Backend& backend = device.backend_;
    require_ok(
        backend.api().plan_create(backend.device(), &graph, &plan, &info, &error),
        error,
        "plan_create");
    const auto x_bytes = static_cast<int64_t>(x.size() * sizeof(float));
    x_buffer = device.allocate(x_bytes);
    out_buffer = device.allocate(tokens * device.size_.rows * static_cast<int64_t>(sizeof(float)));
    workspace = info.workspace_bytes > 0 ? device.allocate(info.workspace_bytes) : nullptr;
    pavo_copy_region region{};
    region.src_host = x.data();
    region.dst = x_buffer;
    region.row_bytes = x_bytes;
    device.copy(region);
    bindings.push_back({x_buffer, 0});
    for (pavo_buffer* weight : device.weights_) {
      bindings.push_back({weight, 0});
      bindings.push_back({out_buffer, 0});
    }
  }

  MatmulDevice& device;
  int64_t tokens;
  std::vector<float> x;
  pavo_matmul_params params;
  std::vector<pavo_tensor> tensors;
  std::vector<const pavo_tensor*> tensor_list;
  std::vector<uint32_t> operands;
  std::vector<pavo_node> nodes;
  std::vector<const pavo_node*> node_list;
  pavo_bucket bucket{};
  pavo_graph graph{};
  pavo_plan* plan = nullptr;
  pavo_buffer* x_buffer = nullptr;
  pavo_buffer* out_buffer = nullptr;
  pavo_buffer* workspace = nullptr;
  std::vector<pavo_binding> bindings;
};

MatmulDevice::MatmulDevice(const test::BackendConfig& config) : backend_(config) {
  pavo_error error = empty_error();
  require_ok(
      backend_.api().timeline_create(backend_.device(), &timeline_, &error),
      error,
      "timeline_create");
}

MatmulDevice::~MatmulDevice() {
  drop_weights();
  backend_.api().timeline_destroy(timeline_);
}

void MatmulDevice::drop_weights() {
  for (pavo_buffer* buffer : weights_) {
    backend_.api().buffer_destroy(buffer);
  }
  weights_.clear();
}

pavo_buffer* MatmulDevice::allocate(int64_t bytes) {
  pavo_buffer* buffer = nullptr;
  pavo_error error = empty_error();
  require_ok(
      backend_.api().buffer_create(backend_.device(), bytes, PAVO_MEMORY_DEVICE, &buffer, &error),
      error,
      "buffer_create");
  return buffer;
}

void MatmulDevice::copy(const pavo_copy_region& wanted) {
  pavo_copy_region region = wanted;
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

double MatmulDevice::copy_bytes_per_s() {
  constexpr int kCopies = 8;
  pavo_buffer* from = allocate(kCopyBytes);
  pavo_buffer* to = allocate(kCopyBytes);
  std::vector<pavo_copy_region> regions(kCopies);
  for (pavo_copy_region& region : regions) {
    region.src = from;
    region.dst = to;
    region.row_bytes = kCopyBytes;
    region.rows = 1;
  }
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    pavo_error error = empty_error();
    const pavo_fence signal = {timeline_, ++value_};
    const auto begin = std::chrono::steady_clock::now();
    require_ok(
        backend_.api().copy(
            backend_.device(), regions.data(), kCopies, nullptr, 0, &signal, 1, &error),
        error,
        "copy");
    require_ok(
        backend_.api().timeline_wait(timeline_, value_, kTimeoutNs, &error),
        error,
        "timeline_wait");
    best = std::max(best, 2.0 * kCopies * kCopyBytes / seconds_since(begin));
  }
  backend_.api().buffer_destroy(from);
  backend_.api().buffer_destroy(to);
  return best;
}

void MatmulDevice::pack(const std::vector<std::byte>& pattern) {
  const pavo_tensor desc =
      tensor(size_.type, PAVO_ROLE_WEIGHT, PAVO_USE_MATMUL, size_.rows, size_.columns);
  pavo_pack_info info{};
  info.struct_size = sizeof info;
  pavo_error error = empty_error();
  require_ok(
      backend_.api().pack_info(backend_.plugin(), backend_.caps(), &desc, &info, &error),
      error,
      "pack_info");
  weight_bytes_ = info.size_bytes;
  const int64_t copies = std::clamp(kRotationBytes / weight_bytes_ + 1, int64_t{2}, kMostCopies);
  for (int64_t i = 0; i < copies; ++i) {
    weights_.push_back(allocate(weight_bytes_));
    if (i > 0) {
      pavo_copy_region region{};
      region.src = weights_.front();
      region.dst = weights_.back();
      region.row_bytes = weight_bytes_;
      copy(region);
      continue;
    }
    const pavo_binding target = {weights_.front(), 0};
    const auto pattern_rows = std::min(kPatternRows * 16, size_.rows);
    for (int64_t row = 0; row < size_.rows; row += pattern_rows) {
      const int64_t count = std::min(pattern_rows, size_.rows - row);
      require_ok(
          backend_.api().pack(
              backend_.device(), &desc, &target, pattern.data(), row, count, &error),
          error,
          "pack");
    }
  }
}

void MatmulDevice::load(const MatmulSize& size) {
  drop_weights();
  size_ = size;
  test::Random random;
  const auto once = test::random_weights(random, size.type, kPatternRows * size.columns);
  std::vector<std::byte> pattern;  // more rows at once, for fewer calls
  for (int i = 0; i < 16; ++i) {
    pattern.insert(pattern.end(), once.begin(), once.end());
  }
  decoded_.resize(static_cast<size_t>(kPatternRows * size.columns));
  for (size_t i = 0; i < decoded_.size(); ++i) {
    decoded_[i] =
        static_cast<float>(test::row_value(size.type, once.data(), static_cast<int64_t>(i)));
  }
  pack(pattern);
}

double MatmulDevice::run_s(const Plan& plan, int times) {
  pavo_error error = empty_error();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    const pavo_fence wait = {timeline_, value_};
    const pavo_fence signal = {timeline_, ++value_};
    pavo_submit submit{};
    submit.struct_size = sizeof submit;
    submit.binding_count = static_cast<uint32_t>(plan.bindings.size());
    submit.bindings = plan.bindings.data();
    submit.workspace = {plan.workspace, 0};
    submit.waits = &wait;
    submit.wait_count = 1;
    submit.signals = &signal;
    submit.signal_count = 1;
    require_ok(backend_.api().submit(plan.plan, &submit, &error), error, "submit");
  }
  require_ok(
      backend_.api().timeline_wait(timeline_, value_, kTimeoutNs, &error), error, "timeline_wait");
  return seconds_since(begin) / (times * static_cast<double>(plan.nodes.size()));
}

void MatmulDevice::check(const Plan& plan, MatmulTime* result) {
  std::vector<float> out(static_cast<size_t>(plan.tokens * size_.rows));
  pavo_copy_region region{};
  region.src = plan.out_buffer;
  region.dst_host = out.data();
  region.row_bytes = static_cast<int64_t>(out.size() * sizeof(float));
  copy(region);
  double wrong = 0;
  double right = 0;
  const int64_t step = std::max<int64_t>(1, plan.tokens / kCheckedTokens);
  for (int64_t t = 0; t < plan.tokens; t += step) {
    std::vector<double> want(kPatternRows);
    for (int64_t r = 0; r < kPatternRows; ++r) {
      for (int64_t k = 0; k < size_.columns; ++k) {
        want[static_cast<size_t>(r)] +=
            double{plan.x[static_cast<size_t>(t * size_.columns + k)]} *
            double{decoded_[static_cast<size_t>(r * size_.columns + k)]};
      }
    }
    for (int64_t row = 0; row < size_.rows; ++row) {
      const double expected = want[static_cast<size_t>(row % kPatternRows)];
      const double got = double{out[static_cast<size_t>(t * size_.rows + row)]};
      wrong += (got - expected) * (got - expected);
      right += expected * expected;
    }
  }
  result->error = std::sqrt(wrong / right);
}

MatmulTime MatmulDevice::measure(int64_t tokens, int32_t precision) {
  MatmulTime result;
  Plan plan(*this, tokens, precision);
  const pavo_verdict verdict = plan.ask();
  result.variant = verdict.variant;
  if (verdict.decision == PAVO_REFUSE) {
    result.refusal = verdict.text;
    return result;
  }
  plan.prepare();
  run_s(plan, 1);  // loads code; the next one captures a graph
  run_s(plan, 2);
  const double once = run_s(plan, 1) * static_cast<double>(plan.nodes.size());
  const int times = std::clamp(static_cast<int>(kRoundS / once), 1, 16);
  std::vector<double> rounds(kRounds);
  for (double& round : rounds) {
    round = run_s(plan, times);
  }
  std::sort(rounds.begin(), rounds.end());
  result.median_s = rounds[rounds.size() / 2];
  result.fastest_s = rounds.front();
  result.error_limit = error_limit(size_.type, precision);
  check(plan, &result);
  return result;
}

}  // namespace pavo::bench

// L1 with a device: opening and closing, memory, packing, lack of memory.
#include <optional>
#include <string>

#include "tests/conformance/checks.h"
#include "tests/conformance/device_queue.h"
#include "tests/conformance/plugin_under_test.h"
#include "tests/conformance/process_state.h"
#include "tests/random.h"

namespace pavo::conformance {
namespace {

int64_t used_bytes(const Backend& backend) {
  pavo_memory_info info{};
  info.struct_size = sizeof info;
  pavo_error error = test::empty_error();
  require_ok(backend.api().device_memory(backend.device(), &info, &error), error, "device_memory");
  return info.used_bytes;
}

void check_cycles(Context& context) {
  constexpr int kCycles = 10;
  const auto cycle = [&] {
    const Backend backend(context.config());
    const Memory memory(backend, 1000);
    Queue queue(backend);
    queue.upload(std::vector<std::byte>(1000), memory);
  };
  cycle();  // for what is made once and kept
  cycle();
  const ProcessState before = ProcessState::now();
  const int64_t bytes = test::live_host_bytes();
  for (int i = 0; i < kCycles; ++i) {
    cycle();
  }
  context.expect(
      test::live_host_bytes() == bytes,
      "expected all host memory to be given back, missing " +
          std::to_string(test::live_host_bytes() - bytes) + " bytes");
  const ProcessState after = ProcessState::now();
  context.expect(
      after.threads <= before.threads,
      "expected device_close to end threads, " + std::to_string(after.threads - before.threads) +
          " are left");
  context.expect(
      after.open_files.size() <= before.open_files.size(),
      "expected device_close to close files, " +
          std::to_string(after.open_files.size() - before.open_files.size()) + " are left open");
}

// The first case that it accepts, at its base sizes.
std::optional<test::OpCase> first_accepted(const Backend& backend, uint64_t seed) {
  test::Random random(seed);
  for (const OpName& op : all_ops()) {
    for (const Family& family : families_of(op.op)) {
      test::OpCase test_case = family.make(random, base_sizes(family));
      const test::CaseGraph graph(test_case);
      pavo_verdict verdict{};
      verdict.struct_size = sizeof verdict;
      pavo_verdict* const verdicts[] = {&verdict};
      pavo_error error = test::empty_error();
      const int32_t code = backend.api().query_nodes(
          backend.plugin(), backend.caps(), &graph.graph, verdicts, &error);
      if (code == PAVO_OK && verdict.decision != PAVO_REFUSE) {
        return test_case;
      }
    }
  }
  return std::nullopt;
}

void check_self_test(Context& context) {
  const Backend backend(context.config());
  pavo_error error = poisoned_error();
  const int32_t code = backend.api().device_self_test(backend.device(), &error);
  if (code == PAVO_ERROR_UNSUPPORTED && !first_accepted(backend, context.options().seed)) {
    context.skip("it accepts no node, so there is nothing to test");
  } else if (code != PAVO_OK) {
    context.fault("expected PAVO_OK, found " + checked_error(context, code, error));
  }
}

void check_memory(Context& context) {
  const Backend backend(context.config());
  const int64_t before = used_bytes(backend);
  {
    const Memory one(backend, 1 << 20);
    const Memory two(backend, 4096);
    const Memory none(backend, 0);
    context.expect(
        used_bytes(backend) >= before + (1 << 20) + 4096,
        "expected used_bytes to count two buffers, found " +
            std::to_string(used_bytes(backend) - before) + " more");
  }
  backend.api().buffer_destroy(nullptr);
  context.expect(
      used_bytes(backend) == before, "expected used_bytes to go back when buffers are destroyed");
}

void expect_no_buffer(
    Context& context, const Backend& backend, int64_t size, int32_t kind, int32_t wanted) {
  pavo_buffer* buffer = nullptr;
  pavo_error error = poisoned_error();
  const int32_t code = backend.api().buffer_create(backend.device(), size, kind, &buffer, &error);
  if (context.expect(
          code == wanted,
          "expected code " + std::to_string(wanted) + ", found " + std::to_string(code))) {
    checked_error(context, code, error);
    context.expect(buffer == nullptr, "expected the output to be untouched");
  } else if (code == PAVO_OK) {
    backend.api().buffer_destroy(buffer);
  }
}

void check_bad_buffers(Context& context) {
  const Backend backend(context.config());
  context.stage("a negative size");
  expect_no_buffer(context, backend, -1, PAVO_MEMORY_DEVICE, PAVO_ERROR_INVALID_ARGUMENT);
  context.stage("an unknown kind of memory");
  expect_no_buffer(context, backend, 100, 77, PAVO_ERROR_INVALID_ARGUMENT);
  for (const int64_t size : {int64_t{1} << 50, INT64_MAX}) {
    context.stage(std::to_string(size) + " bytes");
    expect_no_buffer(context, backend, size, PAVO_MEMORY_DEVICE, PAVO_ERROR_OUT_OF_MEMORY);
  }
  context.stage("after that");
  const Memory memory(backend, 100);
  Queue(backend).upload(std::vector<std::byte>(100), memory);
}

// The n-th allocation of host memory fails, for every n of a small life: a copy, and a node from
// its plan to its result.
void check_no_host_memory(Context& context) {
  std::optional<test::OpCase> work;
  {
    const Backend backend(context.config());
    work = first_accepted(backend, context.options().seed);
  }
  const auto life = [&] {
    const Backend backend(context.config());
    const Memory memory(backend, 1000);
    Queue(backend).upload(std::vector<std::byte>(1000), memory);
    if (work) {
      const test::OpRun run = test::run_case(backend, *work);
      if (run.code != PAVO_OK) {
        throw test::StatusError(run.code, run.message);
      }
      context.expect(run.damage.empty(), "expected a run to write nothing else");
    }
  };
  life();
  const int64_t bytes = test::live_host_bytes();
  int64_t n = 1;
  for (; n < 1000; ++n) {
    context.stage("allocation " + std::to_string(n));
    test::fail_host_alloc(n);
    try {
      life();
    } catch (const test::StatusError& error) {
      context.expect(
          error.code == PAVO_ERROR_OUT_OF_MEMORY,
          std::string("expected PAVO_ERROR_OUT_OF_MEMORY, found ") + error.what());
    }
    const bool reached = test::host_alloc_failed();
    test::fail_host_alloc(0);
    context.expect(
        test::live_host_bytes() == bytes, "expected what was allocated before to be given back");
    if (!reached) {
      break;
    }
  }
  context.stage("after that");
  life();
  context.note(std::to_string(n - 1) + " allocations failed in turn");
}

std::vector<std::byte> matmul_rows() {
  return std::vector<std::byte>(4 * 8 * sizeof(float), std::byte{0});
}

void check_bad_packs(Context& context) {
  const Backend backend(context.config());
  const std::vector<std::byte> rows = matmul_rows();
  const test::HostTensor weight = test::weight(PAVO_TYPE_F32, {4, 8}, rows, PAVO_USE_MATMUL);
  pavo_pack_info info{};
  info.struct_size = sizeof info;
  pavo_error error = poisoned_error();
  const int32_t known =
      backend.api().pack_info(backend.plugin(), backend.caps(), &weight.desc, &info, &error);
  if (known != PAVO_OK) {
    checked_error(context, known, error);
    context.skip("it packs no f32 weight of matmul");
    return;
  }
  context.expect(info.size_bytes >= 0, "expected a size of at least 0");
  context.expect(
      info.alignment > 0 && info.alignment <= 4096 && (info.alignment & (info.alignment - 1)) == 0,
      "expected a power of two up to 4096 as alignment, found " + std::to_string(info.alignment));
  const Memory memory(backend, info.size_bytes);
  const std::pair<int64_t, int64_t> ranges[] = {{-1, 1}, {0, 5}, {4, 1}, {0, -1}, {INT64_MAX, 1}};
  for (const auto& [begin, count] : ranges) {
    context.stage("rows " + std::to_string(count) + " from " + std::to_string(begin) + " of 4");
    const pavo_binding target = {memory.get(), 0};
    error = poisoned_error();
    const int32_t code = backend.api().pack(
        backend.device(), &weight.desc, &target, rows.data(), begin, count, &error);
    if (context.expect(
            code == PAVO_ERROR_INVALID_ARGUMENT,
            "expected PAVO_ERROR_INVALID_ARGUMENT, found code " + std::to_string(code))) {
      checked_error(context, code, error);
    }
  }
}

}  // namespace

Check on_device(const char* id, const char* rule, void (*body)(Context& context)) {
  return {id, rule, [body](Context& context) {
            if (!context.options().profile.empty()) {
              context.skip("a profile is no device");
            } else if (has_device(context)) {
              body(context);
            }
          }};
}

std::vector<Check> device_checks() {
  return {
      on_device("L1.self_test", "the self-test passes", check_self_test),
      on_device("L1.open_close", "closed devices leave nothing behind", check_cycles),
      on_device("L1.memory", "used_bytes counts what is allocated", check_memory),
      on_device("L1.bad_buffers", "impossible buffers are a status", check_bad_buffers),
      on_device("L1.bad_packs", "rows that a weight does not have are refused", check_bad_packs),
      on_device("L1.host_memory", "lack of host memory is a status", check_no_host_memory)};
}

}  // namespace pavo::conformance

// L1 with a device: opening and closing, memory, copies, timelines, lack of memory.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "pavo/plugin_helpers.h"

#include "tests/conformance/checks.h"
#include "tests/conformance/families.h"
#include "tests/conformance/plugin_under_test.h"
#include "tests/conformance/process_state.h"
#include "tests/random.h"

namespace pavo::conformance {
namespace {

using test::Backend;
using test::require_ok;

constexpr int64_t kTimeoutNs = 20'000'000'000;

// A buffer and a timeline that go with their scope.
class Memory {
 public:
  Memory(const Backend& backend, int64_t size) : backend_(backend), size_(size) {
    pavo_error error = test::empty_error();
    require_ok(
        backend.api().buffer_create(backend.device(), size, PAVO_MEMORY_DEVICE, &buffer_, &error),
        error,
        "buffer_create");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { backend_.api().buffer_destroy(buffer_); }
  pavo_buffer* get() const { return buffer_; }
  int64_t size() const { return size_; }

 private:
  const Backend& backend_;
  int64_t size_;
  pavo_buffer* buffer_ = nullptr;
};

class Queue {
 public:
  explicit Queue(const Backend& backend) : backend_(backend) {
    pavo_error error = test::empty_error();
    require_ok(
        backend.api().timeline_create(backend.device(), &timeline_, &error),
        error,
        "timeline_create");
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { backend_.api().timeline_destroy(timeline_); }

  // Code of the call; the timeline is raised only if it is PAVO_OK.
  int32_t copy(const std::vector<pavo_copy_region>& regions, pavo_error* error) {
    const pavo_fence wait = {timeline_, value_};
    const pavo_fence signal = {timeline_, value_ + 1};
    const int32_t code = backend_.api().copy(
        backend_.device(),
        regions.data(),
        static_cast<uint32_t>(regions.size()),
        &wait,
        1,
        &signal,
        1,
        error);
    value_ += code == PAVO_OK ? 1 : 0;
    return code;
  }
  void must_copy(const pavo_copy_region& region) {
    pavo_error error = test::empty_error();
    require_ok(copy({region}, &error), error, "copy");
    require_ok(wait(value_, kTimeoutNs, &error), error, "timeline_wait");
  }
  int32_t wait(uint64_t value, int64_t timeout_ns, pavo_error* error) {
    return backend_.api().timeline_wait(timeline_, value, timeout_ns, error);
  }
  uint64_t value() const { return value_; }

  void upload(const std::vector<std::byte>& bytes, const Memory& memory) {
    pavo_copy_region region{};
    region.src_host = bytes.data();
    region.dst = memory.get();
    region.rows = 1;
    region.row_bytes = static_cast<int64_t>(bytes.size());
    must_copy(region);
  }
  std::vector<std::byte> download(const Memory& memory) {
    std::vector<std::byte> bytes(static_cast<size_t>(memory.size()));
    pavo_copy_region region{};
    region.src = memory.get();
    region.dst_host = bytes.data();
    region.rows = 1;
    region.row_bytes = memory.size();
    must_copy(region);
    return bytes;
  }

 private:
  const Backend& backend_;
  pavo_timeline* timeline_ = nullptr;
  uint64_t value_ = 0;
};

int64_t used_bytes(const Backend& backend) {
  pavo_memory_info info{};
  info.struct_size = sizeof info;
  pavo_error error = test::empty_error();
  require_ok(backend.api().device_memory(backend.device(), &info, &error), error, "device_memory");
  return info.used_bytes;
}

std::vector<std::byte> noise(test::Random& random, int64_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.integer(0, 255));
  }
  return bytes;
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

bool accepts_anything(const Backend& backend, uint64_t seed) {
  test::Random random(seed);
  for (const OpName& op : all_ops()) {
    for (const Family& family : families_of(op.op)) {
      const test::OpCase test_case = family.make(random, base_sizes(family));
      const test::CaseGraph graph(test_case);
      pavo_verdict verdict{};
      verdict.struct_size = sizeof verdict;
      pavo_verdict* const verdicts[] = {&verdict};
      pavo_error error = test::empty_error();
      const int32_t code = backend.api().query_nodes(
          backend.plugin(), backend.caps(), &graph.graph, verdicts, &error);
      if (code == PAVO_OK && verdict.decision != PAVO_REFUSE) {
        return true;
      }
    }
  }
  return false;
}

void check_self_test(Context& context) {
  const Backend backend(context.config());
  pavo_error error = poisoned_error();
  const int32_t code = backend.api().device_self_test(backend.device(), &error);
  if (code == PAVO_ERROR_UNSUPPORTED && !accepts_anything(backend, context.options().seed)) {
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

// One side of a region: whose bytes, and where.
struct Place {
  int64_t offset = 0;
  int64_t pitch = 0;
};

Place place_in(test::Random& random, int64_t size, int64_t rows, int64_t row_bytes) {
  Place place;
  const int64_t spare = size - rows * row_bytes;
  place.pitch = row_bytes + random.integer(0, rows > 1 ? spare / (2 * rows) : 0);
  const int64_t extent = (rows - 1) * place.pitch + row_bytes;
  place.offset = random.integer(0, size - extent);
  return place;
}

void apply(
    const pavo_copy_region& region,
    const std::vector<std::byte>& src,
    std::vector<std::byte>* dst) {
  for (int64_t row = 0; row < region.rows; ++row) {
    std::memcpy(
        dst->data() + region.dst_offset + row * region.dst_pitch,
        src.data() + region.src_offset + row * region.src_pitch,
        static_cast<size_t>(region.row_bytes));
  }
}

// Strided copies in all directions, against a model of the memory.
void check_copies(Context& context) {
  constexpr int64_t kSize = 5000;
  const Backend backend(context.config());
  test::Random random(context.options().seed);
  Queue queue(backend);
  const Memory device[] = {{backend, kSize}, {backend, kSize}};
  std::vector<std::byte> model[] = {noise(random, kSize), noise(random, kSize)};
  queue.upload(model[0], device[0]);
  queue.upload(model[1], device[1]);
  std::vector<std::byte> host = noise(random, kSize);
  for (int i = 0; i < 60; ++i) {
    pavo_copy_region region{};
    region.rows = random.integer(1, 9);
    region.row_bytes = random.integer(1, i % 2 == 0 ? 300 : 17);
    const Place from = place_in(random, kSize, region.rows, region.row_bytes);
    const Place to = place_in(random, kSize, region.rows, region.row_bytes);
    region.src_offset = from.offset;
    region.src_pitch = from.pitch;
    region.dst_offset = to.offset;
    region.dst_pitch = to.pitch;
    const char* const ways[] = {"host to device", "device to host", "device to device"};
    context.stage(
        std::string(ways[i % 3]) + ", " + std::to_string(region.rows) + " rows of " +
        std::to_string(region.row_bytes) + " bytes, pitches " + std::to_string(from.pitch) +
        " and " + std::to_string(to.pitch));
    std::vector<std::byte> wanted_host = host;
    if (i % 3 == 0) {
      region.src_host = host.data();
      region.dst = device[0].get();
      apply(region, host, &model[0]);
    } else if (i % 3 == 1) {
      region.src = device[1].get();
      region.dst_host = host.data();
      apply(region, model[1], &wanted_host);
    } else {
      region.src = device[0].get();
      region.dst = device[1].get();
      apply(region, model[0], &model[1]);
    }
    queue.must_copy(region);
    context.expect(host == wanted_host, "expected the rows in host memory, found other bytes");
    context.expect(
        queue.download(device[0]) == model[0] && queue.download(device[1]) == model[1],
        "expected the rows in device memory, and nothing else, to be written");
    if (context.failed()) {
      return;
    }
  }
}

// Regions that leave their buffers, in a batch with one that does not: nothing moves.
void check_bad_copies(Context& context) {
  const Backend backend(context.config());
  Queue queue(backend);
  const Memory memory(backend, 100);
  const std::vector<std::byte> before(100, std::byte{7});
  queue.upload(before, memory);
  std::vector<std::byte> host(400, std::byte{9});
  pavo_copy_region good{};
  good.src_host = host.data();
  good.dst = memory.get();
  good.rows = 2;
  good.row_bytes = 10;
  good.src_pitch = good.dst_pitch = 20;
  const std::pair<const char*, void (*)(pavo_copy_region&)> bad[] = {
      {"an offset behind the end", [](pavo_copy_region& r) { r.dst_offset = 101; }},
      {"a row behind the end", [](pavo_copy_region& r) { r.dst_offset = 71; }},
      {"a negative offset", [](pavo_copy_region& r) { r.dst_offset = -1; }},
      {"negative rows", [](pavo_copy_region& r) { r.rows = -1; }},
      {"a negative row size", [](pavo_copy_region& r) { r.row_bytes = -5; }},
      {"rows that overlap", [](pavo_copy_region& r) { r.dst_pitch = 9; }},
      {"an overflow", [](pavo_copy_region& r) { r.rows = INT64_MAX / 4; }},
      {"a side that is not there", [](pavo_copy_region& r) { r.src_host = nullptr; }}};
  for (const auto& [what, change] : bad) {
    context.stage(what);
    pavo_copy_region region = good;
    change(region);
    pavo_error error = poisoned_error();
    const int32_t code = queue.copy({good, region}, &error);
    if (context.expect(
            code == PAVO_ERROR_INVALID_ARGUMENT,
            "expected PAVO_ERROR_INVALID_ARGUMENT, found code " + std::to_string(code))) {
      checked_error(context, code, error);
    }
    context.expect(queue.download(memory) == before, "expected nothing to be written");
  }
  context.stage("no rows");
  pavo_copy_region empty = good;
  empty.rows = 0;
  queue.must_copy(empty);
  context.expect(queue.download(memory) == before, "expected nothing to be written");
}

void check_timeline(Context& context) {
  const Backend backend(context.config());
  Queue queue(backend);
  const Memory memory(backend, 100);
  pavo_error error = poisoned_error();
  context.stage("a value that was not reached");
  const int32_t code = queue.wait(1, 0, &error);
  if (context.expect(
          code == PAVO_ERROR_TIMEOUT,
          "expected PAVO_ERROR_TIMEOUT, found code " + std::to_string(code))) {
    checked_error(context, code, error);
  }
  context.stage("0");
  context.expect(queue.wait(0, 0, &error) == PAVO_OK, "expected a timeline to start at 0");
  context.stage("work after a wait that timed out");
  const std::vector<std::byte> bytes(100, std::byte{3});
  queue.upload(bytes, memory);
  context.expect(queue.download(memory) == bytes, "expected the work to be done");
  context.expect(
      queue.wait(1, 0, &error) == PAVO_OK, "expected values below the present one to be reached");
}

// Work that nobody waited for is done, or given up, when its device is closed.
void check_abandoned_work(Context& context) {
  for (int i = 0; i < 10; ++i) {
    const Backend backend(context.config());
    const Memory memory(backend, 1 << 16);
    Queue queue(backend);
    const std::vector<std::byte> bytes(1 << 16, std::byte{1});
    pavo_copy_region region{};
    region.src_host = bytes.data();
    region.dst = memory.get();
    region.rows = 1;
    region.row_bytes = 1 << 16;
    pavo_error error = test::empty_error();
    require_ok(queue.copy({region}, &error), error, "copy");
    // A host that gives up waits once, for a short time, and then for the end.
    static_cast<void>(queue.wait(queue.value(), 1000, &error));
    require_ok(queue.wait(queue.value(), kTimeoutNs, &error), error, "timeline_wait");
    context.expect(queue.download(memory) == bytes, "expected the work to be done");
  }
}

// The n-th allocation of host memory fails, for every n of a small life.
void check_no_host_memory(Context& context) {
  const auto life = [&] {
    const Backend backend(context.config());
    const Memory memory(backend, 1000);
    Queue(backend).upload(std::vector<std::byte>(1000), memory);
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

std::vector<Check> device_checks() {
  using Body = void (*)(Context&);
  const auto on_device = [](Body body) {
    return [body](Context& context) {
      if (!context.options().profile.empty()) {
        context.skip("a profile is no device");
      } else if (has_device(context)) {
        body(context);
      }
    };
  };
  return {
      {"L1.self_test", "the self-test passes", on_device(check_self_test)},
      {"L1.open_close", "closed devices leave nothing behind", on_device(check_cycles)},
      {"L1.memory", "used_bytes counts what is allocated", on_device(check_memory)},
      {"L1.bad_buffers", "impossible buffers are a status", on_device(check_bad_buffers)},
      {"L1.copies", "copies move the rows, and nothing else", on_device(check_copies)},
      {"L1.bad_copies", "copies outside of a buffer move nothing", on_device(check_bad_copies)},
      {"L1.bad_packs", "rows that a weight does not have are refused", on_device(check_bad_packs)},
      {"L1.timeline", "timelines rise, and waits end", on_device(check_timeline)},
      {"L1.abandon", "a wait that is given up hurts nobody", on_device(check_abandoned_work)},
      {"L1.host_memory", "lack of host memory is a status", on_device(check_no_host_memory)}};
}

}  // namespace pavo::conformance

// L1: copies and timelines.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/checks.h"
#include "tests/conformance/device_queue.h"
#include "tests/conformance/plugin_under_test.h"
#include "tests/random.h"

namespace pavo::conformance {
namespace {

std::vector<std::byte> noise(test::Random& random, int64_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.integer(0, 255));
  }
  return bytes;
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

}  // namespace

std::vector<Check> copy_checks() {
  return {
      on_device("L1.copies", "copies move the rows, and nothing else", check_copies),
      on_device("L1.bad_copies", "copies outside of a buffer move nothing", check_bad_copies),
      on_device("L1.timeline", "timelines rise, and waits end", check_timeline),
      on_device("L1.abandon", "a wait that is given up hurts nobody", check_abandoned_work)};
}

}  // namespace pavo::conformance

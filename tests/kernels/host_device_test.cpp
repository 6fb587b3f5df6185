// Devices, memory, timelines and copies of kernels/host, on the fake runtime.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "kernels/host/device.h"
#include "tests/kernels/fake_plugin.h"

namespace pavo::cuda {
namespace {

namespace cudart = fakes::cudart;

class HostDeviceTest : public FakePluginTest {};

std::vector<unsigned char> numbered(size_t count) {
  std::vector<unsigned char> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<unsigned char>(i * 7 + i / 251);
  }
  return bytes;
}

TEST_F(HostDeviceTest, QueryMakesNoRuntimeCall) {
  const int64_t before = cudart::calls();
  ASSERT_EQ(query_plugin(fake_info(), 0, 0, 9, fake_host(), &api_, &error_), PAVO_OK);
  EXPECT_EQ(api_->abi_minor, PAVO_ABI_MINOR);
  ASSERT_EQ(api_->plugin_create(nullptr, &plugin_, &error_), PAVO_OK);
  EXPECT_EQ(cudart::calls(), before);
}

TEST_F(HostDeviceTest, NoDriverMeansNoDevicesAndNoError) {
  cudart::reset({}, 0);
  EXPECT_EQ(open(), PAVO_ERROR_INVALID_ARGUMENT);  // device 0 does not exist
  uint32_t count = 7;
  ASSERT_EQ(api_->device_count(plugin_, &count, &error_), PAVO_OK);
  EXPECT_EQ(count, 0u);
}

// Of a host full of cards the plugin (6.1, SASS and PTX of toolkit 12.4) serves those that its code
// runs on.
TEST_F(HostDeviceTest, ServesWhatItsCodeRunsOn) {
  const std::vector<fakes::FakeDevice> cards = {
      {6, 0, 0}, {6, 1, 16}, {6, 2, 32}, {7, 0, 48}, {9, 0, 64}};
  const auto served = [&](int driver, int64_t any_device) {
    close();
    cudart::reset(cards, driver);
    EXPECT_EQ(open({{"any_device", any_device}}), PAVO_OK) << message();
    uint32_t count = 0;
    api_->device_count(plugin_, &count, &error_);
    std::vector<int32_t> ordinals;
    for (uint32_t i = 0; i < count; ++i) {
      pavo_device_info info = {};
      info.struct_size = sizeof info;
      api_->device_info(plugin_, i, &info, &error_);
      ordinals.push_back(info.ordinal);
    }
    return ordinals;
  };
  EXPECT_EQ(served(12080, 1), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(served(12080, 0), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(served(12000, 1), (std::vector<int32_t>{1, 2}));  // too old for the PTX
}

TEST_F(HostDeviceTest, IdIsTheUuidAsTheDriverPrintsIt) {
  cudart::reset({{6, 1, 0xa0}});
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_device_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(api_->device_info(plugin_, 0, &info, &error_), PAVO_OK);
  EXPECT_EQ(sdk::view(info.id), "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
  int64_t shared = 0;
  for (uint32_t i = 0; i < info.caps->count; ++i) {
    const pavo_value& value = *info.caps->items[i];
    if (sdk::view(value.key) == PAVO_CAP_SHARED_BYTES_PER_BLOCK) {
      shared = value.int_value;
    }
  }
  EXPECT_EQ(shared, 48 << 10) << "the card has more, but the code is made for less";
}

TEST_F(HostDeviceTest, UnknownDeviceIsNamed) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  const pavo_string id = sdk::string("GPU-no");
  pavo_device* device = nullptr;
  EXPECT_EQ(api_->device_open(plugin_, &id, &device, &error_), PAVO_ERROR_NO_DEVICE);
  EXPECT_NE(message().find("'GPU-no'"), std::string::npos) << message();
}

TEST_F(HostDeviceTest, BudgetIsKeptAndSaidWithNumbers) {
  ASSERT_EQ(open({{"memory_budget_bytes", 10'000'000}}), PAVO_OK) << message();
  ASSERT_NE(buffer(8'000'000), nullptr) << message();
  EXPECT_EQ(buffer(4'000'000), nullptr);
  EXPECT_EQ(error_.code, PAVO_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(error_.device_state, PAVO_DEVICE_STATE_OOM);
  EXPECT_NE(message().find("4000000"), std::string::npos) << message();
  EXPECT_NE(message().find("10000000"), std::string::npos) << message();
  pavo_memory_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(api_->device_memory(device_, &info, &error_), PAVO_OK) << message();
  EXPECT_EQ(info.used_bytes, 8'000'000);  // a multiple of 512
  EXPECT_EQ(info.free_bytes, 2'000'000);
  // Pages of 2 MB: 8,388,608 are gone.
  EXPECT_NE(buffer(1'500'000), nullptr) << message();
}

TEST_F(HostDeviceTest, MemoryInUseAtTheEndIsSaid) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_buffer* kept = nullptr;
  ASSERT_EQ(api_->buffer_create(device_, 1000, PAVO_MEMORY_DEVICE, &kept, &error_), PAVO_OK);
  api_->device_close(std::exchange(device_, nullptr));
  expected_errors_ = {
      "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f: closed with 1024 bytes of device and 0 bytes of "
      "pinned memory in use; buffers must be destroyed before their device"};
  EXPECT_EQ(cudart::live().device_blocks, 1);
  cudaFree(kept->data);
  delete kept;
}

TEST_F(HostDeviceTest, FullDeviceIsAStatus) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  ASSERT_NE(buffer(60 << 20), nullptr) << message();
  EXPECT_EQ(buffer(8 << 20), nullptr);
  EXPECT_EQ(error_.code, PAVO_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(buffer(1 << 20), nullptr) << message();
}

TEST_F(HostDeviceTest, WildSizesAreRefused) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  for (const int64_t size : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(buffer(size), nullptr);
    EXPECT_EQ(error_.code, PAVO_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_NE(buffer(0), nullptr) << message();
}

TEST_F(HostDeviceTest, CopiesEveryKindOfRegionOnce) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  // Larger than two staging halves, rows with gaps, an odd start.
  constexpr int64_t kRows = 3;
  constexpr int64_t kRowBytes = 5'000'001;
  constexpr int64_t kHostPitch = kRowBytes + 13;
  constexpr int64_t kDevicePitch = kRowBytes + 7;
  for (const bool pinned : {false, true}) {
    const std::vector<unsigned char> source = numbered(kRows * kHostPitch);
    std::vector<unsigned char> back(source.size(), 0xee);
    pavo_buffer* device = buffer(kRows * kDevicePitch + 3);
    pavo_buffer* stage = buffer(kRows * kHostPitch, PAVO_MEMORY_HOST);
    ASSERT_NE(device, nullptr) << message();
    ASSERT_NE(stage, nullptr) << message();
    pavo_timeline* line = timeline();
    pavo_copy_region in = {};
    in.dst = device;
    in.dst_offset = 3;
    in.rows = kRows;
    in.row_bytes = kRowBytes;
    in.src_pitch = kHostPitch;
    in.dst_pitch = kDevicePitch;
    pavo_copy_region out = {};
    out.src = device;
    out.src_offset = 3;
    out.rows = kRows;
    out.row_bytes = kRowBytes;
    out.src_pitch = kDevicePitch;
    out.dst_pitch = kHostPitch;
    auto* staged = static_cast<unsigned char*>(api_->buffer_host(stage));
    if (pinned) {
      std::copy(source.begin(), source.end(), staged);
      in.src = stage;
      out.dst = stage;
    } else {
      in.src_host = source.data();
      out.dst_host = back.data();
    }
    ASSERT_EQ(copy({in}, {}, {{line, 1}}), PAVO_OK) << message();
    ASSERT_EQ(wait(line, 1), PAVO_OK) << message();
    if (pinned) {
      std::fill_n(staged, source.size(), static_cast<unsigned char>(0xee));
    }
    ASSERT_EQ(copy({out}, {{line, 1}}, {{line, 2}}), PAVO_OK) << message();
    ASSERT_EQ(wait(line, 2), PAVO_OK) << message();
    const unsigned char* got = pinned ? staged : back.data();
    for (int64_t i = 0; i < kRows * kHostPitch; ++i) {
      const auto at = static_cast<size_t>(i);
      const unsigned char expected = i % kHostPitch < kRowBytes ? source[at] : 0xee;
      ASSERT_EQ(got[at], expected) << "byte " << i << (pinned ? " pinned" : " pageable");
    }
  }
}

// The fake runs a stream only on demand, so without the waits the old bytes would come back.
TEST_F(HostDeviceTest, FencesOrderTheStreams) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_buffer* device = buffer(64);
  pavo_buffer* stage = buffer(128, PAVO_MEMORY_HOST);
  pavo_timeline* line = timeline();
  auto* host = static_cast<unsigned char*>(api_->buffer_host(stage));
  std::iota(host, host + 64, static_cast<unsigned char>(1));
  std::fill_n(host + 64, 64, static_cast<unsigned char>(0));
  pavo_copy_region in = upload(device, 0, nullptr, 64);
  in.src = stage;
  pavo_copy_region out = download(nullptr, device, 0, 64);
  out.dst = stage;
  out.dst_offset = 64;
  ASSERT_EQ(copy({in}, {}, {{line, 5}}), PAVO_OK) << message();
  ASSERT_EQ(copy({out}, {{line, 3}}, {{line, 6}}), PAVO_OK) << message();
  EXPECT_EQ(host[64], 0) << "nothing has waited yet, so nothing should have run";
  ASSERT_EQ(wait(line, 6), PAVO_OK) << message();
  EXPECT_TRUE(std::equal(host, host + 64, host + 64));
}

// Between pinned and pageable memory the CPU copies, after what writes the pinned side.
TEST_F(HostDeviceTest, CopiesOnTheHostWaitForTheirFences) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_buffer* device = buffer(64);
  pavo_buffer* stage = buffer(64, PAVO_MEMORY_HOST);
  pavo_timeline* line = timeline();
  const std::vector<unsigned char> source = numbered(64);
  std::vector<unsigned char> back(64);
  ASSERT_EQ(copy({upload(device, 0, source.data(), 64)}, {}, {{line, 1}}), PAVO_OK) << message();
  pavo_copy_region out = download(nullptr, device, 0, 64);
  out.dst = stage;
  ASSERT_EQ(copy({out}, {{line, 1}}, {{line, 2}}), PAVO_OK) << message();
  ASSERT_EQ(copy({download(back.data(), stage, 0, 64)}, {{line, 2}}, {}), PAVO_OK) << message();
  EXPECT_EQ(back, source);
}

TEST_F(HostDeviceTest, MixedBatchSignalsAfterBothDirections) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_buffer* device = buffer(128);
  pavo_buffer* stage = buffer(192, PAVO_MEMORY_HOST);
  pavo_timeline* line = timeline();
  auto* host = static_cast<unsigned char*>(api_->buffer_host(stage));
  std::iota(host, host + 128, static_cast<unsigned char>(1));
  pavo_copy_region first = upload(device, 0, nullptr, 64);
  first.src = stage;
  ASSERT_EQ(copy({first}, {}, {{line, 1}}), PAVO_OK) << message();
  pavo_copy_region in = upload(device, 64, nullptr, 64);
  in.src = stage;
  in.src_offset = 64;
  pavo_copy_region out = download(nullptr, device, 0, 64);
  out.dst = stage;
  out.dst_offset = 128;
  ASSERT_EQ(copy({in, out}, {{line, 1}}, {{line, 2}}), PAVO_OK) << message();
  ASSERT_EQ(wait(line, 2), PAVO_OK) << message();
  EXPECT_TRUE(std::equal(host, host + 64, host + 128));
}

TEST_F(HostDeviceTest, BadRegionsAndFencesChangeNothing) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_buffer* device = buffer(64);
  pavo_timeline* line = timeline();
  unsigned char bytes[64] = {};
  pavo_copy_region beyond = upload(device, 1, bytes, 64);
  pavo_copy_region overflow = upload(device, 0, bytes, 8);
  overflow.rows = INT64_MAX;
  overflow.src_pitch = overflow.dst_pitch = INT64_MAX;
  pavo_copy_region negative = upload(device, 0, bytes, -8);
  pavo_copy_region overlapping = upload(device, 0, bytes, 16);
  overlapping.rows = 2;
  overlapping.src_pitch = overlapping.dst_pitch = 8;
  pavo_copy_region nothing = upload(device, 0, nullptr, 8);
  for (const pavo_copy_region& region : {beyond, overflow, negative, overlapping, nothing}) {
    EXPECT_EQ(copy({region}, {}, {{line, 1}}), PAVO_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(copy({}, {{line, 4}}, {}), PAVO_ERROR_INVALID_ARGUMENT) << "nobody promises 4";
  EXPECT_EQ(copy({}, {}, {{nullptr, 1}}), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(copy({}, {}, {{line, 1}}), PAVO_OK) << message();
  EXPECT_EQ(copy({}, {}, {{line, 1}}), PAVO_ERROR_INVALID_ARGUMENT) << "1 is promised already";
  EXPECT_EQ(wait(line, 1), PAVO_OK) << message();
}

TEST_F(HostDeviceTest, WaitTimesOutAndWakesUp) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_timeline* line = timeline();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(wait(line, 1, 20'000'000), PAVO_ERROR_TIMEOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
  EXPECT_EQ(wait(line, 1, 0), PAVO_ERROR_TIMEOUT);
  EXPECT_EQ(wait(line, 0, 0), PAVO_OK);
  std::thread later([&] {
    pavo_error error = make_error();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const pavo_fence signal = {line, 1};
    EXPECT_EQ(api_->copy(device_, nullptr, 0, nullptr, 0, &signal, 1, &error), PAVO_OK);
  });
  EXPECT_EQ(wait(line, 1, -1), PAVO_OK) << message();
  later.join();
}

}  // namespace
}  // namespace pavo::cuda

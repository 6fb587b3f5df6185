#include "core/cuda_driver.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/core/fake_cuda.h"

namespace pavo {
namespace {

using test::FakeCuda;

CudaDriver read(const std::string& json) {
  const FakeCuda fake(json);
  return read_cuda_driver(FakeCuda::library());
}

TEST(CudaDriver, ReadsDevicesInPciOrder) {
  const CudaDriver driver = read(test::kMixedHost);
  EXPECT_TRUE(driver.present);
  EXPECT_EQ(driver.version, 12040);
  EXPECT_EQ(driver.absence, "");
  EXPECT_TRUE(driver.problems.empty());
  ASSERT_EQ(driver.devices.size(), 3u);
  EXPECT_EQ(driver.devices[0].name, "Tesla P100-PCIE-16GB");
  EXPECT_EQ(driver.devices[1].name, "Tesla P40");
  EXPECT_EQ(driver.devices[1].capability, 61);
  EXPECT_EQ(driver.devices[1].memory_bytes, 25669140480);
  EXPECT_EQ(driver.devices[1].id, "GPU-61000000-0000-0000-0000-000000000000");
  EXPECT_EQ(driver.devices[1].pci_id, "0000:04:00.0");
  EXPECT_EQ(driver.devices[1].ordinal, 1);
  EXPECT_EQ(driver.devices[2].name, "Tesla V100-PCIE-16GB");
}

TEST(CudaDriver, SaysWhyThereIsNoDriver) {
  const CudaDriver none = read_cuda_driver("/nowhere/libcuda.so.1");
  EXPECT_FALSE(none.present);
  EXPECT_TRUE(none.devices.empty());
  EXPECT_NE(none.absence.find("no NVIDIA driver: /nowhere/libcuda.so.1"), std::string::npos);

  const CudaDriver relative = read_cuda_driver("libcuda.so.1");
  EXPECT_NE(relative.absence.find("expected an absolute path"), std::string::npos);

  const CudaDriver other = read_cuda_driver(std::string(PAVO_FAKES_DIR) + "/good/good.so");
  EXPECT_EQ(other.absence, "no NVIDIA driver: it does not export cuInit");
}

TEST(CudaDriver, TakesTheLibraryFromTheEnvironment) {
  const FakeCuda fake(test::kMixedHost);
  ::setenv("PAVO_CUDA_DRIVER", FakeCuda::library().c_str(), 1);
  const CudaDriver driver = read_cuda_driver();
  ::unsetenv("PAVO_CUDA_DRIVER");
  EXPECT_EQ(driver.devices.size(), 3u);
}

TEST(CudaDriver, TellsAnEmptyHostFromABrokenDriver) {
  const CudaDriver empty = read(R"({"init": 100})");
  EXPECT_TRUE(empty.present);
  EXPECT_EQ(empty.absence, "the driver sees no device");
  EXPECT_EQ(read(R"({"devices": []})").absence, "the driver sees no device");

  const CudaDriver stub = read(R"({"init": 34})");
  EXPECT_FALSE(stub.present);
  EXPECT_NE(stub.absence.find("the toolkit's stub"), std::string::npos);
  EXPECT_NE(read(R"({"init": 803})").absence.find("reboot"), std::string::npos);
  EXPECT_EQ(
      read(R"({"count": 999})").absence, "the driver cannot count its devices: CUDA_ERROR_UNKNOWN");
}

TEST(CudaDriver, KeepsWhatCanBeRead) {
  const CudaDriver driver = read(R"({"devices": [
    {"capability": 60, "uuid": "01", "pci": "1", "fails": "cuDeviceGetUuid"},
    {"capability": 61, "uuid": "02", "pci": "2", "fails": "cuDeviceGetName"},
    {"capability": 70, "uuid": "03", "pci": "3", "fails": "cuDeviceTotalMem_v2"},
    {"capability": 70, "uuid": "04", "pci": "4", "fails": "cuDeviceGetAttribute"}]})");
  ASSERT_EQ(driver.devices.size(), 2u);
  EXPECT_EQ(driver.devices[0].name, "CUDA device 6.1");
  EXPECT_EQ(driver.devices[1].memory_bytes, 0);
  ASSERT_EQ(driver.problems.size(), 4u);
  EXPECT_EQ(driver.problems[0], "device 0: cuDeviceGetUuid failed: CUDA_ERROR_UNKNOWN");
}

}  // namespace
}  // namespace pavo

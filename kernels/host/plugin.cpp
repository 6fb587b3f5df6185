// The exported function of one CUDA plugin, its note, and the table built from its kernels.inc.
// Compiled once a plugin; CMake gives the PAVO_CUDA_* macros (cmake/pavo_cuda_plugin.cmake).
#include "pavo/plugin.h"

#include "kernels/host/api.h"
#include "kernels/host/plugin_info.h"

PAVO_PLUGIN_NOTE("id=" PAVO_CUDA_ID "\nversion=" PAVO_CUDA_VERSION
                 "\nvendor=Pavo\nlicense=Apache-2.0\nabi=0.1-1\nkind=cuda\nsass=" PAVO_CUDA_SASS
                 "\nptx=" PAVO_CUDA_PTX "\ntoolkit=" PAVO_CUDA_TOOLKIT
                 "\ndriver_min=" PAVO_CUDA_DRIVER_MIN "\nneeds=\n");

namespace pavo::cuda {

// Instantiated by nvcc from arch.h and the kernel headers, which are not read here.
struct PAVO_CUDA_ARCH;
template <typename Arch>
ArchFacts arch_facts();
#define PAVO_KERNELS(family) \
  template <typename Arch>   \
  KernelList family##_kernels();
#include PAVO_CUDA_KERNELS_INC
#undef PAVO_KERNELS

namespace {

// The note and this table say the same, since both come from the same macros.
PluginInfo make_info() {
  PluginInfo info = {};
  info.id = PAVO_CUDA_ID;
  info.version = PAVO_CUDA_VERSION;
  info.has_sass = sizeof(PAVO_CUDA_SASS) > 1;
  info.has_ptx = sizeof(PAVO_CUDA_PTX) > 1;
  info.toolkit_version = PAVO_CUDA_TOOLKIT_NUMBER;
  info.facts = arch_facts<PAVO_CUDA_ARCH>();
  info.families = {
#define PAVO_KERNELS(family) family##_kernels<PAVO_CUDA_ARCH>(),
#include PAVO_CUDA_KERNELS_INC
#undef PAVO_KERNELS
  };
  return info;
}

}  // namespace
}  // namespace pavo::cuda

int32_t pavo_plugin_query(
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error) {
  static const pavo::cuda::PluginInfo kInfo = pavo::cuda::make_info();
  return pavo::cuda::query_plugin(
      kInfo, abi_major, host_min_minor, host_max_minor, host, out, error);
}

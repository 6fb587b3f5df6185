# pavo_add_cuda_plugin(61): one plugin from plugins/cuda-sm61/{arch.h,kernels.inc} and the shared
# kernels. Each line PAVO_KERNELS(family) of kernels.inc becomes one object, compiled from a
# generated file of three lines, so a changed family rebuilds one object per plugin.

# The header of a family: the plugin's own one wins over the shared one.
function(pavo_find_kernel_family sm family out)
  foreach(folder plugins/cuda-sm${sm}/ops kernels/ops)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/${family}.cuh)
      set(${out} ${folder}/${family}.cuh PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "plugins/cuda-sm${sm}/kernels.inc names the kernel family '${family}', but "
                      "neither plugins/cuda-sm${sm}/ops/${family}.cuh nor kernels/ops/${family}.cuh "
                      "exists.")
endfunction()

# Writes the three-line file; ${out} gets its path.
function(pavo_instantiate sm source result function out)
  set(arch_header plugins/cuda-sm${sm}/arch.h)
  set(path ${CMAKE_CURRENT_BINARY_DIR}/${function}.cu)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/instantiate.cu.in ${path} @ONLY)
  set(${out} ${path} PARENT_SCOPE)
endfunction()

# What the plugin says of itself in its note and its table, its file name, and what it exports.
function(pavo_describe_cuda_plugin target sm)
  if(PAVO_CUDA_PTX_ONLY)
    set(sass "")
    set(driver_min ${pavo_header_number})  # PTX needs a driver of its toolkit
  else()
    set(sass sm_${sm})
    math(EXPR driver_min "${pavo_header_major} * 1000")  # machine code: of the same major version
  endif()
  target_compile_definitions(${target} PRIVATE
    PAVO_CUDA_ARCH=Sm${sm}
    PAVO_CUDA_KERNELS_INC="plugins/cuda-sm${sm}/kernels.inc"
    PAVO_CUDA_ID="cuda-sm${sm}"
    PAVO_CUDA_VERSION="${PROJECT_VERSION}"
    PAVO_CUDA_SASS="${sass}"
    PAVO_CUDA_PTX="compute_${sm}"
    PAVO_CUDA_TOOLKIT="${pavo_nvcc_version}"
    PAVO_CUDA_TOOLKIT_NUMBER=${pavo_header_number}
    PAVO_CUDA_DRIVER_MIN="${driver_min}")
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME pavo-cuda-sm${sm}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/sdk/cmake/exports.map)
  target_link_options(${target} PRIVATE
    # One exported symbol: the static CUDA runtime and the C++ library stay inside.
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/sdk/cmake/exports.map
    -Wl,-z,defs)
endfunction()

function(pavo_add_cuda_plugin sm)
  set(list_file ${CMAKE_CURRENT_SOURCE_DIR}/kernels.inc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list_file})
  file(STRINGS ${list_file} lines REGEX "^PAVO_KERNELS\\([a-z0-9_]+\\)$")
  pavo_instantiate(${sm} kernels/common/arch.h pavo::cuda::ArchFacts arch_facts sources)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^PAVO_KERNELS\\((.*)\\)$" "\\1" family ${line})
    pavo_find_kernel_family(${sm} ${family} header)
    pavo_instantiate(${sm} ${header} pavo::cuda::KernelList ${family}_kernels source)
    list(APPEND sources ${source})
  endforeach()

  set(target pavo_cuda_sm${sm})
  # An object library, so that tests can link the kernel tables without loading the plugin.
  add_library(${target}_kernels OBJECT ${sources})
  target_link_libraries(${target}_kernels PUBLIC pavo_cuda_common)
  target_compile_options(${target}_kernels PRIVATE
    -Werror=all-warnings
    # -Wpedantic and -Wconversion fire on the code that nvcc generates.
    -Xcompiler=-Wall,-Wextra,-Wshadow,-Werror
    # Code of all kinds is compressed, not only the PTX.
    -Xfatbin=-compress-all)
  if(PAVO_CUDA_PTX_ONLY)
    set_target_properties(${target}_kernels PROPERTIES CUDA_ARCHITECTURES ${sm}-virtual)
  else()
    set_target_properties(${target}_kernels PROPERTIES CUDA_ARCHITECTURES ${sm})
  endif()

  add_library(${target} MODULE ${PROJECT_SOURCE_DIR}/kernels/host/plugin.cpp)
  target_link_libraries(${target} PRIVATE
    ${target}_kernels pavo_cuda_host CUDA::cudart_static pavo_warnings)
  pavo_describe_cuda_plugin(${target} ${sm})
  # Beside the binaries, in `plugins`: a place of the search order.
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/plugins)
endfunction()

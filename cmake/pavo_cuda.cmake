# Enables CUDA with a 12.x toolkit, or stops with one sentence: 13.x has dropped the chips that
# Pavo is for. Uses CMAKE_CUDA_COMPILER or PAVO_CUDA_ROOT if given, else what
# tools/cuda_toolkit.sh finds.

set(PAVO_CUDA_ROOT "" CACHE PATH "CUDA 12.x toolkit; empty: that of CMAKE_CUDA_COMPILER, or found")
option(PAVO_CUDA_PTX_ONLY "Plugins carry PTX and no machine code: small, for tests on a newer GPU" OFF)

if(NOT CMAKE_CUDA_COMPILER AND NOT PAVO_CUDA_ROOT)
  execute_process(
    COMMAND ${PROJECT_SOURCE_DIR}/tools/cuda_toolkit.sh --find
    OUTPUT_VARIABLE pavo_found_root ERROR_VARIABLE pavo_find_error
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE pavo_find_result)
  if(NOT pavo_find_result EQUAL 0)
    message(FATAL_ERROR "No CUDA 12.x toolkit was found: run tools/cuda_toolkit.sh once, "
                        "or set PAVO_CUDA_ROOT.\n${pavo_find_error}")
  endif()
  set(PAVO_CUDA_ROOT ${pavo_found_root} CACHE PATH "" FORCE)
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${PAVO_CUDA_ROOT}/bin/nvcc CACHE FILEPATH "nvcc of PAVO_CUDA_ROOT")
endif()

# The compiler and the headers are looked at before CMake tries them, so that the message is ours.
execute_process(
  COMMAND ${CMAKE_CUDA_COMPILER} --version
  OUTPUT_VARIABLE pavo_nvcc_text RESULT_VARIABLE pavo_nvcc_result ERROR_QUIET)
string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" pavo_nvcc_match "${pavo_nvcc_text}")
set(pavo_nvcc_version "${CMAKE_MATCH_1}")
if(NOT pavo_nvcc_result EQUAL 0 OR NOT pavo_nvcc_version MATCHES "^12\\.")
  message(FATAL_ERROR "Expected nvcc of a CUDA 12.x toolkit, found release "
                      "'${pavo_nvcc_version}' at ${CMAKE_CUDA_COMPILER}: CUDA 13 cannot build for "
                      "compute capability 6.0, 6.1 and 7.0; run tools/cuda_toolkit.sh and set "
                      "PAVO_CUDA_ROOT to the path that it prints.")
endif()
if(CUDAToolkit_ROOT)
  set(pavo_header_root ${CUDAToolkit_ROOT})
else()
  get_filename_component(pavo_header_root ${CMAKE_CUDA_COMPILER} REALPATH)
  get_filename_component(pavo_header_root ${pavo_header_root}/../.. ABSOLUTE)
  # Without it FindCUDAToolkit may take the headers of another toolkit on the search path.
  set(CUDAToolkit_ROOT ${pavo_header_root} CACHE PATH "Toolkit of CMAKE_CUDA_COMPILER")
endif()
set(pavo_header_version "none")
if(EXISTS ${pavo_header_root}/include/cuda.h)
  file(STRINGS ${pavo_header_root}/include/cuda.h pavo_header_line
    REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" pavo_header_number "${pavo_header_line}")
  math(EXPR pavo_header_major "${pavo_header_number} / 1000")
  math(EXPR pavo_header_minor "${pavo_header_number} % 1000 / 10")
  set(pavo_header_version ${pavo_header_major}.${pavo_header_minor})
endif()
if(NOT pavo_header_version STREQUAL pavo_nvcc_version)
  message(FATAL_ERROR "Expected the headers of CUDA ${pavo_nvcc_version}, found "
                      "${pavo_header_version} under ${pavo_header_root}/include: set "
                      "CUDAToolkit_ROOT to the toolkit of ${CMAKE_CUDA_COMPILER}.")
endif()

if(PAVO_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PAVO_CCACHE})
endif()
set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no C++20 flag of nvcc
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_ARCHITECTURES OFF)  # each plugin sets its own
enable_language(CUDA)
find_package(CUDAToolkit ${pavo_nvcc_version} EXACT REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/pavo_cuda_plugin.cmake)

# PAVO_SANITIZE=address,undefined or thread; empty for none.
set(PAVO_SANITIZE "" CACHE STRING "Sanitizers for every target, comma separated")
if(PAVO_SANITIZE)
  # Not for nvcc, which has no such flags.
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${PAVO_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  add_link_options(-fsanitize=${PAVO_SANITIZE})
endif()

# Coverage feedback for libFuzzer in every target; tests/fuzz links the fuzzers themselves.
option(PAVO_FUZZ "Build the libFuzzer targets of tests/fuzz (Clang only)" OFF)
if(PAVO_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "PAVO_FUZZ needs Clang, found ${CMAKE_CXX_COMPILER_ID}: use preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

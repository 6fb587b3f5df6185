# One INTERFACE target carries the warning flags, so that every target states them the same way.
add_library(pavo_warnings INTERFACE)
target_compile_options(pavo_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror>)

# Tests of the kit itself, and the kit over the plugins of this build.
add_executable(pavo_kit_tests conformance/kit_test.cpp)
target_link_libraries(pavo_kit_tests PRIVATE
  pavo_conformance pavo_warnings GTest::gmock GTest::gtest_main)
target_compile_definitions(pavo_kit_tests PRIVATE
  PAVO_FAKES_DIR="${PAVO_FAKES_DIR}"
  PAVO_CONFORMANCE="$<TARGET_FILE:pavo_conformance_runner>")
add_dependencies(pavo_kit_tests pavo_fakes pavo_conformance_runner)
gtest_discover_tests(pavo_kit_tests)

# Only predicates, with the caps of a card that is not there.
add_test(NAME conformance.profile
  COMMAND pavo_conformance_runner $<TARGET_FILE:pavo_cpu> --only .pure.
    --device-profile ${PROJECT_SOURCE_DIR}/plugins/cuda-sm61/profiles/p40.toml)

foreach(plugin cpu mock null)
  add_test(NAME conformance.${plugin}
    COMMAND pavo_conformance_runner $<TARGET_FILE:pavo_${plugin}> --verbose
      --junit-file ${PROJECT_BINARY_DIR}/conformance-${plugin}.xml)
endforeach()

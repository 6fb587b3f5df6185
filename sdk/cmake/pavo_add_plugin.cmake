# pavo_add_plugin(<id> <source>...) makes a plugin of C++17 or C11 sources as Pavo wants it: the file
# libpavo-<id>.so of the target pavo_<id>, which exports the query and nothing else.

set(PAVO_PLUGIN_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/exports.map)

function(pavo_add_plugin id)
  string(MAKE_C_IDENTIFIER pavo_${id} target)
  add_library(${target} MODULE ${ARGN})
  target_compile_features(${target} PRIVATE c_std_11 cxx_std_17)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME pavo-${id}
    PREFIX lib
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    LINK_DEPENDS ${PAVO_PLUGIN_EXPORTS})
  target_link_libraries(${target} PRIVATE Pavo::sdk)
  target_link_options(${target} PRIVATE
    # Templates of the C++ library are visible whatever the preset says.
    LINKER:--version-script=${PAVO_PLUGIN_EXPORTS}
    # What is missing shows when it is built, not when it is loaded.
    LINKER:--no-undefined LINKER:-z,now LINKER:-z,noexecstack)
endfunction()

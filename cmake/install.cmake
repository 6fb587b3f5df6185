# cmake --install: the programs, plugins where the programs look for them, and what plugin authors need.
set(pavo_plugin_dir ${CMAKE_INSTALL_LIBDIR}/pavo/plugins)
set(pavo_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Pavo)

install(TARGETS pavo pavo_probe pavo_conformance_runner RUNTIME COMPONENT runtime)
set(pavo_plugins pavo_cpu)
if(PAVO_CUDA)
  list(APPEND pavo_plugins pavo_cuda_sm60 pavo_cuda_sm61 pavo_cuda_sm70)
endif()
install(TARGETS ${pavo_plugins} LIBRARY DESTINATION ${pavo_plugin_dir} COMPONENT runtime)

install(TARGETS pavo_sdk EXPORT PavoTargets)
install(DIRECTORY sdk/include/pavo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk)
install(DIRECTORY sdk/template DESTINATION ${CMAKE_INSTALL_DATADIR}/pavo COMPONENT sdk)
install(FILES docs/plugin-guide.md docs/plugin-interface.md docs/conformance.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT sdk)

include(CMakePackageConfigHelpers)
set(PAVO_PLUGIN_DIR ${pavo_plugin_dir})
set(PAVO_EXECUTABLE ${CMAKE_INSTALL_BINDIR}/pavo)
configure_package_config_file(sdk/cmake/PavoConfig.cmake.in ${PROJECT_BINARY_DIR}/PavoConfig.cmake
  INSTALL_DESTINATION ${pavo_package_dir} PATH_VARS PAVO_PLUGIN_DIR PAVO_EXECUTABLE)
# A draft of the ABI: every minor version may differ.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PavoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/PavoConfig.cmake ${PROJECT_BINARY_DIR}/PavoConfigVersion.cmake
    sdk/cmake/pavo_add_plugin.cmake sdk/cmake/exports.map
  DESTINATION ${pavo_package_dir} COMPONENT sdk)
install(EXPORT PavoTargets NAMESPACE Pavo:: DESTINATION ${pavo_package_dir} COMPONENT sdk)

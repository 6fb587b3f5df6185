# Fails unless the plugin exports pavo_plugin_query and nothing else.
# -DNM=... -DPLUGIN=...
execute_process(COMMAND ${NM} -D --defined-only -P ${PLUGIN}
  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE " [^\n]*" "" names "${output}")
string(STRIP "${names}" names)
if(NOT names STREQUAL "pavo_plugin_query")
  message(FATAL_ERROR "expected the one symbol pavo_plugin_query, got:\n${names}")
endif()

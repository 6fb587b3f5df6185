// The CPU plugin inside of the mock device, under another name and without a note of its own: it
// computes what the mock is asked to.
#define pavo_plugin_query pavo_mock_inner_query  // NOLINT: a name of the ABI
#include "pavo/plugin.h"

#undef PAVO_PLUGIN_NOTE
#define PAVO_PLUGIN_NOTE(text) static_assert(sizeof(text) > 1)

#include "plugins/cpu/plugin.cpp"  // NOLINT(bugprone-suspicious-include)

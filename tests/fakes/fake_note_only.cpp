// A note, but no pavo_plugin_query.
#include "pavo/plugin.h"

PAVO_PLUGIN_NOTE(PAVO_FAKE_NOTE);

/* plugin.h as C11 has it: it compiles without a warning, and every struct lies as layout.inc says.
 */
#include <assert.h>
#include <stddef.h>

#include "pavo/plugin.h"

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), "size of " #type);
#define FIELD(type, field, at) static_assert(offsetof(type, field) == (at), #type "." #field);
#include "tests/sdk/layout.inc"

static_assert(sizeof(void*) == 8, "layout.inc is for 64 bits");

/* The entry point has the type that hosts call it by. */
const pavo_plugin_query_fn pavo_layout_query = pavo_plugin_query;

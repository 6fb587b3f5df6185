// The same as layout_c.c, as C++17 has it.
#include <cstddef>
#include <type_traits>

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes) && std::is_trivial_v<type>, #type);
#define FIELD(type, field, at) static_assert(offsetof(type, field) == (at), #type "." #field);
#include "tests/sdk/layout.inc"

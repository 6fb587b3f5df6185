// AddressSanitizer ends the process where malloc would say no; tests of what is done about a no
// want malloc's answer. Linked into them; the sanitizer's library calls it.
extern "C" __attribute__((visibility("default"))) const char*
__asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "allocator_may_return_null=1";
}

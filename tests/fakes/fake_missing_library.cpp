// A library that is there when a plugin is linked and gone when it is loaded.
extern "C" __attribute__((visibility("default"))) int pavo_fake_missing() {
  return 1;
}

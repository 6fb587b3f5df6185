// A second exported symbol, which no plugin may have.
extern "C" __attribute__((visibility("default"))) int pavo_fake_extra_symbol;
int pavo_fake_extra_symbol = 1;

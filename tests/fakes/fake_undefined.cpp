// Linked into a copy of the fake plugin that then needs a function nobody has.
extern "C" int pavo_fake_not_there();

extern "C" {
extern int (*const pavo_fake_undefined)();
int (*const pavo_fake_undefined)() = pavo_fake_not_there;
}

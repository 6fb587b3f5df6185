// Runs a fuzz target over its seeds and over mutations of them that are the same every time.
//   TARGET [ROUNDS]             the smoke run
//   TARGET --write-seeds DIR    writes the seeds as files, a corpus for libFuzzer
#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "tests/fuzz/fuzz.h"

namespace {

using Input = std::vector<uint8_t>;

// An exact-size copy, so that AddressSanitizer sees a read of one byte too many.
void run(const Input& input) {
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

class Mutator {
 public:
  explicit Mutator(const std::vector<Input>& seeds) : seeds_(seeds) {}

  Input next() {
    Input input = seeds_[pick(seeds_.size())];
    for (size_t steps = 1 + pick(4); steps > 0 && !input.empty(); --steps) {
      mutate(&input);
    }
    return input;
  }

 private:
  size_t pick(size_t limit) { return random_() % limit; }

  void mutate(Input* input) {
    const size_t place = pick(input->size());
    const size_t left = input->size() - place;
    switch (pick(6)) {
      case 0:
        (*input)[place] = static_cast<uint8_t>(random_());
        break;
      case 1:
        (*input)[place] ^= static_cast<uint8_t>(1u << pick(8));
        break;
      case 2:
        input->resize(place);
        break;
      case 3: {  // a number at one of the edges, 1 to 8 bytes wide
        constexpr uint64_t kEdges[] = {0, 1, 31, 64, 0x7fffffff, UINT32_MAX, INT64_MAX, UINT64_MAX};
        const uint64_t edge = kEdges[pick(std::size(kEdges))] + pick(3) - 1;
        std::memcpy(input->data() + place, &edge, std::min<size_t>(left, 1 + pick(8)));
        break;
      }
      case 4: {  // a part of another seed
        const Input& other = seeds_[pick(seeds_.size())];
        const size_t from = pick(other.size() + 1);
        const size_t count = std::min(other.size() - from, left);
        std::copy_n(
            other.begin() + static_cast<std::ptrdiff_t>(from),
            count,
            input->begin() + static_cast<std::ptrdiff_t>(place));
        break;
      }
      default:
        input->erase(
            input->begin() + static_cast<std::ptrdiff_t>(place),
            input->begin() +
                static_cast<std::ptrdiff_t>(place + std::min<size_t>(left, 1 + pick(16))));
        break;
    }
  }

  const std::vector<Input>& seeds_;
  std::mt19937_64 random_{20260101};
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Input> seeds = pavo::fuzz::seeds();
  if (argc == 3 && std::string(argv[1]) == "--write-seeds") {
    for (size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream out(std::string(argv[2]) + "/seed" + std::to_string(i), std::ios::binary);
      out.write(
          reinterpret_cast<const char*>(seeds[i].data()),
          static_cast<std::streamsize>(seeds[i].size()));
      pavo::fuzz::require(out.good(), "the seed was written");
    }
    return 0;
  }
  const long rounds = argc == 2 ? std::strtol(argv[1], nullptr, 10) : 20000;
  run({});
  for (const Input& seed : seeds) {
    run(seed);
  }
  Mutator mutator(seeds);
  for (long i = 0; i < rounds; ++i) {
    run(mutator.next());
  }
  std::printf("%zu seeds, %ld mutations\n", seeds.size(), rounds);
  return 0;
}

#include "tests/kernels/ops/emulator/emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

uint3 threadIdx;
uint3 blockIdx;
dim3 gridDim;

namespace pavo::emulator {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr uint32_t kLanes = 32;

enum class State { kReady, kAtBlock, kAtWarp, kDone };

// A place to go on at. swapcontext makes two system calls a switch, which a jump does not, but
// AddressSanitizer understands only the former.
struct Place {
#ifdef __SANITIZE_ADDRESS__
  ucontext_t context;
#else
  jmp_buf jump;
#endif
};

struct Fiber {
  ucontext_t start;
  Place place;
  std::unique_ptr<char[]> stack;
  bool started = false;
  State state = State::kReady;
  uint32_t exchanges = 0;  // two slots in turn: a lane may be one exchange ahead of another
};

// Used by each launch again: a stack costs more than what runs on it.
std::vector<Fiber>& fiber_pool() {
  static std::vector<Fiber>& fibers = *new std::vector<Fiber>;
  return fibers;
}

struct Block {
  explicit Block(std::span<Fiber> threads) : fibers(threads) {}

  std::span<Fiber> fibers;
  std::vector<uint64_t> slots;  // [exchange % 2][thread]
  std::vector<float4> shared;
  Place scheduler;
  uint32_t current = 0;
  const std::function<void()>* body = nullptr;
};

Order order = Order::kForward;
Block* block_now = nullptr;

#ifdef __SANITIZE_ADDRESS__
void resume(Block& block, Fiber& fiber) {
  ucontext_t& to = fiber.started ? fiber.place.context : fiber.start;
  fiber.started = true;
  swapcontext(&block.scheduler.context, &to);
}
void pause(Block& block, Fiber& fiber) {
  swapcontext(&fiber.place.context, &block.scheduler.context);
}
#else
void resume(Block& block, Fiber& fiber) {
  if (_setjmp(block.scheduler.jump) != 0) {
    return;
  }
  if (fiber.started) {
    _longjmp(fiber.place.jump, 1);
  }
  fiber.started = true;
  setcontext(&fiber.start);
}
void pause(Block& block, Fiber& fiber) {
  if (_setjmp(fiber.place.jump) == 0) {
    _longjmp(block.scheduler.jump, 1);
  }
}
#endif

void stop(State state) {
  Block& block = *block_now;
  Fiber& fiber = block.fibers[block.current];
  fiber.state = state;
  pause(block, fiber);
}

// Each round is a thread of a block.
void enter() {
  while (true) {
    (*block_now->body)();
    stop(State::kDone);
  }
}

std::span<Fiber> fibers_for(size_t count) {
  std::vector<Fiber>& fibers = fiber_pool();
  if (fibers.size() < count) {
    fibers.clear();  // no thread is inside of a launch, and contexts must not move
    fibers.resize(count);
    for (Fiber& fiber : fibers) {
      fiber.stack = std::make_unique<char[]>(kStackBytes);
      getcontext(&fiber.start);
      fiber.start.uc_stack.ss_sp = fiber.stack.get();
      fiber.start.uc_stack.ss_size = kStackBytes;
      fiber.start.uc_link = nullptr;
      makecontext(&fiber.start, enter, 0);
    }
  }
  return {fibers.data(), count};
}

bool all_in(const Block& block, size_t begin, size_t end, State state) {
  bool any = false;
  for (size_t i = begin; i < end; ++i) {
    if (block.fibers[i].state == state) {
      any = true;
    } else if (state != State::kAtBlock || block.fibers[i].state != State::kDone) {
      return false;
    }
  }
  return any;
}

void release(Block& block, size_t begin, size_t end, State state) {
  if (all_in(block, begin, end, state)) {
    for (size_t i = begin; i < end; ++i) {
      if (block.fibers[i].state == state) {
        block.fibers[i].state = State::kReady;
      }
    }
  }
}

// One turn of every thread that can go on; false if none could.
bool turn(Block& block) {
  const auto count = static_cast<uint32_t>(block.fibers.size());
  release(block, 0, count, State::kAtBlock);
  for (uint32_t first = 0; first < count; first += kLanes) {
    release(block, first, first + kLanes, State::kAtWarp);
  }
  bool moved = false;
  for (uint32_t i = 0; i < count; ++i) {
    block.current = order == Order::kForward ? i : count - 1 - i;
    Fiber& fiber = block.fibers[block.current];
    if (fiber.state == State::kReady) {
      threadIdx = {block.current, 0, 0};
      resume(block, fiber);
      moved = true;
    }
  }
  return moved;
}

void run_block(Block& block) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill(block.shared.begin(), block.shared.end(), float4{nan, nan, nan, nan});
  for (Fiber& fiber : block.fibers) {
    fiber.state = State::kReady;
    fiber.exchanges = 0;
  }
  while (turn(block)) {
  }
  for (const Fiber& fiber : block.fibers) {
    if (fiber.state != State::kDone) {
      std::fputs("a barrier that not all threads reach\n", stderr);
      std::abort();
    }
  }
}

}  // namespace

void set_order(Order value) {
  order = value;
}

void run(dim3 grid, dim3 threads, size_t shared_bytes, const std::function<void()>& body) {
  if (threads.y != 1 || threads.z != 1 || threads.x % kLanes != 0) {
    std::fputs("blocks of one dimension and whole warps are emulated\n", stderr);
    std::abort();
  }
  Block block(fibers_for(threads.x));
  block.body = &body;
  block.slots.resize(size_t{2} * threads.x);
  block.shared.resize((shared_bytes + sizeof(float4) - 1) / sizeof(float4));
  block_now = &block;
  gridDim = grid;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
        run_block(block);
      }
    }
  }
  block_now = nullptr;
}

void wait_block() {
  stop(State::kAtBlock);
}

float* dynamic_shared() {
  return reinterpret_cast<float*>(block_now->shared.data());
}

uint32_t lane() {
  return block_now->current % kLanes;
}

uint64_t exchange(uint64_t bits, uint32_t from) {
  Block& block = *block_now;
  const uint32_t self = block.current;
  const size_t base = block.fibers[self].exchanges++ % 2 * block.fibers.size();
  block.slots[base + self] = bits;
  stop(State::kAtWarp);
  return block.slots[base + self / kLanes * kLanes + from];
}

}  // namespace pavo::emulator

#include "tests/kernels/ops/emulator/emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include <ucontext.h>

uint3 threadIdx;
uint3 blockIdx;
dim3 gridDim;

namespace pavo::emulator {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr uint32_t kLanes = 32;

enum class State { kReady, kAtBlock, kAtWarp, kDone };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  State state = State::kReady;
  uint32_t exchanges = 0;  // two slots in turn: a lane may be one exchange ahead of another
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<uint64_t> slots;  // [exchange % 2][thread]
  std::vector<float4> shared;
  ucontext_t scheduler;
  uint32_t current = 0;
  const std::function<void()>* body = nullptr;
};

Order order = Order::kForward;
Block* block_now = nullptr;

void stop(State state) {
  Block& block = *block_now;
  Fiber& fiber = block.fibers[block.current];
  fiber.state = state;
  swapcontext(&fiber.context, &block.scheduler);
}

void enter() {
  (*block_now->body)();
  stop(State::kDone);
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
      swapcontext(&block.scheduler, &fiber.context);
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
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
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
  Block block;
  block.body = &body;
  block.fibers.resize(threads.x);
  block.slots.resize(size_t{2} * threads.x);
  block.shared.resize((shared_bytes + sizeof(float4) - 1) / sizeof(float4));
  for (Fiber& fiber : block.fibers) {
    fiber.stack = std::make_unique<char[]>(kStackBytes);
  }
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

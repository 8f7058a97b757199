// Runs examples/fft/block_fft.cuh on the CPU: every thread of a CUDA block is a fiber, and a barrier switches fibers.
//
// A warp runs ahead as far as its barriers let it, in the order asked for, so that a barrier that is missing or too
// narrow shows as wrong numbers in one of the two orders. Threads that part ways at a barrier end the program.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define __device__
#define __forceinline__ inline

struct Index {
    int x, y;
};
static Index threadIdx;

namespace {

enum State { ready, at_warp_barrier, at_block_barrier, finished };

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    State state;
    Index index;
};

ucontext_t scheduler;
Fiber* current;
void (*body)();

void wait_at(State barrier) {
    current->state = barrier;
    swapcontext(&current->context, &scheduler);
}

void fiber_main() {
    body();
    wait_at(finished);
}

// Runs every fiber of a warp to its next barrier and returns which one that is.
State advance(std::vector<Fiber*>& warp) {
    for (Fiber* fiber : warp) {
        current = fiber;
        threadIdx = fiber->index;
        swapcontext(&scheduler, &fiber->context);
        if (fiber->state != warp.front()->state) {
            std::fprintf(stderr, "the threads of a warp are at different barriers\n");
            std::abort();
        }
    }
    return warp.front()->state;
}

void run_block(int x, int y, bool backwards, void (*thread)()) {
    body = thread;
    static std::vector<Fiber> fibers(1024);
    std::vector<std::vector<Fiber*>> warps((x * y + 31) / 32);
    for (int i = 0; i < x * y; ++i) {
        const int n = backwards ? x * y - 1 - i : i;
        Fiber& fiber = fibers[n];
        fiber.stack.resize(1 << 16);
        fiber.index = {n % x, n / x};
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        makecontext(&fiber.context, fiber_main, 0);
        warps[backwards ? warps.size() - 1 - n / 32 : n / 32].push_back(&fiber);
    }
    for (State state = ready; state != finished;) {
        for (std::size_t w = 0; w < warps.size(); ++w) {
            State reached;
            do reached = advance(warps[w]);
            while (reached == at_warp_barrier);
            if (w > 0 && reached != state) {
                std::fprintf(stderr, "the warps of a block are at different barriers\n");
                std::abort();
            }
            state = reached;
        }
    }
}

}  // namespace

inline void __syncwarp() { wait_at(at_warp_barrier); }
inline void __syncthreads() { wait_at(at_block_barrier); }

#include "block_fft.cuh"

static void* rows;
alignas(16) static unsigned char shared_memory[1 << 17];

template <class T, int Size, int Elements, int Batch, bool Inverse>
void thread() {
    using fft = block_fft::transform<T, Size, Elements, Batch, Inverse>;
    T data[2 * Elements];
    T* row = static_cast<T*>(rows) + 2 * Size * threadIdx.y;
    for (int i = 0; i < Elements; ++i)
        for (int part = 0; part < 2; ++part) data[2 * i + part] = row[2 * (threadIdx.x + i * fft::stride) + part];
    fft::run(data, reinterpret_cast<T*>(shared_memory));
    for (int i = 0; i < Elements; ++i)
        for (int part = 0; part < 2; ++part) row[2 * (threadIdx.x + i * fft::stride) + part] = data[2 * i + part];
}

// Transforms the `Batch` rows at `data` in place, as one block of a kernel would, and returns the bytes of shared
// memory that the transform says it needs, or -1 if it wrote past them.
template <class T, int Size, int Elements, int Batch, bool Inverse>
int block(void* data, int backwards) {
    using fft = block_fft::transform<T, Size, Elements, Batch, Inverse>;
    constexpr unsigned char untouched = 0xa5;
    std::memset(shared_memory, untouched, sizeof shared_memory);
    rows = data;
    run_block(fft::stride, Batch, backwards, thread<T, Size, Elements, Batch, Inverse>);
    for (std::size_t i = fft::shared_bytes; i < sizeof shared_memory; ++i)
        if (shared_memory[i] != untouched) return -1;
    return fft::shared_bytes;
}

#define EXPORT(NAME, T, SIZE, ELEMENTS, BATCH, INVERSE) \
    extern "C" int NAME(void* data, int backwards) { return block<T, SIZE, ELEMENTS, BATCH, INVERSE>(data, backwards); }

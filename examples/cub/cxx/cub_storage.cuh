// SPDX-License-Identifier: BSD-2-Clause
// The shared memory that the primitives of a translation unit use in turn. Its size is that of the largest of them, not
// the sum of all.
//
// Each primitive reserves what it needs, by a specialisation of `reserved` for the slot after AUTOLINK_CUB_LAST, that of
// the one before it. The arrays are defined in function templates, whose bodies are compiled at the end of the
// translation unit, after all reservations. If a compiler compiled them earlier, the next reservation would be an error,
// because it would specialise a template that is already instantiated.

#pragma once

#include <cub/util_ptx.cuh>

namespace autolink_cub {

constexpr int slots = 1 << 10;

__device__ constexpr int larger(int a, int b) { return a > b ? a : b; }

// The reservations up to a slot: bytes per block, bytes per thread of a warp, and warps per block. They are enumerators,
// because static members would be variables of the kernel.
template <int Slot>
struct reserved {
    enum { taken = Slot == 0, block = 16, lane = 8, warps = 1 };
};

template <class Before, int Block, int Lane, int Warps>
struct reserved_too {
    enum {
        taken = true,
        block = larger(Block, Before::block),
        lane = larger(Lane, Before::lane),
        warps = larger(Warps, Before::warps)
    };
};

#define AUTOLINK_CUB_LAST 0

// The last slot that is taken, from First (inclusive) to End (exclusive).
template <int First, int End, bool Found = First + 1 == End>
struct last_reserved {
    enum { middle = (First + End) / 2, above = reserved<middle>::taken };
    using type = typename last_reserved<above ? middle : First, above ? End : middle>::type;
};
template <int First, int End>
struct last_reserved<First, End, true> {
    using type = reserved<First>;
};

// A kernel has at most 48 KB of static shared memory.
constexpr int most_static = 48 << 10;

namespace {

template <int Slots>
__device__ unsigned char* block_bytes() {
    __shared__ alignas(16) unsigned char bytes[last_reserved<0, Slots>::type::block];
    return bytes;
}

// The bytes of neighbouring threads are adjacent, so a logical warp of any size has the bytes of its own threads.
template <int Slots>
__device__ unsigned char* thread_bytes(int thread) {
    using all = typename last_reserved<0, Slots>::type;
    static_assert(all::lane * 32 * all::warps <= most_static,
                  "the warp primitives of this kernel need more than 48 KB of shared memory: use fewer items per thread,"
                  " a smaller type, or a smaller block");
    __shared__ alignas(16) unsigned char bytes[all::lane * 32 * all::warps];
    return bytes + thread * all::lane;
}

}  // namespace

template <class Storage>
struct block_need {
    static_assert(sizeof(Storage) <= most_static,
                  "this primitive needs more than 48 KB of shared memory: use fewer items per thread, a smaller type, or"
                  " a smaller block");
    static_assert(alignof(Storage) <= 16, "the storage is aligned to 16 bytes");
    static constexpr int bytes = sizeof(Storage);
};

// Bytes per thread, a multiple of 8. A logical warp has at least two threads, so its bytes are a multiple of 16.
template <class Storage, int Threads>
struct thread_need {
    static_assert(alignof(Storage) <= 16, "the storage is aligned to 16 bytes");
    static constexpr int bytes = (int(sizeof(Storage)) + 8 * Threads - 1) / (8 * Threads) * 8;
};

// Return the storage of the block, after no thread of the block uses it any more.
template <class Storage>
__device__ Storage& block_storage() {
    __syncthreads();
    return *reinterpret_cast<Storage*>(block_bytes<slots>());
}

// The storage of this thread's logical warp of Threads threads, while none of them uses it before or after: parts of it
// are that of smaller logical warps, and it is a part of that of larger ones.
template <class Storage, int Threads>
struct warp_storage {
    const int thread;
    __device__ explicit warp_storage(int thread) : thread(thread) { sync(); }
    __device__ ~warp_storage() { sync(); }
    __device__ operator Storage&() const {
        return *reinterpret_cast<Storage*>(thread_bytes<slots>(thread / Threads * Threads));
    }
    __device__ void sync() const { __syncwarp(cub::WarpMask<Threads>(thread % 32 / Threads)); }
};

// Return the value of thread 0 to all threads.
template <class T>
__device__ T from_first_thread(T value, int thread) {
    T& place = block_storage<T>();
    if (thread == 0) place = value;
    __syncthreads();
    return place;
}

template <int Threads, class T>
__device__ T from_first_lane(T value, int thread) {
    return cub::ShuffleIndex<Threads>(value, 0, cub::WarpMask<Threads>(thread % 32 / Threads));
}

}  // namespace autolink_cub

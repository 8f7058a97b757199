// SPDX-License-Identifier: BSD-2-Clause
// The kernels of benchmarks/contests/operators.py, with operators in C++ instead of Python.

#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_store.cuh>

constexpr int TILE = THREADS * ITEMS;
using Load = cub::BlockLoad<float, THREADS, ITEMS, cub::BLOCK_LOAD_VECTORIZE>;
using Store = cub::BlockStore<float, THREADS, ITEMS, cub::BLOCK_STORE_VECTORIZE>;

struct Saturating {
    const float* limit;
    __device__ float operator()(float a, float b) const {
        const float sum = a + b;
        return *limit < sum ? *limit : sum;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
saturating_sums(const float* x, const float* limit, float* sums) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Reduce::TempStorage reduce;
    } storage;
    float items[ITEMS];
    Load(storage.load).Load(x + (long long)blockIdx.x * TILE, items);
    const float sum = Reduce(storage.reduce).Reduce(items, Saturating{limit});
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

struct Smaller {
    __device__ bool operator()(float a, float b) const { return fabsf(a) < fabsf(b); }
};

extern "C" __global__ void __launch_bounds__(THREADS) sorted_tiles(const float* x, float* result) {
    using Sort = cub::BlockMergeSort<float, THREADS, ITEMS>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
        typename Store::TempStorage store;
    } storage;
    float items[ITEMS];
    Load(storage.load).Load(x + (long long)blockIdx.x * TILE, items);
    __syncthreads();
    Sort(storage.sort).StableSort(items, Smaller{});
    __syncthreads();
    Store(storage.store).Store(result + (long long)blockIdx.x * TILE, items);
}

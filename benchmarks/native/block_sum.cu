// SPDX-License-Identifier: BSD-2-Clause
// Each block sums one tile of THREADS * ITEMS floats, like the Python kernel in benchmarks/contests/block_sums.py.

#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void __launch_bounds__(THREADS) block_sums(const float* x, float* sums) {
    using Load = cub::BlockLoad<float, THREADS, ITEMS, cub::BLOCK_LOAD_VECTORIZE>;
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Reduce::TempStorage reduce;
    } storage;
    float items[ITEMS];
    Load(storage.load).Load(x + (long long)blockIdx.x * (THREADS * ITEMS), items);
    const float sum = Reduce(storage.reduce).Sum(items);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

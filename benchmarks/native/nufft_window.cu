// SPDX-License-Identifier: BSD-2-Clause
// The kernels of examples/nufft_window.py for complex64, with windows in C++ instead of Python.

#include "window_sums.cuh"

struct Semicircle {
    float beta;
    __device__ float operator()(float t) const { return expf(beta * (sqrtf(1.0f - t * t) - 1.0f)); }
};

struct Tabulated {
    const float* table;
    int size;
    __device__ float operator()(float t) const {
        const float at = t * (size - 2);
        const unsigned i = at;
        return table[i] + (at - i) * (table[i + 1] - table[i]);
    }
};

template <class Window>
__device__ void spread(const float* x, const float* y, const float2* values, const Window& window, float2* grid, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) window_sums::spread<WIDTH, SIZE_0, SIZE_1>(x[i], y[i], values[i], grid, window);
}

template <class Window>
__device__ void interpolate(const float* x, const float* y, const float2* grid, const Window& window, float2* values,
                            int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = window_sums::interpolate<WIDTH, SIZE_0, SIZE_1>(x[i], y[i], grid, window);
}

extern "C" __global__ void spread_formula(const float* x, const float* y, const float2* values, float beta,
                                          float2* grid, int n) {
    spread(x, y, values, Semicircle{beta}, grid, n);
}

extern "C" __global__ void interpolate_formula(const float* x, const float* y, const float2* grid, float beta,
                                               float2* values, int n) {
    interpolate(x, y, grid, Semicircle{beta}, values, n);
}

extern "C" __global__ void spread_table(const float* x, const float* y, const float2* values, const float* table,
                                        int size, float2* grid, int n) {
    spread(x, y, values, Tabulated{table, size}, grid, n);
}

extern "C" __global__ void interpolate_table(const float* x, const float* y, const float2* grid, const float* table,
                                             int size, float2* values, int n) {
    interpolate(x, y, grid, Tabulated{table, size}, values, n);
}

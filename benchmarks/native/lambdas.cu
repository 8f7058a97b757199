// SPDX-License-Identifier: BSD-2-Clause
// The kernels of benchmarks/contests/lambdas.py, with lambdas in C++ instead of Python.

#include "lambdas.cuh"

extern "C" __global__ void folds(const float* x, float* r, long long size) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < size)
        r[i] = fold(x, i * COUNT, COUNT, [](float a, float b) { return fabsf(a) >= fabsf(b) ? a : b; });
}

extern "C" __global__ void roots(const float* x, float* r, long long size) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < size) r[i] = newton([](float v, float a) { return v * v * v - a; }, x[i], x[i]);
}

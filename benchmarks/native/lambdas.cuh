// SPDX-License-Identifier: BSD-2-Clause
// Templates that call a function object, which the kernels of lambdas.cu and of benchmarks/contests/lambdas.py pass.
#pragma once

// Fold COUNT values from place FIRST on.
template <class T, class F> __device__ T fold(const T* x, long long first, int count, F f) {
    T r = x[first];
    for (int i = 1; i < count; ++i) r = f(r, x[first + i]);
    return r;
}

// The root near START of a function of a number and the parameter A, by Newton's method with differences.
template <class T, class F> __device__ T newton(F f, T start, T a) {
    T x = start;
    for (int i = 0; i < 12; ++i) {
        const T h = x * T(0x1p-8), y = f(x, a);
        x -= y * h / (f(x + h, a) - y);
    }
    return x;
}

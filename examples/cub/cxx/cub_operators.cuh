// SPDX-License-Identifier: BSD-2-Clause
// The operators of reductions and scans. CUB has faster code for some of the functors that it knows.

#pragma once

#include <cub/version.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
#include <cuda_fp16.h>

namespace autolink_cub {

struct complex_plus {
    __device__ float2 operator()(float2 a, float2 b) const { return {a.x + b.x, a.y + b.y}; }
    __device__ double2 operator()(double2 a, double2 b) const { return {a.x + b.x, a.y + b.y}; }
};

struct complex_multiplies {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
    }
};

template <class T, class Plain, class Complex>
struct choose {
    using type = Plain;
};
template <class Plain, class Complex>
struct choose<float2, Plain, Complex> {
    using type = Complex;
};
template <class Plain, class Complex>
struct choose<double2, Plain, Complex> {
    using type = Complex;
};

template <class T>
using plus = typename choose<T, cuda::std::plus<>, complex_plus>::type;
template <class T>
using multiplies = typename choose<T, cuda::std::multiplies<>, complex_multiplies>::type;
template <class T>
using bit_and = cuda::std::bit_and<>;
template <class T>
using bit_or = cuda::std::bit_or<>;
template <class T>
using bit_xor = cuda::std::bit_xor<>;

#if CUB_VERSION >= 200800
template <class T>
using minimum = cuda::minimum<>;
template <class T>
using maximum = cuda::maximum<>;
#else
template <class T>
struct minimum {
    __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct maximum {
    __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
#endif

// A Python function, whose result is converted to the type of the values.
template <class T, class Functor>
struct returning : Functor {
    using Functor::Functor;
    __device__ static T converted(T x) { return x; }
    template <class R>
    __device__ static T converted(R x) {
        if constexpr (sizeof(T) == sizeof(float2) && sizeof(R) == sizeof(double2)) return {float(x.x), float(x.y)};
        else return T(x);
    }
    template <class U>
    __device__ T operator()(U a, U b) const { return converted(Functor::operator()(a, b)); }
};

struct less {
    template <class T>
    __device__ bool operator()(T a, T b) const { return a < b; }
};
struct greater {
    template <class T>
    __device__ bool operator()(T a, T b) const { return b < a; }
};

}  // namespace autolink_cub

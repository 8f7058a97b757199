// SPDX-License-Identifier: BSD-2-Clause
// What precedes the functions that cxx_draws draws, for NVRTC and for a compiler of the host: numbers made of values,
// and values made of numbers.
#ifdef __CUDACC_RTC__
#ifdef WITH_STD
#include <cuda_fp16.h>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>
#include <cuda/std/utility>
namespace S = cuda::std;
#endif
#define CALLED __noinline__
#else
#define WITH_STD
#include <array>
#include <complex>
#include <cstring>
using std::memcpy;
#include <tuple>
#include <utility>
namespace S = std;
struct __half {
    unsigned short bits;
    operator float() const {  // of finite numbers
        int exponent = bits >> 10 & 31, digits = (bits & 1023) + (exponent ? 1024 : 0);
        return __builtin_ldexpf(bits >> 15 ? -digits : digits, (exponent ? exponent : 1) - 25);
    }
};
#define CALLED
#endif
typedef unsigned long long u64;
// Byte by byte: ptxas merges the stores of copies of packed structs to stores that are not aligned.
inline void copy_bytes(volatile void* to, const volatile void* from, decltype(sizeof(0)) size) {
#ifdef __CUDACC_RTC__
#pragma unroll 1
#endif
    for (decltype(sizeof(0)) i = 0; i < size; ++i) ((volatile unsigned char*)to)[i] = ((const volatile unsigned char*)from)[i];
}
inline void add(u64& h, u64 v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull; h ^= h >> 29; }
template <class T> struct code { enum { is = 99 }; };
CODES

template <class T, bool = __is_enum(T)> struct number { typedef T type; };
template <class T> struct number<T, true> { typedef __underlying_type(T) type; };
template <class T> struct fold {  // of integers and enumerations
    typedef typename number<T>::type N;
    static void mix(u64& h, const T& v) { add(h, u64(N(v))); }
    static void fill(u64& h, T& v) { add(h, 3); v = T(N(h >> 13)); }
};
template <class T> void mix(u64& h, const T& v) { fold<T>::mix(h, v); }
template <class T> void fill(u64& h, T& v) { fold<T>::fill(h, v); }
template <> struct fold<bool> {
    static void mix(u64& h, const bool& v) { add(h, v); }
    static void fill(u64& h, bool& v) { add(h, 4); v = h >> 17 & 1; }
};
template <> struct fold<float> {
    static void mix(u64& h, const float& v) { add(h, __builtin_bit_cast(unsigned, v)); }
    static void fill(u64& h, float& v) { add(h, 5); v = short(h >> 11) / 4.0f; }
};
template <> struct fold<double> {
    static void mix(u64& h, const double& v) { add(h, __builtin_bit_cast(u64, v)); }
    static void fill(u64& h, double& v) { add(h, 6); v = short(h >> 11) / 8.0; }
};
template <class T, decltype(sizeof(0)) N> struct fold<T[N]> {
    static void mix(u64& h, const T (&v)[N]) { for (auto& each : v) ::mix(h, each); }
    static void fill(u64& h, T (&v)[N]) { for (auto& each : v) ::fill(h, each); }
};
template <class T> struct fold<T*> {
    static void mix(u64& h, T* v) { if (v) for (int i = 0; i < 2; ++i) ::mix(h, v[i]); else add(h, 7); }
};
template <> struct fold<const void*> {
    static void mix(u64& h, const void* v) { ::mix(h, (const unsigned char*)v); }
};
template <> struct fold<void*> : fold<const void*> {};
template <> struct fold<decltype(nullptr)> { static void mix(u64& h, decltype(nullptr)) { add(h, 7); } };
#ifdef WITH_STD
template <> struct fold<__half> {
    static void mix(u64& h, const __half& v) { add(h, __builtin_bit_cast(unsigned short, v)); }
    static void fill(u64& h, __half& v) { add(h, 9); v = __builtin_bit_cast(__half, (unsigned short)(0x3C00 | (h >> 20 & 0x3FF))); }
};
template <class T> struct fold<S::complex<T>> {
    static void mix(u64& h, const S::complex<T>& v) { ::mix(h, v.real()); ::mix(h, v.imag()); }
    static void fill(u64& h, S::complex<T>& v) { T r, i; ::fill(h, r); ::fill(h, i); v = S::complex<T>(r, i); }
};
template <class A, class B> struct fold<S::pair<A, B>> {
    static void mix(u64& h, const S::pair<A, B>& v) { ::mix(h, v.first); ::mix(h, v.second); }
    static void fill(u64& h, S::pair<A, B>& v) { ::fill(h, v.first); ::fill(h, v.second); }
};
template <class A, S::size_t N> struct fold<S::array<A, N>> {
    static void mix(u64& h, const S::array<A, N>& v) { for (auto& each : v) ::mix(h, each); }
    static void fill(u64& h, S::array<A, N>& v) { for (auto& each : v) ::fill(h, each); }
};
template <class... A> struct fold<S::tuple<A...>> {
    static void mix(u64& h, const S::tuple<A...>& v) { S::apply([&](const A&... a) { (::mix(h, a), ...); }, v); }
    static void fill(u64& h, S::tuple<A...>& v) { S::apply([&](A&... a) { (::fill(h, a), ...); }, v); }
};
#endif
inline void text(u64& h, const char* v) { for (; *v; ++v) add(h, *v); }
template <class T> void typed(u64& h, const T&) { add(h, code<T>::is); add(h, sizeof(T)); }
struct Doubled { template <class T> T operator()(T x) const { return T(x + x); } };
inline int squared(int x) { return int(unsigned(x) * unsigned(x)); }

#ifndef __CUDACC_RTC__
static u64* results;
template <class T> void put(const T& v);
template <class T> struct giver {
    static void put(const T& v) { *results = 0; memcpy(results++, &v, sizeof v); }
};
template <class T> void put(const T& v) { giver<T>::put(v); }
template <class T, std::size_t N> struct giver<T[N]> { static void put(const T (&v)[N]) { for (auto& each : v) ::put(each); } };
template <class T> struct giver<T*> { static void put(T* v) { ::put(*v); } };
template <class T> struct giver<std::complex<T>> { static void put(const std::complex<T>& v) { ::put(v.real()); ::put(v.imag()); } };
template <class A, class B> struct giver<std::pair<A, B>> { static void put(const std::pair<A, B>& v) { ::put(v.first); ::put(v.second); } };
template <class A, std::size_t N> struct giver<std::array<A, N>> { static void put(const std::array<A, N>& v) { for (auto& each : v) ::put(each); } };
template <class... A> struct giver<std::tuple<A...>> {
    static void put(const std::tuple<A...>& v) { std::apply([](const A&... a) { (::put(a), ...); }, v); }
};
// What a parameter P of a C function gets of an argument, whose bytes are passed.
template <class P, class A> P given(A& a) {
    using Bare = std::remove_cv_t<A>;
    constexpr bool is_address = std::is_pointer_v<Bare> || std::is_null_pointer_v<Bare>;
    if constexpr (std::is_reference_v<P>) {
        using T = std::remove_reference_t<P>;
        if constexpr (is_address) return static_cast<P>(*(T*)a);
        else return static_cast<P>(*(T*)&a);
    } else if constexpr (std::is_pointer_v<P> && is_address) return (P)a;
    else if constexpr (std::is_pointer_v<P>) return (P)&a;
    else {
        std::remove_cv_t<P> p;
        static_assert(sizeof p == sizeof a);
        memcpy((void*)&p, (const void*)&a, sizeof p);
        return p;
    }
}
#endif

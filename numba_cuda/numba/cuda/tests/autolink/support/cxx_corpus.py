# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: E501
"""Device functions and methods of header libraries, each with two lists of argument types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.cuda import types

f32, f64, i8, i32, i64 = types.float32, types.float64, types.int8, types.int32, types.int64
u32, u64 = types.uint32, types.uint64
F, I, L = f32[::1], i32[::1], i64[::1]  # noqa: E741

Calls = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Corpus:
    """A library and its functions: name or lambda, and the argument types of the calls. *is_quick* are those that take
    little time to compile."""

    name: str
    source: str
    functions: tuple[tuple[str, Calls], ...]
    namespace: str = ""
    is_quick: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def _each(names: str, *calls: tuple[Any, ...]) -> list[tuple[str, Calls]]:
    return [(name, calls) for name in names.split()]


def _lambdas(texts: Sequence[str], *calls: tuple[Any, ...]) -> list[tuple[str, Calls]]:
    return [(text, calls) for text in texts]


_MATH = Corpus(
    "CUDA math API",
    "",
    (
        *_each(
            "sinf cosf tanf asinf acosf atanf sinhf coshf tanhf asinhf acoshf atanhf expf exp2f exp10f expm1f logf log2f"
            " log10f log1pf logbf sqrtf rsqrtf cbrtf rcbrtf fabsf floorf ceilf truncf rintf nearbyintf roundf erff erfcf"
            " erfinvf erfcinvf erfcxf normcdff normcdfinvf lgammaf tgammaf j0f j1f y0f y1f sinpif cospif cyl_bessel_i0f"
            " __sinf __cosf __expf __logf __saturatef __frcp_rn __fsqrt_rn",
            (f32,), (i32,),
        ),
        *_each("sin cos tan exp log sqrt rsqrt fabs floor ceil trunc rint erf lgamma tgamma cbrt", (f32,), (f64,)),
        *_each("lrintf llrintf lroundf llroundf ilogbf", (f32,), (f64,)),
        *_each("powf atan2f fmodf remainderf hypotf copysignf fmaxf fminf fdimf nextafterf rhypotf __powf __fdividef"
               " __fadd_rn __fmul_rz", (f32, f32), (f64, i32)),
        *_each("max min", (i32, i32), (u64, u64)),
        *_each("fma", (f32, f32, f32), (f64, f64, f64)),
        *_each("pow atan2 hypot fmod", (f32, f32), (f64, f64)),
        *_each("__popc __clz __brev __ffs", (u32,), (i32,)),
        *_each("__popcll __clzll __brevll __ffsll", (u64,), (i64,)),
        *_each("__mul24 __mulhi __hadd __rhadd __uhadd __umulhi", (i32, i32), (u32, u32)),
        *_each("__byte_perm __funnelshift_l __funnelshift_r __sad __usad", (u32, u32, u32), (i32, i32, i32)),
        *_each("__float2int_rn __float2uint_rz __float2ll_rd __float_as_int __float_as_uint", (f32,), (f64,)),
        *_each("__int2float_rn __int_as_float __int2double_rn", (i32,), (u32,)),
        *_each("__vadd2 __vadd4 __vmaxs2 __vabsdiffu4 __vcmpeq4", (u32, u32), (i32, i32)),
        *_each("make_float2 make_double2 make_int2", (f32, f32), (i32, i32)),
        *_each("make_float3 make_int3 make_double3", (f32, f32, f32), (i32, i32, i32)),
    ),
    is_quick=True,
)  # fmt: skip

_CMATH = Corpus(
    "cuda::std cmath",
    "#include <cuda/std/cmath>",
    (
        *_each(
            "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p logb sqrt"
            " cbrt fabs floor ceil trunc rint nearbyint round erf erfc lgamma tgamma lround llround lrint llrint ilogb"
            " isnan isinf isfinite isnormal signbit fpclassify abs",
            (f32,), (f64,),
        ),
        *_each("pow atan2 fmod remainder hypot fmax fmin nextafter isgreater isless islessgreater isunordered",
               (f32, f32), (f64, f32)),
        *_each("copysign fdim", (f32, f32), (f64, f64)),
        *_each("fma", (f32, f32, f32), (f64, f64, f64)),
        *_each("hypot", (f32, f32, f32), (f64, f64, f64)),
        *_each("lerp", (f32, f32, f32), (f64, f64, f64)),
        *_each("ldexp scalbn", (f32, i32), (f64, i32)),
    ),
    "cuda::std",
)  # fmt: skip

_ALGORITHM = Corpus(
    "cuda::std algorithm",
    "#include <cuda/std/algorithm>\n#include <cuda/std/functional>\n#include <cuda/std/utility>",
    (
        *_each("min max", (f32, f32), (i64, i64)),
        *_each("clamp", (f32, f32, f32), (i64, i64, i64)),
        *_each("min_element max_element is_sorted reverse is_sorted_until sort_heap make_heap is_heap unique adjacent_find", (F, F), (I, I)),
        *_each("find count lower_bound upper_bound binary_search remove fill equal_range", (F, F, f32), (I, I, i32)),
        *_each("equal swap_ranges copy copy_backward move", (F, F, F), (I, I, I)),
        *_each("rotate partial_sort", (F, F, F), (I, I, I)),
        *_each("replace", (F, F, f32, f32), (I, I, i32, i32)),
        *_each("merge", (F, F, F, F, F), (I, I, I, I, I)),
        *_each("includes search lexicographical_compare find_end find_first_of", (F, F, F, F), (I, I, I, I)),
        *_each("make_pair", (f32, i32), (i64, i8)),
        *_lambdas(["[](auto* a, auto n) { return all_of(a, a + n, [](auto x) { return x > 0; }); }",
                   "[](auto* a, auto n) { return any_of(a, a + n, [](auto x) { return x > 0; }); }",
                   "[](auto* a, auto n) { return count_if(a, a + n, [](auto x) { return x > 0; }); }",
                   "[](auto* a, auto n) { return find_if(a, a + n, [](auto x) { return x > 0; }); }",
                   "[](auto* a, auto n) { for_each(a, a + n, [](auto& x) { x += 1; }); }"], (F, i32), (L, i64)),
    ),
    "cuda::std",
)  # fmt: skip

_BLOCK = "[](auto x) {{ using B = cub::{}<decltype(x), {}>; __shared__ typename B::TempStorage t; return B(t){}; }}"
_WARP = "[](auto x) {{ using W = cub::{}<decltype(x)>; __shared__ typename W::TempStorage t; return W(t){}; }}"
_CUB = Corpus(
    "CUB",
    "#include <cub/block/block_reduce.cuh>\n#include <cub/block/block_scan.cuh>\n#include <cub/warp/warp_reduce.cuh>\n"
    "#include <cub/warp/warp_scan.cuh>\n#include <cub/thread/thread_operators.cuh>\n"
    "#include <cub/block/block_adjacent_difference.cuh>",
    (
        *_lambdas([_BLOCK.format("BlockReduce", n, m) for n in (32, 128) for m in (".Sum(x)", ".Sum(x, 7)")], (f32,), (i64,)),
        *_lambdas([_BLOCK.format("BlockScan", 64, f".{m}(x, y), y").replace("return B", "decltype(x) y; return B")
                   for m in ("InclusiveSum", "ExclusiveSum")], (f32,), (i64,)),
        *_lambdas([_WARP.format("WarpReduce", m) for m in (".Sum(x)", ".Sum(x, 5)")], (f32,), (i32,)),
        *_lambdas([_WARP.format("WarpScan", ".InclusiveSum(x, y), y").replace("return W", "decltype(x) y; return W")],
                  (f32,), (i32,)),
        *_lambdas(["[](auto x) { return cub::ShuffleUp<32>(x, 1, 0, 0xffffffffu); }",
                   "[](auto x) { return cub::ShuffleIndex<32>(x, 1, 0xffffffffu); }"], (f32,), (i64,)),
    ),
)  # fmt: skip

_GROUPS = Corpus(
    "cooperative groups",
    "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>",
    (
        *_lambdas([f"[](auto x) {{ auto g = this_thread_block(); return {e}; }}" for e in (
            "g.thread_rank()", "g.size()", "g.num_threads()", "g.thread_index()", "g.group_index()", "g.group_dim()",
            "g.sync()", "x")], (f32,), (i32,)),
        *_lambdas([f"[](auto x) {{ auto g = tiled_partition<16>(this_thread_block()); return {e}; }}" for e in (
            "g.thread_rank()", "g.size()", "g.meta_group_rank()", "g.meta_group_size()", "g.shfl(x, 0)",
            "g.shfl_down(x, 1)", "g.shfl_up(x, 1)", "g.shfl_xor(x, 1)", "g.any(x > 0)", "g.all(x > 0)", "g.ballot(x > 0)",
            "g.match_any(x)", "reduce(g, x, plus<decltype(x)>())", "reduce(g, x, greater<decltype(x)>())")],
                  (f32,), (i32,)),
        *_lambdas(["[](auto x) { auto g = coalesced_threads(); return g.shfl(x, 0); }",
                   "[](auto x) { auto g = coalesced_threads(); return g.thread_rank(); }"], (f32,), (i32,)),
    ),
    "cooperative_groups",
)  # fmt: skip

_HARD = Corpus(
    "hard C++",
    """
    namespace hard {
    template <class T> struct Box { T value; __device__ Box(T v) : value(v) {} __device__ operator T() const { return value; } };
    template <class T> __device__ Box<T> boxed(T v) { return v; }
    template <class T> __device__ T unboxed(Box<T> b) { return b.value; }
    __device__ int by_rank(int) { return 1; }
    __device__ long long by_rank(long long) { return 2; }
    __device__ double by_rank(double) { return 3; }
    template <class... T> __device__ auto sum(T... v) { return (v + ... + 0); }
    template <class... T> __device__ unsigned count(T...) { return sizeof...(T); }
    template <class T> __device__ auto promoted(T v) { return +v; }
    template <class T> __device__ decltype(auto) through(T&& v) { return static_cast<T&&>(v); }
    template <class T, class U> __device__ auto common(T a, U b) { return true ? a : b; }
    template <class T> __device__ T recursive(T n) { return n <= 1 ? 1 : n * recursive(T(n - 1)); }
    template <class T> constexpr __device__ bool is_small(T) { return sizeof(T) <= 4; }
    template <int N> struct Repeat { template <class F, class T> static __device__ T call(F f, T x) {
        for (int i = 0; i < N; ++i) x = f(x); return x; } };
    template <class T> struct Traits { using wide = double; };
    template <> struct Traits<int> { using wide = long long; };
    template <class T> __device__ typename Traits<T>::wide widened(T v) { return v; }
    inline namespace v2 { template <class T> __device__ T versioned(T v) { return v; } }
    struct Base { __device__ virtual int id() { return 1; } };
    struct Derived : Base { __device__ int id() override { return 2; } };
    template <class T> __device__ int dynamic(T) { Derived d; Base& b = d; return b.id(); }
    enum class Kind : unsigned char { a, b };
    template <class T> __device__ Kind kind(T v) { return v > 0 ? Kind::a : Kind::b; }
    template <class T> struct Members { T first; T second[2]; Kind kind; };
    template <class T> __device__ Members<T> members(T v) { return {v, {v, v}, Kind::b}; }
    template <class T> __device__ T* advance(T* p) { return p + 1; }
    template <class T> __device__ const T& at(const T* p) { return *p; }
    template <class T, unsigned N = 4> __device__ T defaulted(T v, int shift = N) { return v + shift; }
    __device__ auto adder(float x) { return [x](float y) { return x + y; }; }
    template <class T> __device__ auto curried(T x) { return adder(x)(1); }
    }
    __device__ float operator""_half(long double x) { return x / 2; }
    """,
    (
        *_each("boxed promoted through recursive is_small widened versioned dynamic kind members defaulted curried by_rank",
               (f32,), (i32,)),
        *_each("sum count common", (f32, i32), (i64, i8)),
        *_each("advance at", (F,), (L,)),
        ("unboxed<float>", ((f32,), (i32,))),
        ("Repeat<3>::call", ()),
        ("sum", ((), (f32, f32, f32))),
        ("defaulted<short>", ((f32,), (i32, i32))),
        *_lambdas(["[](auto x) { return 3.0_half * x; }", "[](auto x) { return boxed(x).value; }",
                   "[](auto x) { return Repeat<3>::call([](auto y) { return y + y; }, x); }"], (f32,), (i64,)),
    ),
    "hard",
    is_quick=True,
)  # fmt: skip

_BITS = Corpus(
    "half and bfloat16",
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>",
    (
        *_each("hsin hcos hexp hlog hsqrt hrsqrt hfloor hceil htrunc hrint __habs __hneg __hisnan __half2float __half2int_rn",
               (types.float16,), (types.float16,)),
        *_each("__hadd __hsub __hmul __hdiv __hmax __hmin __heq __hlt", (types.float16, types.float16),
               (types.bfloat16, types.bfloat16)),
        *_each("__float2half __float2bfloat16", (f32,), (f64,)),
        *_each("__hfma", (types.float16,) * 3, (types.bfloat16,) * 3),
    ),
)  # fmt: skip

CORPORA = (
    _MATH,
    _CMATH,
    _ALGORITHM,
    _CUB,
    _GROUPS,
    _HARD,
    _BITS,
)

// SPDX-License-Identifier: BSD-2-Clause
// Include this once for each primitive of a translation unit, to reserve shared memory in the next slot:
//
//     #define AUTOLINK_CUB_NEEDS  bytes per block, bytes per thread of a warp, warps per block
//     #include "cub_reserve_storage.cuh"
//
// The slots are counted in binary, because NVRTC has no __COUNTER__.

#include "cub_storage.cuh"

#ifndef AUTOLINK_CUB_BIT0
#define AUTOLINK_CUB_BIT0 0
#define AUTOLINK_CUB_BIT1 0
#define AUTOLINK_CUB_BIT2 0
#define AUTOLINK_CUB_BIT3 0
#define AUTOLINK_CUB_BIT4 0
#define AUTOLINK_CUB_BIT5 0
#define AUTOLINK_CUB_BIT6 0
#define AUTOLINK_CUB_BIT7 0
#define AUTOLINK_CUB_BIT8 0
#define AUTOLINK_CUB_BIT9 0
#define AUTOLINK_CUB_SLOT (AUTOLINK_CUB_BIT0 + 2 * AUTOLINK_CUB_BIT1 + 4 * AUTOLINK_CUB_BIT2 + 8 * AUTOLINK_CUB_BIT3 + 16 * AUTOLINK_CUB_BIT4 \
    + 32 * AUTOLINK_CUB_BIT5 + 64 * AUTOLINK_CUB_BIT6 + 128 * AUTOLINK_CUB_BIT7 + 256 * AUTOLINK_CUB_BIT8 + 512 * AUTOLINK_CUB_BIT9)
#endif

#if AUTOLINK_CUB_BIT0 == 0
#undef AUTOLINK_CUB_BIT0
#define AUTOLINK_CUB_BIT0 1
#else
#undef AUTOLINK_CUB_BIT0
#define AUTOLINK_CUB_BIT0 0
#if AUTOLINK_CUB_BIT1 == 0
#undef AUTOLINK_CUB_BIT1
#define AUTOLINK_CUB_BIT1 1
#else
#undef AUTOLINK_CUB_BIT1
#define AUTOLINK_CUB_BIT1 0
#if AUTOLINK_CUB_BIT2 == 0
#undef AUTOLINK_CUB_BIT2
#define AUTOLINK_CUB_BIT2 1
#else
#undef AUTOLINK_CUB_BIT2
#define AUTOLINK_CUB_BIT2 0
#if AUTOLINK_CUB_BIT3 == 0
#undef AUTOLINK_CUB_BIT3
#define AUTOLINK_CUB_BIT3 1
#else
#undef AUTOLINK_CUB_BIT3
#define AUTOLINK_CUB_BIT3 0
#if AUTOLINK_CUB_BIT4 == 0
#undef AUTOLINK_CUB_BIT4
#define AUTOLINK_CUB_BIT4 1
#else
#undef AUTOLINK_CUB_BIT4
#define AUTOLINK_CUB_BIT4 0
#if AUTOLINK_CUB_BIT5 == 0
#undef AUTOLINK_CUB_BIT5
#define AUTOLINK_CUB_BIT5 1
#else
#undef AUTOLINK_CUB_BIT5
#define AUTOLINK_CUB_BIT5 0
#if AUTOLINK_CUB_BIT6 == 0
#undef AUTOLINK_CUB_BIT6
#define AUTOLINK_CUB_BIT6 1
#else
#undef AUTOLINK_CUB_BIT6
#define AUTOLINK_CUB_BIT6 0
#if AUTOLINK_CUB_BIT7 == 0
#undef AUTOLINK_CUB_BIT7
#define AUTOLINK_CUB_BIT7 1
#else
#undef AUTOLINK_CUB_BIT7
#define AUTOLINK_CUB_BIT7 0
#if AUTOLINK_CUB_BIT8 == 0
#undef AUTOLINK_CUB_BIT8
#define AUTOLINK_CUB_BIT8 1
#else
#undef AUTOLINK_CUB_BIT8
#define AUTOLINK_CUB_BIT8 0
#if AUTOLINK_CUB_BIT9 == 0
#undef AUTOLINK_CUB_BIT9
#define AUTOLINK_CUB_BIT9 1
#else
#undef AUTOLINK_CUB_BIT9
#define AUTOLINK_CUB_BIT9 0
#error "a kernel can have 1023 different calls of CUB primitives"
#endif
#endif
#endif
#endif
#endif
#endif
#endif
#endif
#endif
#endif

template <>
struct autolink_cub::reserved<AUTOLINK_CUB_SLOT>
    : autolink_cub::reserved_too<autolink_cub::reserved<AUTOLINK_CUB_SLOT - 1>, AUTOLINK_CUB_NEEDS> {};

#undef AUTOLINK_CUB_NEEDS

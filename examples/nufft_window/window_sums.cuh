// SPDX-License-Identifier: BSD-2-Clause
// Sums over the grid points around a nonuniform point, weighted by any window function.
//
// The grid is periodic, of Size0 x Size1 complex numbers, C-contiguous. A point (x, y) is in units of the spacing, from
// 0 to (Size0, Size1), and Width grid points are within its window in each dimension. A window is called with a
// distance from 0 at the point to 1 at the edge.

#pragma once

namespace window_sums {

// The grid points of a dimension that are within the window of a point.
template <int Width, int Size, class T, class Window>
struct Reach {
    const Window& window;
    T x, first;

    __device__ Reach(T x, const Window& window) : window(window), x(x), first(ceil(x - T(Width) / 2)) {}

    __device__ T weight(int i) const { return window(min(abs(first + i - x) * (T(2) / Width), T(1))); }

    __device__ int place(int i) const {
        const int at = int(first) + i;
        return at < 0 ? at + Size : at < Size ? at : at - Size;
    }
};

template <int Width, int Size0, int Size1, class T, class Complex, class Window>
__device__ Complex interpolate(T x, T y, const Complex* grid, const Window& window) {
    const Reach<Width, Size0, T, Window> rows(x, window);
    const Reach<Width, Size1, T, Window> columns(y, window);
    T weight[Width];
    int place[Width];
#pragma unroll
    for (int j = 0; j < Width; ++j) {
        weight[j] = columns.weight(j);
        place[j] = columns.place(j);
    }
    Complex sum{0, 0};
#pragma unroll 1
    for (int i = 0; i < Width; ++i) {
        const Complex* line = grid + rows.place(i) * Size1;
        Complex along{0, 0};
#pragma unroll
        for (int j = 0; j < Width; ++j) {
            const Complex value = line[place[j]];
            along.x += weight[j] * value.x;
            along.y += weight[j] * value.y;
        }
        const T across = rows.weight(i);
        sum.x += across * along.x;
        sum.y += across * along.y;
    }
    return sum;
}

template <int Width, int Size0, int Size1, class T, class Complex, class Window>
__device__ void spread(T x, T y, Complex value, Complex* grid, const Window& window) {
    const Reach<Width, Size0, T, Window> rows(x, window);
    const Reach<Width, Size1, T, Window> columns(y, window);
    T weight[Width];
    int place[Width];
#pragma unroll
    for (int j = 0; j < Width; ++j) {
        weight[j] = columns.weight(j);
        place[j] = columns.place(j);
    }
#pragma unroll 1
    for (int i = 0; i < Width; ++i) {
        Complex* line = grid + rows.place(i) * Size1;
        const T across = rows.weight(i);
#pragma unroll
        for (int j = 0; j < Width; ++j) {
            atomicAdd(&line[place[j]].x, across * weight[j] * value.x);
            atomicAdd(&line[place[j]].y, across * weight[j] * value.y);
        }
    }
}

}  // namespace window_sums

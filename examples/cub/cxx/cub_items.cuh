// SPDX-License-Identifier: BSD-2-Clause
// The items of a thread, copied from the caller's array into registers and back.

#pragma once

namespace autolink_cub {

template <class T, int N>
struct items {
    T values[N];

    __device__ items() {}

    __device__ explicit items(const T* array) {
#pragma unroll
        for (int i = 0; i < N; ++i) values[i] = array[i];
    }

    __device__ void copy_to(T* array) const {
#pragma unroll
        for (int i = 0; i < N; ++i) array[i] = values[i];
    }
};

}  // namespace autolink_cub

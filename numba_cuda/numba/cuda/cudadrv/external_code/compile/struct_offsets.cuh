// SPDX-License-Identifier: BSD-2-Clause
// Whether it is known where the members of a struct are, whatever they are called, and wherever packing puts them. It
// follows what the module prototype_assertions writes for each count of members, in its namespace. "$" stands for "nca_".
template <class $t> constexpr __device__ int $members();  // how many members a struct has; 0 if it is not taken apart
struct $are_there {
    template <class... $a> constexpr __device__ bool operator()(const $a&...) const { return true; }
};
// Not if there are bit-fields, which would be copied, or references: their values are not known at compile time.
template <class $t, bool = $bound<$members<$t>()>::$in(*($t*)0, $are_there{})>
constexpr __device__ bool $has_offsets(int) { return true; }
template <class> constexpr __device__ bool $has_offsets(long) { return false; }

// SPDX-License-Identifier: BSD-2-Clause
// Where the members of structs are, whatever they are called, and wherever packing puts them. It follows what the module
// prototype_assertions writes for each count of members, in its namespace. "$" stands for "nca_".
template <class $t> constexpr __device__ int $members();  // how many members a struct has; 0 if it is not taken apart

// The offset of each member: the first byte of its value, where each byte tells one bit of its offset.
template <decltype(sizeof(0)) $n> struct $bytes { unsigned char $b[$n]; };
template <class $e, decltype(sizeof(0)) $n> constexpr __device__ int $first_byte(const $e (&$v)[$n]);
template <class $t> constexpr __device__ int $first_byte(const $t& $v);
struct $first_byte_of {
    template <class $a, class... $b> constexpr __device__ int operator()(const $a& $v, const $b&...) const {
        return $first_byte($v);
    }
};
template <class $e, decltype(sizeof(0)) $n> constexpr __device__ int $first_byte(const $e (&$v)[$n]) {
    return $first_byte($v[0]);
}
template <class $t> constexpr __device__ int $first_byte(const $t& $v) {
    if constexpr ($members<$t>() > 0) return $bound<$members<$t>()>::$in($v, $first_byte_of{});
    else {
        $bytes<sizeof($t)> $b = __builtin_bit_cast($bytes<sizeof($t)>, $v);
        return $b.$b[0];
    }
}
struct $offsets { int $at[$most] = {}; };
__device__ int $unknown();
struct $add_bits {
    $offsets& $o;
    int $bit;
    template <class... $a> constexpr __device__ void operator()(const $a&... $v) const {
        int $i = 0;
        (($o.$at[$i++] |= $first_byte($v) << $bit), ...);
    }
};
template <class $t> constexpr __device__ $offsets $offsets_of() {
    $offsets $o;
    if constexpr (__is_trivially_copyable($t))
        for (int $bit = 0; sizeof($t) >> $bit; ++$bit) {
            $bytes<sizeof($t)> $b{};
            for (int $i = 0; $i < int(sizeof($t)); ++$i) $b.$b[$i] = $i >> $bit & 1;
            $t $v = __builtin_bit_cast($t, $b);
            $bound<$members<$t>()>::$in($v, $add_bits{$o, $bit});
        }
    else $o.$at[0] = $unknown();
    return $o;
}
// Not of structs with pointers, unions or bit-fields: these are not read from bytes at compile time.
template <class $t, int = $offsets_of<$t>().$at[0]> constexpr __device__ bool $has_offsets(int) { return true; }
template <class> constexpr __device__ bool $has_offsets(long) { return false; }

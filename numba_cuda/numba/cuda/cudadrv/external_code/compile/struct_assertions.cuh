// SPDX-License-Identifier: BSD-2-Clause
// Follows prototype_assertions.cuh, what the module prototype_assertions writes for each count of members, and
// struct_offsets.cuh: what compares the numbers in structs that are passed by value. "$" stands for "nca_".
namespace numba_cuda_autolink_prototypes {
// Converts to a base class alone.
template <class $t> struct $base_of {
    template <class $u, int (*)[__is_base_of($u, $t) && !__is_base_of($t, $u) ? 1 : -1] = nullptr>
    constexpr __device__ operator $u() const;
};
template <class $t> __device__ auto $has_base(int) -> decltype($t{$base_of<$t>{}}, $yes{});
template <class> __device__ $no $has_base(long);
template <class $t, int $n = 1> constexpr __device__ int $member_count() {
    if constexpr ($n > $most) return 0;
    else if constexpr (sizeof($empty<$n>::template $in<$t>(0)) != sizeof($yes)) return $n - 1;
    else return $member_count<$t, $n + 1>();
}
template <class $t> constexpr __device__ int $members() {
    if constexpr (!__is_class($t) || !__is_aggregate($t) || __is_empty($t)) return 0;
    else if constexpr (sizeof($has_base<$t>(0)) == sizeof($yes)) return 0;
    else return $member_count<$t>();
}
struct $types_of { template <class... $a> __device__ $list<$a...> operator()(const $a&...) const; };

// The numbers, pointers and opaque parts of a type, in the order of their offsets.
struct $leaves {
    int $n = 0, $at[256] = {}, $size[256] = {}, $is[256] = {};
    constexpr __device__ void $add(int $o, int $s, int $k) {
        if ($n < 256) { $at[$n] = $o; $size[$n] = $s; $is[$n] = $k; }
        ++$n;
    }
};
template <class $t> struct $parts;
template <class $e, decltype(sizeof(0)) $n> struct $parts<$e[$n]> {
    static constexpr __device__ void $list($leaves& $l, int $o) {
        for (int $i = 0; $i < int($n) && $l.$n < 256; ++$i) $parts<$e>::$list($l, $o + $i * int(sizeof($e)));
    }
};
template <class $t, class $m> struct $members_in;
template <class $t, class... $m> struct $members_in<$t, $list<$m...>> {
    static constexpr __device__ void $list($leaves& $l, int $o) {
        if constexpr ($has_offsets<$t>(0)) {
            constexpr $offsets $places = $bound<sizeof...($m)>::template $places<$t>();
            int $i = 0;
            ($parts<$m>::$list($l, $o + $places.$at[$i++]), ...);
        } else $l.$add($o, sizeof($t), $class);
    }
};
template <class $t> __device__ $t& $object() noexcept;
template <class $t> struct $parts {
    static constexpr __device__ void $list($leaves& $l, int $o) {
        if constexpr ($members<$t>() > 0)
            $members_in<$t, decltype($bound<$members<$t>()>::$in($object<$t>(), $types_of{}))>::$list($l, $o);
        else $l.$add($o, sizeof($t), $kind<$t>::$is);
    }
};
template <class $t> struct $parts<const $t> : $parts<$t> {};
template <> struct $parts<$half_type> {
    static constexpr __device__ void $list($leaves& $l, int $o) { $l.$add($o, 2, $half); }
};
#ifdef __CUDA_BF16_H__
template <> struct $parts<$bfloat_type> {
    static constexpr __device__ void $list($leaves& $l, int $o) { $l.$add($o, 2, $bfloat); }
};
#endif
// A number of 8 bytes may be a pointer, and one of 16 bits what a half has in it.
enum { $missing, $present, $hidden };
constexpr __device__ int $find_leaf(const $leaves& $l, int $at, int $size, int $is) {
    for (int $i = 0; $i < $l.$n; ++$i) {
        int $o = $at - $l.$at[$i], $k = $l.$is[$i];
        if ($k == $class || $k == $other) {
            if ($o >= 0 && $o + $size <= $l.$size[$i]) return $size == 2 && $l.$size[$i] == 2 ? $present : $hidden;
        } else if ($o == 0 && $size == $l.$size[$i]) {
            bool $fits = $k == $is || ($size == 8 && $k != $floating && $is != $floating);
            bool $is_byte = $is == $byte && ($k == $integer || $k == $boolean);
            bool $is_bits = ($is == $half || $is == $bfloat) && $k == $integer;
            return $fits || $is_byte || $is_bits ? $present : $missing;
        }
    }
    return $missing;
}
template <class $t> constexpr __device__ $leaves $leaves_of() {
    $leaves $l;
    $parts<$t>::$list($l, 0);
    return $l;
}
template <class $t, int... $at, int... $size, int... $is>
constexpr __device__ int $find_leaves($list<$leaf_at<$at, $size, $is>...>) {
    constexpr $leaves $l = $leaves_of<$t>();
    if ($l.$n > 256) return $hidden;
    if ((($find_leaf($l, $at, $size, $is) == $missing) || ...)) return $missing;
    return (($find_leaf($l, $at, $size, $is) == $hidden) || ...) ? $hidden : $present;
}
template <class $p, class... $l, class $t> struct $leaves_fit<$with_leaves<$p, $l...>, $t> {
    template <bool $is_class, class $u> struct $found : $constant<$present> {};
    template <class $u> struct $found<true, $u> : $constant<$find_leaves<$u>($list<$l...>{})> {};
    enum {
        $as = $found<int($kind<$t>::$is) == $class, typename $bare<$t>::$type>::$is,
        $is = int($as) != $missing,
        $hides = int($as) == $hidden
    };
};
template <int...> extern __device__ char $told;
}

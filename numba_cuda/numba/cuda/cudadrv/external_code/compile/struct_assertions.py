# SPDX-License-Identifier: BSD-2-Clause
"""Assertions of `prototype_assertions` that the numbers in a struct by value are where a tuple or a record has them.

What C++ cannot take apart, such as a class with private members, is not compared, nor what comes before C++17.
"""

from __future__ import annotations

_MOST_MEMBERS = 32


def _write_bound(n: int) -> str:
    names = ", ".join(f"$m{i}" for i in range(n))
    return (
        f"template <> struct $bound<{n}> {{ template <class $t, class $f> static constexpr __device__ decltype(auto)"
        f" $in($t& $v, $f $g) {{ auto& [{names}] = $v; return $g({names}); }} }};"
    )


def _write_empty(n: int) -> str:
    return (
        f"template <> struct $empty<{n}> {{ template <class $t> static __device__ auto $in(int)"
        f" -> decltype($t{{{', '.join(['{}'] * n)}}}, $yes{{}}); template <class> static __device__ $no $in(long); }};"
    )


# "$" stands for "nca_". Where the language is older, a call has no assertion of this kind.
def _write_counted() -> str:
    counts = range(1, _MOST_MEMBERS + 1)
    return "\n".join([*map(_write_bound, counts), *map(_write_empty, counts)])


# Precede all assertions.
LEAF_TEMPLATES = """
template <int... $n> struct $leaf_at;
template <class $p, class... $l> struct $with_leaves : $p {};
template <class $c> struct $plain_pattern { typedef $c $type; };
template <class $p, class... $f> struct $plain_pattern<$with_members<$p, $f...>> : $plain_pattern<$p> {};
template <class $c, class $t> struct $leaves_fit : $constant<1> {};
template <class $c, class $f, bool> struct $all_leaves : $constant<1> {};
template <class... $c, class... $f> struct $all_leaves<$list<$c...>, $list<$f...>, true> {
    enum { $is = $all<$leaves_fit<typename $plain_pattern<$c>::$type, $f>...>::$is };
};
"""
# Precede those of structs.
STRUCT_TEMPLATES = (
    """
#if __cplusplus >= 201703L
namespace numba_cuda_autolink_prototypes {
struct $yes { char $c[2]; };
struct $no { char $c[1]; };
template <int $n> struct $empty;
template <int $n> struct $bound;
GENERATED
// Converts to a base class alone.
template <class $t> struct $base_of {
    template <class $u, int (*)[__is_base_of($u, $t) && !__is_base_of($t, $u) ? 1 : -1] = nullptr>
    constexpr __device__ operator $u() const;
};
template <class $t> __device__ auto $has_base(int) -> decltype($t{$base_of<$t>{}}, $yes{});
template <class> __device__ $no $has_base(long);
template <class $t, int $n = 1> constexpr __device__ int $member_count() {
    if constexpr ($n > MOST) return 0;
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
template <class $t> constexpr __device__ void $list_leaves($leaves& $l, int $o) {
    if constexpr (int($kind<$t>::$is) == $class) $parts<$t>::$list($l, $o);
    else $l.$add($o, sizeof($t), $kind<$t>::$is);
}
template <class $e, decltype(sizeof(0)) $n> struct $parts<$e[$n]> {
    static constexpr __device__ void $list($leaves& $l, int $o) {
        for (int $i = 0; $i < int($n) && $l.$n < 256; ++$i) $parts<$e>::$list($l, $o + $i * int(sizeof($e)));
    }
};
template <class $t, class $m> struct $members_in;
template <class $t, class... $m> struct $members_in<$t, $list<$m...>> {
    static constexpr __device__ void $list($leaves& $l, int $o) {
        int $before = $l.$n, $end = 0;
        (($end += int(-unsigned($end) % alignof($m)), $parts<$m>::$list($l, $o + $end), $end += sizeof($m)), ...);
        // Packed, aligned to more, or with bit-fields.
        if ($end + int(-unsigned($end) % alignof($t)) != int(sizeof($t))) {
            $l.$n = $before;
            $l.$add($o, sizeof($t), $class);
        }
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
// A number of 8 bytes may be a pointer, and one of 16 bits what a half has in it.
constexpr __device__ bool $has_leaf(const $leaves& $l, int $at, int $size, int $is) {
    for (int $i = 0; $i < $l.$n; ++$i) {
        int $o = $at - $l.$at[$i], $k = $l.$is[$i];
        if ($k == $class || $k == $other) {
            if ($o >= 0 && $o + $size <= $l.$size[$i]) return true;
        } else if ($o == 0 && $size == $l.$size[$i])
            return $k == $is || ($size == 8 && $k != $floating && $is != $floating) || ($size == 2 && $is == $class);
    }
    return false;
}
template <class $t> constexpr __device__ $leaves $leaves_of() {
    $leaves $l;
    $parts<$t>::$list($l, 0);
    return $l;
}
template <class $t, int... $at, int... $size, int... $is>
constexpr __device__ bool $has_leaves($list<$leaf_at<$at, $size, $is>...>) {
    constexpr $leaves $l = $leaves_of<$t>();
    return $l.$n > 256 || ($has_leaf($l, $at, $size, $is) && ...);
}
template <class $p, class... $l, class $t> struct $leaves_fit<$with_leaves<$p, $l...>, $t> {
    enum { $is = int($kind<$t>::$is) != $class || $has_leaves<typename $bare<$t>::$type>($list<$l...>{}) };
};
}
#endif
""".replace(
        "GENERATED", "\n".join(write(n) for n in range(1, _MOST_MEMBERS + 1) for write in (_write_bound, _write_empty))
    )
    .replace("MOST", str(_MOST_MEMBERS))
    .replace("$", "nca_")
)

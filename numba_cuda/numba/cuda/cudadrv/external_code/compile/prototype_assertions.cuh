// SPDX-License-Identifier: BSD-2-Clause
// Follows the text of a translation unit: what compares the types of its functions with those that Python passes.
//
// "$" stands for "nca_": no macro of the user's is called that. Constants are enumerators, since static members of
// templates would be variables in the code. The module prototype_assertions reads the messages of the assertions.
namespace numba_cuda_autolink_prototypes {
// A byte is an integer or a bool, and the last two are those of 16 bits in a struct.
enum { $class, $integer, $floating, $pointer, $void, $function, $other, $boolean, $byte, $half, $bfloat };
template <int $k> struct $constant { enum { $is = $k }; };
template <class $t, bool = __is_enum($t)> struct $kind_of : $constant<__is_class($t) || __is_union($t) ? $class : $other> {};
template <class $t> struct $kind : $kind_of<$t> {};
template <class $t> struct $kind_of<$t, true> : $kind<__underlying_type($t)> {};
template <> struct $kind<void> : $constant<$void> {};
template <> struct $kind<float> : $constant<$floating> {};
template <> struct $kind<double> : $constant<$floating> {};
template <> struct $kind<long double> : $constant<$floating> {};
template <> struct $kind<bool> : $constant<$boolean> {};
template <> struct $kind<char> : $constant<$integer> {};
template <> struct $kind<signed char> : $constant<$integer> {};
template <> struct $kind<unsigned char> : $constant<$integer> {};
template <> struct $kind<wchar_t> : $constant<$integer> {};
template <> struct $kind<char16_t> : $constant<$integer> {};
template <> struct $kind<char32_t> : $constant<$integer> {};
#ifdef __cpp_char8_t
template <> struct $kind<char8_t> : $constant<$integer> {};
#endif
template <> struct $kind<short> : $constant<$integer> {};
template <> struct $kind<unsigned short> : $constant<$integer> {};
template <> struct $kind<int> : $constant<$integer> {};
template <> struct $kind<unsigned int> : $constant<$integer> {};
template <> struct $kind<long> : $constant<$integer> {};
template <> struct $kind<unsigned long> : $constant<$integer> {};
template <> struct $kind<long long> : $constant<$integer> {};
template <> struct $kind<unsigned long long> : $constant<$integer> {};
template <class $r, class... $f> struct $kind<$r($f...)> : $constant<$function> {};
template <class $r, class... $f> struct $kind<$r($f..., ...)> : $constant<$function> {};
#ifdef __cpp_noexcept_function_type
template <class $r, class... $f> struct $kind<$r($f...) noexcept> : $constant<$function> {};
template <class $r, class... $f> struct $kind<$r($f..., ...) noexcept> : $constant<$function> {};
#endif
template <class $t> struct $kind<$t*> : $constant<$pointer> {};
template <class $t> struct $kind<$t&> : $constant<$pointer> {};
template <class $t> struct $kind<$t&&> : $constant<$pointer> {};

template <class $t> struct $bare { typedef $t $type; };
template <class $t> struct $bare<const $t> : $bare<$t> {};
template <class $t> struct $bare<volatile $t> : $bare<$t> {};
template <class $t> struct $bare<const volatile $t> : $bare<$t> {};
template <class $t> struct $bare<$t[]> : $bare<$t> {};
template <class $t, decltype(sizeof(0)) $n> struct $bare<$t[$n]> : $bare<$t> {};
// An array of const is const, too.
template <class $t> struct $bare<const $t[]> : $bare<$t> {};
template <class $t> struct $bare<volatile $t[]> : $bare<$t> {};
template <class $t> struct $bare<const volatile $t[]> : $bare<$t> {};
template <class $t, decltype(sizeof(0)) $n> struct $bare<const $t[$n]> : $bare<$t> {};
template <class $t, decltype(sizeof(0)) $n> struct $bare<volatile $t[$n]> : $bare<$t> {};
template <class $t, decltype(sizeof(0)) $n> struct $bare<const volatile $t[$n]> : $bare<$t> {};

template <class $t, int $k, int $s, bool = int($kind<$t>::$is) == $k> struct $has {
    enum { $is = sizeof($t) == $s };
};
template <class $t, int $k, int $s> struct $has<$t, $k, $s, false> : $constant<0> {};

// Device code computes with long double as with double.
template <> struct $has<long double, $floating, 8, true> : $constant<1> {};

struct $anything {
    template <class $t> struct $fits : $constant<1> {};
    template <class $t> struct $holds : $constant<1> {};
};
struct $nothing {
    template <class $t> struct $fits : $constant<int($kind<$t>::$is) == $void> {};
};
struct $address {
    template <class $t> struct $fits {
        enum { $is = int($kind<$t>::$is) == $pointer || int($has<$t, $integer, 8>::$is) };
    };
    template <class $t> struct $holds : $fits<$t> {};
};
// The size of a reference is that of what it refers to.
struct $word {
    template <class $t> struct $fits : $address::template $fits<$t> {};
    template <class $t> struct $holds : $fits<$t> {};
};
template <int $s> struct $integer_of {
    template <class $t> struct $fits : $has<$t, $integer, $s> {};
    // Python has no arrays of pointers: their addresses are integers.
    template <class $t> struct $holds {
        enum { $is = int($has<$t, $integer, $s>::$is) || ($s == 8 && int($kind<$t>::$is) == $pointer) };
    };
};
struct $boolean_of {
    template <class $t> struct $fits : $has<$t, $boolean, 1> {};
    template <class $t> struct $holds : $fits<$t> {};
};
struct $byte_of {
    template <class $t> struct $fits {
        enum { $is = int($has<$t, $boolean, 1>::$is) || int($has<$t, $integer, 1>::$is) };
    };
    template <class $t> struct $holds : $fits<$t> {};
};
template <int $s> struct $floating_of {
    template <class $t> struct $fits : $has<$t, $floating, $s> {};
    template <class $t> struct $holds : $fits<$t> {};
};
template <class $t, int $a, bool> struct $aligned { enum { $is = alignof($t) == $a }; };
template <class $t, int $a> struct $aligned<$t, $a, false> : $constant<0> {};
template <int $s, int $a> struct $struct_of {
    template <class $t> struct $fits : $aligned<$t, $a, bool($has<$t, $class, $s>::$is)> {};
    template <class $t> struct $holds {
        enum { $is = int($has<$t, $s == 2 ? $integer : $floating, $s == 2 ? 2 : $s / 2>::$is) };
    };
};
template <class $t, class $u> struct $same_class : $constant<0> {};
template <class $t> struct $same_class<$t, $t> : $constant<1> {};
template <class $t> __device__ $t&& $made() noexcept;
struct $two { char $c[2]; };
// An aggregate of other numbers than two of type $n, or of a signed number of 16 bits. "float2{1, 2}" is what they are.
template <class $t, class $n, class = decltype($t{$made<$n>(), $made<$n>()})> __device__ char $takes_two(int);
template <class $t, class $n> __device__ $two $takes_two(long);
template <class $t, class $n, bool = __is_class($t) && __is_aggregate($t)> struct $not_two : $constant<0> {};
template <class $t, class $n> struct $not_two<$t, $n, true> : $constant<sizeof($takes_two<$t, $n>(0)) != 1> {};
// Converts to a short alone.
struct $a_short {
    template <class $t, int (*)[$same_class<$t, short>::$is ? 1 : -1] = nullptr> __device__ operator $t() const;
};
template <class $t, class = decltype($t{$made<$a_short>()})> __device__ char $takes_short(int);
template <class $t> __device__ $two $takes_short(long);
template <class $t, bool = __is_class($t) && __is_aggregate($t)> struct $of_short : $constant<0> {};
template <class $t> struct $of_short<$t, true> : $constant<sizeof($takes_short<$t>(0)) == 1> {};
struct $no_number;
#ifdef __CUDA_FP16_H__
typedef __half $half_type;
#else
typedef $no_number $half_type;
#endif
#ifdef __CUDA_BF16_H__
typedef __nv_bfloat16 $bfloat_type;
#else
typedef $no_number $bfloat_type;
#endif
// Whether a class is a number of another kind than a $w: a complex number of this type, or one of 16 bits.
template <class $w, class $t> struct $excludes : $not_two<$t, $w> {};
struct $is_half;
struct $is_bfloat;
template <class $t> struct $excludes<$is_half, $t> {
    enum { $is = int($of_short<$t>::$is) || int($same_class<$t, $bfloat_type>::$is) };
};
template <class $t> struct $excludes<$is_bfloat, $t> {
    enum { $is = int($of_short<$t>::$is) || int($same_class<$t, $half_type>::$is) };
};
template <int $s, int $a, class $w> struct $number_of {
    template <class $t> struct $fits {
        enum {
            $is = int($struct_of<$s, $a>::template $fits<$t>::$is)
                  && !int($excludes<$w, typename $bare<$t>::$type>::$is)
        };
    };
    template <class $t> struct $holds : $struct_of<$s, $a>::template $holds<$t> {};
};
template <class $t, class = decltype(sizeof($t))> __device__ char $is_known(int);
template <class $t> __device__ $two $is_known(long);
template <class $e, class $t, bool = sizeof($is_known<$t>(0)) == 1> struct $points_elsewhere : $constant<0> {};
template <int $s, int $a, class $w, class $t>
struct $points_elsewhere<$number_of<$s, $a, $w>, $t, true> : $excludes<$w, $t> {};
template <class $e> struct $pointer_to {
    template <class $t, int $k = int($kind<$t>::$is)> struct $to {
        enum { $is = $k == $void || $k == $other || int($e::template $holds<$t>::$is) };
    };
    template <class $t> struct $to<$t, $class> : $constant<!$points_elsewhere<$e, $t>::$is> {};
    template <class $t> struct $fits : $constant<0> {};
    template <class $t> struct $fits<$t*> : $to<typename $bare<$t>::$type> {};
    template <class $t> struct $fits<$t&> : $to<typename $bare<$t>::$type> {};
    template <class $t> struct $fits<$t&&> : $to<typename $bare<$t>::$type> {};
    template <class $t> struct $holds : $fits<$t> {};
};
template <class $p> struct $if_not_a_pointer { template <class $t> struct $fits : $constant<0> {}; };
template <> struct $if_not_a_pointer<$address> {
    template <class $t> struct $fits : $has<$t, $integer, 8> {};
};
template <class $p> struct $read_only {
    template <class $t> struct $fits : $if_not_a_pointer<$p>::template $fits<$t> {};
    template <class $t> struct $fits<const $t*> : $p::template $fits<const $t*> {};
    template <class $t> struct $fits<const $t&> : $p::template $fits<const $t&> {};
    template <class $t> struct $fits<const $t&&> : $p::template $fits<const $t&&> {};
    template <class $t> struct $holds : $p::template $holds<$t> {};
};

// Views of arrays. Their names are known where their headers are included: $v are a view and that of const elements.
// A class of the user's that has the same layout fits, and another view does not.
template <class $t> struct $is_view : $constant<0> {};
#ifdef _CUDA_STD_SPAN
template <class $t, decltype(sizeof(0)) $n> struct $is_view<cuda::std::span<$t, $n>> : $constant<1> {};
#define $SPAN(...) $span_of<__VA_ARGS__>
#else
#define $SPAN(...) $span_of<>
#endif
#ifdef _CUDA_STD_MDSPAN
template <class... $t> struct $is_view<cuda::std::mdspan<$t...>> : $constant<1> {};
#define $MDSPAN(...) $mdspan_at<__VA_ARGS__>
#else
#define $MDSPAN(...) $mdspan_at<>
#endif
template <class $t, class... $v> struct $among : $constant<0> {};
template <class $t, class... $v> struct $among<$t, $t, $v...> : $constant<1> {};
template <class $t, class $u, class... $v> struct $among<$t, $u, $v...> : $among<$t, $v...> {};
template <class... $v> struct $span_of {
    template <class $t, class $b = typename $bare<$t>::$type> struct $fits {
        enum {
            $same = $among<$b, $v...>::$is,
            $is = $is_view<$b>::$is ? int($same) : int($struct_of<16, 8>::template $fits<$t>::$is)
        };
    };
};
template <class... $v> struct $mdspan_at {
    template <class $t> struct $holds {
        enum {
            $k = $kind<$t>::$is,
            $other_view = int($is_view<$t>::$is) && !int($among<$t, $v...>::$is),
            $is = $k == $void || ($k == $class && !$other_view)
        };
    };
    template <class $t> struct $fits : $constant<0> {};
    template <class $t> struct $fits<$t*> : $holds<typename $bare<$t>::$type> {};
    template <class $t> struct $fits<$t&> : $holds<typename $bare<$t>::$type> {};
    template <class $t> struct $fits<$t&&> : $holds<typename $bare<$t>::$type> {};
};

template <class...> struct $list {};
template <int $anywhere, class $p> struct $place;
template <int $anywhere, class $m, class $c> struct $place<$anywhere, $m $c::*> {
    enum { $found = 1 };
    typedef $m $type;
};
struct $nowhere { enum { $found = 0 }; };
template <class $n, int $o, class $p> struct $field {};
// The pattern of a struct, or of a pointer to it.
template <class $p, class... $f> struct $with_members {
    template <class $t> struct $fits : $p::template $fits<$t> {};
    template <class $t> struct $holds : $constant<1> {};
};
template <class $t> struct $target : $bare<$t> {};
template <class $t> struct $target<$t*> : $bare<$t> {};
template <class $t> struct $target<$t&> : $bare<$t> {};
template <class $t> struct $target<$t&&> : $bare<$t> {};

// Types differ if both are numbers. Anything else may have the bytes of anything.
template <class $p, class $e, int $k = int($kind<$e>::$is)> struct $same_type : $constant<1> {};
template <class $p, class $e> struct $same_type<$p, $e, $integer> {
    enum { $is = $p::template $holds<$e>::$is };
};
template <class $p, class $e> struct $same_type<$p, $e, $boolean> {
    enum { $is = $p::template $holds<$e>::$is };
};
template <class $p, class $e> struct $same_type<$p, $e, $floating> {
    enum { $is = $p::template $holds<$e>::$is };
};
template <class $struct, class $name, class $type, int $offset, int $in_record, bool $same, int $number>
struct $member : $constant<1> {
    static_assert($offset == $in_record && $same,
                  "a struct has its members elsewhere than a record of a call in Python has its fields");
};

template <class $t, int $n, class $p, bool = int($kind<$t>::$is) == $class> struct $members_of : $constant<1> {};
template <class $t, int $n, class $f, class $found, bool> struct $one : $constant<1> {};
template <class $t, int $n, class $name, int $o, class $p, class $found>
struct $one<$t, $n, $field<$name, $o, $p>, $found, true> {
    typedef typename $found::$type $type;
    typedef typename $bare<$type>::$type $e;
    enum {
        $at = $name::template $offset<$t>::$is,
        $same = $same_type<$p, $e>::$is,
        $is = int($member<$t, $name, $type, $at, $o, $same, $n>::$is) && int($members_of<$e, $n, $p>::$is)
    };
};
template <class... $found> struct $count : $constant<0> {};
template <class $f, class... $found> struct $count<$f, $found...> {
    enum { $is = int($f::$found) + int($count<$found...>::$is) };
};
template <class...> struct $all : $constant<1> {};
template <class $t, class... $o> struct $all<$t, $o...> {
    enum { $is = int($t::$is) && int($all<$o...>::$is) };
};
template <class $t, int $n, class $p, class... $m, int... $o, class... $q>
struct $members_of<$t, $n, $with_members<$p, $field<$m, $o, $q>...>, true> {
    enum {
        $compared = int($count<decltype($m::template $find<$t>(0))...>::$is) > 1,
        $is = $all<$one<$t, $n, $field<$m, $o, $q>, decltype($m::template $find<$t>(0)),
                        bool($compared) && bool(decltype($m::template $find<$t>(0))::$found)>...>::$is
    };
};
template <int $n, class $c, class $f, bool> struct $all_members : $constant<1> {};
template <int $n, class... $c, class... $f> struct $all_members<$n, $list<$c...>, $list<$f...>, true> {
    enum { $is = $all<$members_of<typename $target<$f>::$type, $n, $c>...>::$is };
};
template <int... $n> struct $leaf_at;
template <class $p, class... $l> struct $with_leaves : $p {};
template <class $c> struct $plain_pattern { typedef $c $type; };
template <class $p, class... $f> struct $plain_pattern<$with_members<$p, $f...>> : $plain_pattern<$p> {};
template <class $c, class $t> struct $leaves_fit : $constant<1> { enum { $hides = 0 }; };
template <class $c, class $f, bool> struct $all_leaves : $constant<1> { enum { $hides = 0 }; };
template <class... $c, class... $f> struct $all_leaves<$list<$c...>, $list<$f...>, true> {
    enum {
        $is = $all<$leaves_fit<typename $plain_pattern<$c>::$type, $f>...>::$is,
        $hides = !$all<$constant<!$leaves_fit<typename $plain_pattern<$c>::$type, $f>::$hides>...>::$is
    };
};
template <class $c, class $f> struct $all_fit : $constant<0> {};
template <> struct $all_fit<$list<>, $list<>> : $constant<1> {};
template <class $p, class... $c, class $t, class... $f>
struct $all_fit<$list<$p, $c...>, $list<$t, $f...>> {
    enum {
        $is = int($p::template $fits<$t>::$is) && int($all_fit<$list<$c...>, $list<$f...>>::$is)
    };
};
template <class $f> struct $types;
template <class $r, class... $f> struct $types<$r($f...)> { typedef $list<$r, $f...> $list; };
// What "..." takes lies in memory: no call fits.
template <class $r, class... $f> struct $types<$r($f..., ...)> { typedef $list<> $list; };
template <class $function, int $number, class $called> struct $call {
    typedef typename $types<$function>::$list $list;
    static_assert($all_fit<$called, $list>::$is,
                  "a call in Python passes or expects other types than the function has");
    static_assert($all_members<$number, $called, $list, $all_fit<$called, $list>::$is>::$is, "");
    typedef $all_leaves<$called, $list, $all_fit<$called, $list>::$is> $compared;
    static_assert($compared::$is,
                  "a call in Python passes or expects other types than the function has");
    enum { $hides = $compared::$hides };
};
struct $no_such_function { enum { $hides = 0 }; };
template <class $c, int $n, class $r, class... $f>
__device__ $call<$r($f...), $n, $c> $of($r (*)($f...), int);
template <class $c, int $n, class $r, class... $f>
__device__ $call<$r($f..., ...), $n, $c> $of($r (*)($f..., ...), long);
template <class $c, int $n> __device__ $no_such_function $of(void (*)($no_such_function, ...), long);
}

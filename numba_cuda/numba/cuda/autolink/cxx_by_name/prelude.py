# SPDX-License-Identifier: BSD-2-Clause
"""The C++ text after each library's source, with which calls describe their result types and pass values.

It uses only built-in traits of the compiler: including ``<cuda/std/type_traits>`` would take longer than the rest.

A type is described by a sequence of numbers, which `results` reads. A value is returned as what C passes: a number, a
pointer, or a struct of them.

"$" stands for "nca_", with which all names in text of ours begin: no macro of the user's is called that.
"""

from __future__ import annotations

import re

# A struct of more members is an object that only C++ knows.
MOST_MEMBERS = 16

# The numbers that begin a type, and the Numba types of the plain ones: the two halves of the language.
PLAIN = {
    "void": 0, "bool": 1, "signed char": 2, "char": 2, "unsigned char": 3, "short": 4, "unsigned short": 5,
    "int": 6, "unsigned int": 7, "long": 8, "long long": 8, "unsigned long": 9, "unsigned long long": 9,
    "__half": 10, "__nv_bfloat16": 11, "float": 12, "double": 13, "char16_t": 5, "char32_t": 7, "wchar_t": 6,
}  # fmt: skip
POINTER, COMPLEX, TUPLE, ARRAY, OBJECT, RECORD = range(20, 26)

_TEMPLATES = r"""
struct __half;
struct __nv_bfloat16;
// Both are there if the source has included a header of libcu++ with a tuple, a pair or an array.
#if defined(_CUDA_STD___FWD_GET_H) || defined(_LIBCUDACXX___FWD_GET_H)
#define NCA_TUPLES 1
#endif
namespace nca {
enum { $most = MOST_MEMBERS };
struct $yes { char $c[2]; };
struct $no { char $c[1]; };
struct $here { void* $at; };
template <class $T> struct $bare { using $type = $T; };
template <class $T> struct $bare<$T&> { using $type = typename $bare<$T>::$type; };
template <class $T> struct $bare<$T&&> { using $type = typename $bare<$T>::$type; };
template <class $T> struct $bare<const $T> { using $type = typename $bare<$T>::$type; };
template <class $T> struct $bare<volatile $T> { using $type = typename $bare<$T>::$type; };
template <class $T> struct $bare<const volatile $T> { using $type = typename $bare<$T>::$type; };
template <class $T> using $plain = typename $bare<$T>::$type;
template <bool $B, class $A, class $C> struct $pick { using $type = $A; };
template <class $A, class $C> struct $pick<false, $A, $C> { using $type = $C; };
template <class $A, class $B> inline constexpr bool $same = false;
template <class $A> inline constexpr bool $same<$A, $A> = true;
template <class $T> __device__ $T&& $made() noexcept;
template <class $R, class... $A> __device__ $R $result($R (*)($A...));
template <class... $T> struct $list { static constexpr int $size = sizeof...($T); };
template <unsigned long long... $N> struct $told {};
template <class $A, class $B> struct $joined;
template <unsigned long long... $A, unsigned long long... $B> struct $joined<$told<$A...>, $told<$B...>> {
    using $type = $told<$A..., $B...>;
};
template <class... $T> struct $all;
template <> struct $all<> { using $type = $told<>; };
template <class $A, class... $T> struct $all<$A, $T...> {
    using $type = typename $joined<$A, typename $all<$T...>::$type>::$type;
};
template <class... $T> using $all_t = typename $all<$T...>::$type;
// Variables that no code refers to. Their lowered names spell their arguments.
template <class $T> extern __device__ char $tell;
template <unsigned long long... $N> extern __device__ char $tell_numbers;

template <class $T> struct $plain_code { static constexpr int $value = -1; };
PLAIN_CODES
template <class $T, bool $E> struct $under { using $type = $T; };
template <class $T> struct $under<$T, true> { using $type = __underlying_type($T); };
template <class $T> using $under_t = typename $under<$T, __is_enum($T)>::$type;

// Complex numbers: classes of two parts, .real() and .imag().
template <class $T> __device__ auto $part_of($T& $v, int) -> $plain<decltype($v.imag(), $v.real())>;
template <class $T> __device__ void $part_of($T&, long);
template <class $T, class $P = decltype($part_of($made<$T&>(), 0))> inline constexpr bool $is_complex = false;
template <class $T> inline constexpr bool $is_complex<$T, float> = sizeof($T) == 8;
template <class $T> inline constexpr bool $is_complex<$T, double> = sizeof($T) == 16;

// Tuples, pairs and arrays of libcu++.
#ifdef NCA_TUPLES
template <class $T> __device__ auto $tuple_size(int) -> char (&)[cuda::std::tuple_size<$T>::value + 1];
#endif
template <class $T> __device__ auto $tuple_size(long) -> char (&)[1];
template <class $T> inline constexpr int $tuple_size_v = sizeof($tuple_size<$T>(0)) - 1;

// Members of aggregates, which structured bindings name.
struct $any { template <class $T> __device__ operator $T() const noexcept; };
template <int... $I> struct $ints {};
template <class $A, int $N> struct $counted;
template <int... $I, int $N> struct $counted<$ints<$I...>, $N> : $counted<$ints<$I..., sizeof...($I)>, $N - 1> {};
template <int... $I> struct $counted<$ints<$I...>, 0> { using $type = $ints<$I...>; };
template <int $N> using $first = typename $counted<$ints<>, $N>::$type;
template <int> using $any_of = $any;
template <class $T, int... $A, int... $B, int... $C>
__device__ auto $takes(int, $ints<$A...>, $ints<$B...>, $ints<$C...>)
    -> decltype($T{$any_of<$A>{}..., {$any_of<$B>{}...}, $any_of<$C>{}...}, $yes{});
template <class $T> __device__ $no $takes(long, ...);
template <class $T, int... $A> __device__ auto $takes_flat(int, $ints<$A...>) -> decltype($T{$any_of<$A>{}...}, $yes{});
template <class $T> __device__ $no $takes_flat(long, ...);
template <class $T, int $N> constexpr __device__ int $flat() {
    if constexpr ($N == 0) return 0;
    else if constexpr (sizeof($takes_flat<$T>(0, $first<$N>())) == sizeof($yes)) return $N;
    else return $flat<$T, $N - 1>();
}
// How many of the flat members after the first P, of which there are REST, are one member: an array.
template <class $T, int $P, int $K, int $REST> constexpr __device__ int $length() {
    if constexpr ($K <= 1) return 1;
    else if constexpr (sizeof($takes<$T>(0, $first<$P>(), $first<$K>(), $first<$REST - $K>())) == sizeof($yes))
        return $K;
    else return $length<$T, $P, $K - 1, $REST>();
}
template <class $T, int $P, int $REST> constexpr __device__ int $members() {
    if constexpr ($REST <= 1) return $REST;
    else if constexpr (sizeof($takes<$T>(0, $first<$P>(), $first<2>(), $first<$REST - 1>())) == sizeof($yes))
        return 1 + $members<$T, $P + 1, $REST - 1>();
    else {
        constexpr int $n = $length<$T, $P, $REST, $REST>();
        return 1 + $members<$T, $P + $n, $REST - $n>();
    }
}
template <class $T> constexpr __device__ int $count() {
    if constexpr (__is_class($T) && __is_aggregate($T) && !__is_empty($T) && sizeof($T) <= 4096) {
        constexpr int $n = $flat<$T, $most + 1>();
        return $n > $most ? 0 : $members<$T, 0, $n>();
    } else return 0;
}
template <int $N> struct $bound;
BOUND
template <class $T> struct $member { using $type = $T; };
template <class $T> struct $member<$T&> { using $type = $T; };
struct $types_of { template <class... $A> __device__ $list<$A...> operator()($A&...) const; };

// Enumerators, since static members would be variables.
template <class $T> constexpr __device__ bool $is_value();
enum $kind { $as_plain, $as_pointer, $as_complex, $as_tuple, $as_array, $as_struct, $as_object, $as_record };
template <class $T> inline constexpr int $record_number = -1;
template <class $T, int $N> struct $record_layout;  // does not compile if the layout has changed
template <class $T> constexpr __device__ $kind $kind_of() {
    if constexpr ($plain_code<$under_t<$T>>::$value >= 0) return $as_plain;
    else if constexpr (__is_class($T) || __is_union($T)) {
        if constexpr ($record_number<$T> >= 0) return $as_record;
        else if constexpr (!__is_class($T)) return $as_object;
        else if constexpr ($is_complex<$T>) return $as_complex;
        else if constexpr ($tuple_size_v<$T> > $most) return $as_object;
        else if constexpr ($tuple_size_v<$T> > 0) return $as_tuple;
        else return $count<$T>() > 0 ? $as_struct : $as_object;
    } else return $as_object;
}
template <class... $T> struct $fields;
FIELDS
template <class $T, $kind $K = $kind_of<$T>()> struct $form {  // of objects
    using $code = $told<OBJECT, sizeof($T), alignof($T)>;
    using $passed = void;
    static constexpr bool $whole = false;
};
template <class $T> struct $form<$T, $as_plain> {
    using $passed = $under_t<$T>;
    using $code = $told<$plain_code<$passed>::$value>;
    static constexpr bool $whole = true;
    template <class $V> static __device__ $passed $give($V&& $v) { return static_cast<$passed>($v); }
};
template <> struct $form<decltype(nullptr), $as_object> {
    using $passed = const void*;
    using $code = $told<POINTER, 0>;
    static constexpr bool $whole = true;
    static __device__ $passed $give(decltype(nullptr)) { return nullptr; }
};
template <class $T> struct $pointee { using $code = $told<0>; };
template <class $T> struct $form<$T*, $as_object> {
    using $passed = $T*;
    using $to = $plain<$T>;
    template <class $P, bool $B> struct $code_of { using $type = $told<0>; };
    template <class $P> struct $code_of<$P, true> { using $type = $told<$plain_code<$P>::$value>; };
    using $code = $all_t<$told<POINTER>, typename $code_of<$to, $plain_code<$to>::$value >= 0>::$type>;
    static constexpr bool $whole = true;
    static __device__ $passed $give($T* $v) { return $v; }
};
template <class $T> struct $form<$T, $as_complex> {
    using $part = decltype($part_of($made<$T&>(), 0));
    using $passed = typename $pick<sizeof($part) == 4, float2, double2>::$type;
    using $code = $told<COMPLEX, $plain_code<$part>::$value>;
    static constexpr bool $whole = true;
    template <class $V> static __device__ $passed $give($V&& $v) { return {$v.real(), $v.imag()}; }
};
template <class $T> struct $form<$T, $as_record> : $record_layout<$T, $record_number<$T>> {
    using $passed = $T;
    using $code = $told<RECORD, $record_number<$T>>;
    static constexpr bool $whole = true;
    template <class $V> static __device__ $passed $give($V&& $v) { return $v; }
};
template <class $L> struct $of_list;
template <class... $T> struct $of_list<$list<$T...>> {
    using $passed = $fields<typename $form<$plain<$T>>::$passed...>;
    using $code = $all_t<$told<TUPLE, sizeof...($T)>, typename $form<$plain<$T>>::$code...>;
    static constexpr bool $whole = ($form<$plain<$T>>::$whole && ...);
};
template <class $T, bool $WHOLE> struct $of_struct {
    using $types = decltype($bound<$count<$T>()>::$in($made<$T&>(), $types_of{}));
    using $passed = typename $of_list<$types>::$passed;
    using $code = typename $of_list<$types>::$code;
    static constexpr bool $whole = true;
    struct $giver {
        template <class... $A> __device__ $passed operator()($A&... $a) const {
            return $passed{$form<$plain<$A>>::$give($a)...};
        }
    };
    template <class $V> static __device__ $passed $give($V&& $v) { return $bound<$count<$T>()>::$in($v, $giver{}); }
};
template <class $T> struct $of_struct<$T, false> {
    using $code = $told<OBJECT, sizeof($T), alignof($T)>;
    using $passed = void;
    static constexpr bool $whole = false;
};
template <class $T> struct $form<$T, $as_struct>
    : $of_struct<$T, $of_list<decltype($bound<$count<$T>()>::$in($made<$T&>(), $types_of{}))>::$whole> {};
template <class $E, unsigned long long $N> struct $form<$E[$N], $as_object> {
    using $to = $form<$plain<$E>>;
    template <class $I> struct $made_of;
    template <int... $I> struct $made_of<$ints<$I...>> {
        template <int> using $each = typename $to::$passed;
        using $passed = $fields<$each<$I>...>;
        template <class $V> static __device__ $passed $give($V& $v) { return $passed{$to::$give($v[$I])...}; }
    };
    static constexpr bool $whole = $to::$whole && $N <= $most;
    using $made_t = $made_of<$first<$whole ? $N : 1>>;
    using $passed = typename $made_t::$passed;
    using $code = $all_t<$told<ARRAY, $N>, typename $to::$code>;
    template <class $V> static __device__ $passed $give($V& $v) { return $made_t::$give($v); }
};
#ifdef NCA_TUPLES
template <class $T, class $I> struct $of_tuple;
template <class $T, int... $I> struct $of_tuple<$T, $ints<$I...>> {
    template <int $J> using $each = $form<$plain<typename cuda::std::tuple_element<$J, $T>::type>>;
    static constexpr bool $whole = ($each<$I>::$whole && ...);
    using $passed = $fields<typename $each<$I>::$passed...>;
    using $code = typename $pick<$whole, $all_t<$told<TUPLE, sizeof...($I)>, typename $each<$I>::$code...>,
                               $told<OBJECT, sizeof($T), alignof($T)>>::$type;
    template <class $V> static __device__ $passed $give($V&& $v) {
        return $passed{$each<$I>::$give(cuda::std::get<$I>($v))...};
    }
};
template <class $T> struct $form<$T, $as_tuple> : $of_tuple<$T, $first<$tuple_size_v<$T>>> {};
#endif

template <class $R> using $form_t = $form<$plain<$R>>;
// What a call returns to Python: nothing, if only C++ knows what it is.
template <class $R> using $returned = typename $form_t<$R>::$passed;
template <class $R, class $F> __device__ $returned<$R> $given($F $f) {
    if constexpr ($same<$returned<$R>, void>) $f();
    else return $form_t<$R>::$give($f());
}

// The result of a call and values after it, where the call writes to arguments.
template <class $R, class... $T> struct $fields_after { using $type = $fields<typename $form<$R>::$passed, $T...>; };
template <class... $T> struct $fields_after<void, $T...> { using $type = $fields<$T...>; };
template <class $R, unsigned long long $N, class... $C> struct $codes_after {
    using $type = $all_t<$told<TUPLE, $N + 1>, typename $form<$R>::$code, $C...>;
};
template <unsigned long long $N, class... $C> struct $codes_after<void, $N, $C...> {
    using $type = $all_t<$told<TUPLE, $N>, $C...>;
};
template <class $O, class $R, class $F, class $G> __device__ $O $with_result($F $f, $G $g) {
    if constexpr ($same<$R, void>) { $f(); return $g(); }
    else { auto $r = $given<$R>($f); return $g($r); }
}

// An array of Numba as C++ finds it in memory: its data, the extents, and the strides in elements of strided ones.
template <class $T, int $N, bool $STRIDED> struct $view {
    $T* $data;
    long long $words[$N * (1 + $STRIDED)];
};
// A member of an enumeration in Python: a number, and a value of any enumeration in C++.
template <class $T> struct $enumerator {
    $T $value;
    __device__ operator $T() const { return $value; }
    template <class $E, class = typename $pick<__is_enum($E), $E, void>::$type,
              int (*)[__is_enum($E) ? 1 : -1] = nullptr>
    __device__ operator $E() const { return static_cast<$E>($value); }
};
enum { $by_pointer, $by_mdspan, $by_span, $by_element };
template <int $MODE, class $T, int $N, char $L> struct $array_form;
template <class $T, int $N, char $L> struct $array_form<$by_pointer, $T, $N, $L> {
    using $type = $T*;
    using $passed = $T*;
    static __device__ $type $of($T* $v) { return $v; }
};
template <class $T, int $N, char $L> struct $array_form<$by_element, $T, $N, $L> {
    using $type = $T&;
    using $passed = $T*;
    static __device__ $type $of($T* $v) { return *$v; }
};
}
inline __device__ void* operator new(decltype(sizeof(0)), nca::$here $h) noexcept { return $h.$at; }
inline __device__ void operator delete(void*, nca::$here) noexcept {}
"""


def _plain_codes() -> str:
    line = "template <> struct $plain_code<{}> {{ static constexpr int $value = {}; }};"
    return "\n".join(line.format(name, code) for name, code in PLAIN.items())


def _bound() -> str:
    text = (
        "template <> struct $bound<{n}> {{ template <class $T, class $F> static constexpr __device__ decltype(auto)"
        " $in($T& $t, $F $f) {{ auto& [{names}] = $t; return $f({names}); }} }};"
    )
    every = range(1, MOST_MEMBERS + 1)
    return "\n".join(text.format(n=n, names=", ".join(f"$m{i}" for i in range(n))) for n in every)


def _fields() -> str:
    lines = []
    for n in range(1, MOST_MEMBERS + 1):
        types = ", ".join(f"$T{i}" for i in range(n))
        declared = ", ".join(f"class $T{i}" for i in range(n))
        members = " ".join(f"$T{i} _{i};" for i in range(n))
        lines.append(f"template <{declared}> struct $fields<{types}> {{ {members} }};")
    return "\n".join(lines)


def _text() -> str:
    text = _TEMPLATES
    for name, value in {
        "MOST_MEMBERS": MOST_MEMBERS,
        "POINTER": POINTER,
        "COMPLEX": COMPLEX,
        "TUPLE": TUPLE,
        "ARRAY": ARRAY,
        "OBJECT": OBJECT,
        "RECORD": RECORD,
        "PLAIN_CODES": _plain_codes(),
        "BOUND": _bound(),
        "FIELDS": _fields(),
    }.items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    return text.replace("$", "nca_")


PRELUDE = _text()

# Where a call passes an array: what the source has included by then decides which views there are.
VIEWS = r"""
#if (defined(_CUDA_STD_SPAN) || defined(_LIBCUDACXX_SPAN)) && !defined(NCA_SPAN)
#define NCA_SPAN 1
namespace nca {
template <class $T, int $N, char $L> struct $array_form<$by_span, $T, $N, $L> {
    using $type = cuda::std::span<$T>;
    using $passed = const $view<$T, $N, false>&;
    static __device__ $type $of($passed $v) {
        unsigned long long $size = 1;
        for (int $i = 0; $i < $N; ++$i) $size *= $v.$words[$i];
        return $type($v.$data, $size);
    }
};
}
#endif
#if (defined(_CUDA_STD_MDSPAN) || defined(_LIBCUDACXX_MDSPAN)) && !defined(NCA_MDSPAN)
#define NCA_MDSPAN 1
namespace nca {
template <class $T, int $N, char $L> struct $array_form<$by_mdspan, $T, $N, $L> {
    using $extents = cuda::std::dextents<long long, $N>;
    using $column = typename $pick<$L == 'F', cuda::std::layout_left, cuda::std::layout_stride>::$type;
    using $layout = typename $pick<$L == 'C', cuda::std::layout_right, $column>::$type;
    using $type = cuda::std::mdspan<$T, $extents, $layout>;
    using $passed = const $view<$T, $N, $L == 'A'>&;
    template <int... $I> static __device__ $type $of($passed $v, $ints<$I...>) {
        $extents $shape($v.$words[$I]...);
        if constexpr ($L == 'A') {
            using $mapping = typename cuda::std::layout_stride::template mapping<$extents>;
            return $type($v.$data, $mapping($shape, cuda::std::array<long long, $N>{$v.$words[$N + $I]...}));
        } else return $type($v.$data, $shape);
    }
    static __device__ $type $of($passed $v) { return $of($v, $first<$N>()); }
};
}
#endif
""".replace("$", "nca_")

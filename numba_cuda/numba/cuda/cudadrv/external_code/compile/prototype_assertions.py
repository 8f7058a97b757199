# SPDX-License-Identifier: BSD-2-Clause
"""Assertions at the end of a translation unit: the functions that Python calls have the types that the calls pass.

The linker sees symbols alone, and links a function of other types into garbage. So the unit itself compares: after the
user's text come templates that use the compiler's built-in traits, and one assertion for each function and prototype.
They add no code: a unit compiles to the same bytes with and without them.

An assertion must not fail where the unit has no such function. ``&::f`` finds a function ``f`` that the unit declares,
and otherwise, through a using-directive, one that takes what no call passes. Of overloads and templates it decides
nothing, and so the assertion holds.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..inputs.c_prototypes import CalledFunction
from ..inputs.link_input import line_marker
from .member_assertions import MEMBER_TEMPLATES, OTHER_MEMBERS, WrongMember, finders, wrong_member
from .nvrtc import CompileError
from .struct_assertions import LEAF_TEMPLATES, STRUCT_TEMPLATES, question, read_answer
from .translation_unit import TranslationUnit

# What NVRTC calls the text that is added. Its names begin with "nca_", here "$": no macro of the user's is called that.
_FILE = "numba-cuda-autolink"
_SPACE = "numba_cuda_autolink_prototypes"
_OTHER_TYPES = "a call in Python passes or expects other types than the function has"
# Another check needs another `_CHECK` in `translation_unit`, or what fits an earlier one is not compared again.
# Enumerators, since static members of templates would be variables in the code.
_TEMPLATES = (
    """
namespace numba_cuda_autolink_prototypes {
enum { $class, $integer, $floating, $pointer, $void, $function, $other };
template <class $t> struct $kind {
    enum { $is = __is_enum($t) ? $integer : __is_class($t) || __is_union($t) ? $class : $other };
};
template <int $k> struct $constant { enum { $is = $k }; };
template <> struct $kind<void> : $constant<$void> {};
template <> struct $kind<float> : $constant<$floating> {};
template <> struct $kind<double> : $constant<$floating> {};
template <> struct $kind<long double> : $constant<$floating> {};
template <> struct $kind<bool> : $constant<$integer> {};
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
template <class $e> struct $pointer_to {
    template <class $t> struct $to {
        enum {
            $k = $kind<$t>::$is,
            $is = $k == $void || $k == $class || $k == $other || int($e::template $holds<$t>::$is)
        };
    };
    template <class $t> struct $fits : $constant<0> {};
    template <class $t> struct $fits<$t*> : $to<typename $bare<$t>::$type> {};
    template <class $t> struct $fits<$t&> : $to<typename $bare<$t>::$type> {};
    template <class $t> struct $fits<$t&&> : $to<typename $bare<$t>::$type> {};
    template <class $t> struct $holds : $fits<$t> {};
};
template <class $p> struct $if_not_a_pointer { template <class $t> struct $fits : $constant<0> {}; };
template <> struct $if_not_a_pointer<$address> { template <class $t> struct $fits : $has<$t, $integer, 8> {}; };
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
MEMBERS
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
    static_assert($all_fit<$called, $list>::$is, "OTHER_TYPES");
    static_assert($all_members<$number, $called, $list, $all_fit<$called, $list>::$is>::$is, "");
    typedef $all_leaves<$called, $list, $all_fit<$called, $list>::$is> $compared;
    static_assert($compared::$is, "OTHER_TYPES");
    enum { $hides = $compared::$hides };
};
struct $no_such_function { enum { $hides = 0 }; };
template <class $c, int $n, class $r, class... $f>
__device__ $call<$r($f...), $n, $c> $of($r (*)($f...), int);
template <class $c, int $n, class $r, class... $f>
__device__ $call<$r($f..., ...), $n, $c> $of($r (*)($f..., ...), long);
template <class $c, int $n> __device__ $no_such_function $of(void (*)($no_such_function, ...), long);
}
""".replace("OTHER_TYPES", _OTHER_TYPES)
    .replace("MEMBERS", MEMBER_TEMPLATES + LEAF_TEMPLATES)
    .replace("$", "nca_")
)
_FUNCTION = """
#undef {symbol}
namespace {space} {{ namespace $absent {{ __device__ void {symbol}($no_such_function, ...); }} }}
using namespace {space}::$absent;
namespace {space} {{
template <class $c, int $n>
__device__ auto $of_{symbol}(int) -> decltype($of<$c, $n>(&::{symbol}, 0));
template <class $c, int $n> __device__ $no_such_function $of_{symbol}(...);
}}""".replace("$", "nca_")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FAILED = re.compile(r"\[with nca_function=(.*), nca_number=(\d+)")
_ERROR = re.compile(r"\(\d+\): (?:catastrophic )?error")


@dataclass(frozen=True)
class WrongFunction:
    """A function of a source whose types are not those of a call; *declaration* is the source's. If they differ only in
    *members* of its structs, there is none."""

    called: CalledFunction
    declaration: str = ""
    members: tuple[WrongMember, ...] = ()


class PrototypeError(CompileError):
    """Functions of a source have other types than the calls in Python pass and expect: those in *wrong*."""

    def __init__(self, name: str, log: str, wrong: tuple[WrongFunction, ...]):
        self.wrong = wrong
        super().__init__(name, log)


def has_structs(called: Sequence[CalledFunction]) -> bool:
    """Whether structs by value are compared, which may not be possible."""
    return any(_has_leaves(each) for each in called)


def _has_leaves(called: CalledFunction) -> bool:
    return "nca_with_leaves<" in called.types


def with_assertions(
    unit: TranslationUnit, called: Sequence[CalledFunction], *, of_structs: bool = True
) -> TranslationUnit:
    """Return *unit* with an assertion for each of the *called* functions that C++ can name, also *of structs* by value
    and what is in them."""
    named = _named(called)
    functions = {each.symbol: _FUNCTION.format(symbol=each.symbol, space=_SPACE) for _, each in named}
    # The blank line ends a comment or a line that the user's text may end with.
    lines = [unit.code.rstrip("\0"), "", "#if __cplusplus >= 201103L", f"{line_marker(_FILE)}{_TEMPLATES}"]
    if of_structs and has_structs(called):
        lines.append(STRUCT_TEMPLATES)
    lines += [*functions.values(), *finders((each for _, each in named), _SPACE)]
    for number, each in named:
        lines.append(f"{line_marker(f'{_FILE}: {each.call}')}namespace {_SPACE} {{ {_assertion(each, number)} }}")
    return dataclasses.replace(unit, code="\n".join([*lines, "#endif", ""]))


def _named(called: Sequence[CalledFunction]) -> list[tuple[int, CalledFunction]]:
    return [(number, each) for number, each in enumerate(called) if _NAME.fullmatch(each.symbol)]


def _assertion(called: CalledFunction, number: int) -> str:
    found = f"decltype(nca_of_{called.symbol}<nca_list<{called.types}>, {number}>(0))"
    told = f" enum {{ nca_hides_{number} = {found}::nca_hides }};" if _has_leaves(called) else ""
    return f'static_assert(sizeof({found}) != 0, "");{told}'


def questions(called: Sequence[CalledFunction]) -> list[str]:
    """Return the name expressions to ask where structs are compared."""
    numbers = [number for number, each in _named(called) if _has_leaves(each)]
    return [question(numbers, _SPACE)] if numbers else []


def list_hidden(called: Sequence[CalledFunction], lowered: Collection[str]) -> tuple[CalledFunction, ...]:
    """Return those of the functions *called* that have structs by value which are not compared; *lowered* are the names
    of the `questions`, if they were asked."""
    asked = [each for _, each in _named(called) if _has_leaves(each)] if lowered else []
    hides = dict(zip(asked, *map(read_answer, lowered), strict=True) if asked else ())
    return tuple(each for each in called if hides.get(each, each.has_structs))


def raise_understood(error: CompileError, name: str, called: Sequence[CalledFunction]) -> None:
    """Raise what the *error* of a unit with assertions means: `PrototypeError`, or the unit's own `CompileError`.

    Return if only the text that was added does not compile, for another reason than that types differ.
    """
    wrong: dict[CalledFunction, WrongFunction] = {}
    kept, others, own = [], 0, 0
    for block in re.split(r"\n\s*\n", error.log):
        first = block.strip("\n").partition("\n")[0]
        if _FILE not in block:  # not even as what instantiated a template
            kept.append(block)
            others += bool(_ERROR.search(first))
        elif (found := _FAILED.search(block)) and _OTHER_TYPES in first:
            function = called[int(found[2])]
            result, _, parameters = found[1].partition("(")
            declaration = f"{result.rstrip()} {function.symbol}({parameters}".replace(" *", "*").replace(" &", "&")
            wrong.setdefault(function, WrongFunction(function, declaration))
        elif OTHER_MEMBERS in first and (of := wrong_member(block, called)) is not None:
            function, member = of
            known = wrong.get(function, WrongFunction(function))
            wrong[function] = dataclasses.replace(known, members=(*known.members, member))
        else:
            own += bool(_ERROR.search(first))
    if others:
        raise CompileError(name, "\n\n".join(kept)) from error.__cause__
    if wrong and not own:
        # What is wrong with a struct, the names of its members say best.
        said = (
            dataclasses.replace(each, declaration="" if each.members else each.declaration) for each in wrong.values()
        )
        raise PrototypeError(name, error.log, tuple(said)) from error.__cause__

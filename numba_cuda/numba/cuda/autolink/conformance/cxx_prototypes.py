# SPDX-License-Identifier: BSD-2-Clause
"""Whether the functions of a CUDA C++ source have the types that a call passes and expects, as NVRTC sees them.

PTX tells sizes only: there an ``int`` and a ``float`` look the same.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping

from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit, compile_unit
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.signatures import split_types
from numba.cuda.cudadrv.external_code.target import Target

_MARK = "numba_cuda_autolink:"
_FAILED = re.compile(rf'static assertion failed with "{_MARK} ([^"]*)"')
_SIZES = ("char", "short", "int", "long", "long long")
_INTEGERS = ("bool", "char", *(f"{sign} {size}" for sign in ("signed", "unsigned") for size in _SIZES))
_TYPES = """
namespace numba_cuda_autolink {
template <class T> struct type { static constexpr int kind = __is_enum(T) ? 1 : 0, size = sizeof(T); };
template <class T> struct type<T*> { static constexpr int kind = 3, size = 8; };
template <class T> struct type<T&> : type<T*> {};
template <> struct type<void> { static constexpr int kind = 4, size = 0; };
template <> struct type<float> { static constexpr int kind = 2, size = 4; };
template <> struct type<double> { static constexpr int kind = 2, size = 8; };
template <class T> struct integer { static constexpr int kind = 1, size = sizeof(T); };
INTEGERS
template <class T, int K, int S> struct fits {
    static constexpr int kind = type<T>::kind;
    static constexpr bool value = kind == 0 || (type<T>::size == S && (kind == K || kind * K == 3));  // 1 fits 3
};
template <int I, class T, class... U> struct nth : nth<I - 1, U...> {};
template <class T, class... U> struct nth<0, T, U...> { using is = T; };
template <class F> struct function;
template <class R, class... A> struct function<R(A...)> {
    static constexpr int count = sizeof...(A);
    template <int I, int K, int S> static constexpr bool has = fits<typename nth<I, R, A..., float>::is, K, S>::value;
};
#if __cplusplus >= 201703L
template <class R, class... A> struct function<R(A...) noexcept> : function<R(A...)> {};
#endif
}
""".replace("INTEGERS", "\n".join(f"template <> struct type<{name}> : integer<{name}> {{}};" for name in _INTEGERS))
_STRUCT, _INTEGER, _FLOAT, _POINTER, _VOID = range(5)
_NAMES = ("", "an integer of {} bytes", "a floating-point number of {} bytes", "a pointer", "void")  # by kind


def mismatches(item: LinkInput, prototypes: Mapping[str, str], target: Target) -> list[str]:
    """Return in which functions of the source *item* differ from *prototypes*, LLVM function types by symbol: in none
    if the functions cannot be found in the source, or it does not compile."""
    here = {symbol: text for symbol, text in prototypes.items() if symbol.encode() in item.code}
    if not here:
        return []
    unit = TranslationUnit.of(item, target)
    checks = (line for symbol, prototype in here.items() for line in _assertions(symbol, prototype))
    code = "\n".join([unit.code.rstrip("\0"), _TYPES, *checks]) + "\n"
    try:
        compile_unit(dataclasses.replace(unit, code=code))
    except CompileError as error:
        return list(dict.fromkeys(_FAILED.findall(error.log)))
    return []


def _assertions(symbol: str, prototype: str) -> Iterator[str]:
    result, _, parameters = prototype.rpartition(")")[0].partition(" (")
    returned, *taken = map(_kind_and_size, (result, *split_types(parameters)))
    function = f"numba_cuda_autolink::function<decltype({symbol})>"
    count = len(taken)
    yield f'static_assert({function}::count == {count}, "{_MARK} {symbol} does not take {count} parameters");'
    for index, (kind, size) in enumerate((returned, *taken)):
        if kind != _STRUCT:
            which = f"parameter {index} of {symbol}" if index else f"the result of {symbol}"
            message = f"{_MARK} {which} is not {_NAMES[kind].format(size)}"
            # If the count differs, only that is reported.
            condition = f"{function}::count != {count} || {function}::template has<{index}, {kind}, {size}>"
            yield f'static_assert({condition}, "{message}");'


def _kind_and_size(llvm_type: str) -> tuple[int, int]:
    if llvm_type.endswith("*") or llvm_type == "ptr":
        return _POINTER, 8
    if match := re.fullmatch(r"i(\d+)", llvm_type):
        return _INTEGER, max(int(match[1]) // 8, 1)
    return {"float": (_FLOAT, 4), "double": (_FLOAT, 8), "void": (_VOID, 0)}.get(llvm_type, (_STRUCT, 0))

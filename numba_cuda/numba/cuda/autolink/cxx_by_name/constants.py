# SPDX-License-Identifier: BSD-2-Clause
"""Constant expressions of C++ as numbers of Python."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from numba.cuda import types

from .questions import asked
from .refusals import CxxError
from .results import CxxObject, numba_type_told, numbers_in

if TYPE_CHECKING:
    from .library import CxxLibrary

_TEXT = """#line 1 "prelude"
namespace nca {
template <class T> constexpr __device__ unsigned long long bits(T v) {
    if constexpr (same<T, float> || same<T, double>) return __builtin_bit_cast(unsigned long long, double(v));
    else return static_cast<unsigned long long>(v);
}
template <class T> constexpr __device__ bool is_number() { return plain_code<under_t<plain<T>>>::value >= 0; }
}
OPEN
#line 1 "LABEL"
using nca_type = decltype(EXPRESSION);
template <bool B> constexpr __device__ unsigned long long nca_bits() {
    if constexpr (B) return nca::bits(static_cast<nca::plain<nca_type>>(EXPRESSION)); else return 0;
}
enum : unsigned long long { nca_value = nca_bits<nca::is_number<nca_type>()>() };
CLOSE
"""
_QUESTION = "&nca::tell<nca::all_t<nca::told<INSIDEnca_value>, nca::form_t<INSIDEnca_type>::code>>"


def evaluated(library: CxxLibrary, text: str, cc: Any) -> bool | int | float:
    """Return the value of the constant expression *text*. Raise `CxxError` if that is not a number."""
    (answer,) = asked(library, text, _TEXT.replace("EXPRESSION", text), [_QUESTION], cc)
    bits, *numbers = numbers_in(answer)
    numba_type = numba_type_told(iter(numbers), ())
    if isinstance(numba_type, types.Float):
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    if numba_type == types.boolean:
        return bool(bits)
    if isinstance(numba_type, types.Integer):
        return bits - (1 << 64) if numba_type.signed and bits >> 63 else bits
    what = "an object" if isinstance(numba_type, CxxObject) else f"a {numba_type}"
    raise CxxError(f"{text} is not a number but {what} of C++\n  expected: an integer, bool, float or enumerator")

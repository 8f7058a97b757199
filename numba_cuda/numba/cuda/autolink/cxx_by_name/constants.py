# SPDX-License-Identifier: BSD-2-Clause
"""Constant expressions of C++ as numbers of Python."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from numba.cuda import types

from .questions import Question, asked
from .refusals import CxxError
from .results import CxxObject, coded_type, numbers_in

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
@open@
@line@using nca_type = decltype(@subject@);
template <bool B> constexpr __device__ unsigned long long nca_bits() {
    if constexpr (B) return nca::bits(static_cast<nca::plain<nca_type>>(@subject@)); else return 0;
}
enum : unsigned long long { nca_value = nca_bits<nca::is_number<nca_type>()>() };
@close@
"""
_QUESTION = "&nca::tell<nca::all_t<nca::told<@inside@nca_value>, nca::form_t<@inside@nca_type>::code>>"


def evaluated(library: CxxLibrary, text: str, cc: Any) -> bool | int | float:
    """Return the value of the constant expression *text*. Raise `CxxError` if that is not a number."""
    (answer,) = asked(library, Question(text, _TEXT, [_QUESTION]), cc)
    bits, *code = numbers_in(answer)
    numba_type = coded_type(iter(code), ())
    if isinstance(numba_type, types.Float):
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    if numba_type == types.boolean:
        return bool(bits)
    if isinstance(numba_type, types.Integer):
        return bits - (1 << 64) if numba_type.signed and bits >> 63 else bits
    what = "an object" if isinstance(numba_type, CxxObject) else f"a {numba_type}"
    raise CxxError(f"{text} is not a number but {what} of C++\n  expected: an integer, bool, float or enumerator")

# SPDX-License-Identifier: BSD-2-Clause
"""Constant expressions of C++ as numbers of Python."""

from __future__ import annotations

import struct

from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

from .library_source import LibrarySource
from .questions import Question, ask
from .refusals import CxxError
from .results import CxxObject, read_numbers, read_type

_TEXT = """#line 1 "prelude"
namespace nca {
template <class nca_T> constexpr __device__ unsigned long long nca_bits(nca_T nca_v) {
    if constexpr (nca_same<nca_T, float> || nca_same<nca_T, double>)
        return __builtin_bit_cast(unsigned long long, double(nca_v));
    else return static_cast<unsigned long long>(nca_v);
}
template <class nca_T> constexpr __device__ bool nca_is_number() {
    return nca_plain_code<nca_under_t<nca_plain<nca_T>>>::nca_value >= 0;
}
}
@open@
@line@using nca_type = decltype(@subject@);
template <bool nca_B> constexpr __device__ unsigned long long nca_bits() {
    if constexpr (nca_B) return nca::nca_bits(static_cast<nca::nca_plain<nca_type>>(@subject@)); else return 0;
}
enum : unsigned long long { nca_value = nca_bits<nca::nca_is_number<nca_type>()>() };
@close@
"""
_QUESTION = (
    "&nca::nca_tell<nca::nca_all_t<nca::nca_told<@inside@nca_value>, nca::nca_form_t<@inside@nca_type>::nca_code>>"
)


def evaluate(source: LibrarySource, text: str, cc: ComputeCapability | None) -> bool | int | float:
    """Return the value of the constant expression *text*. Raise `CxxError` if that is not a number."""
    (answer,) = ask(source, Question(text, _TEXT, [_QUESTION]), cc)
    bits, *code = read_numbers(answer)
    numba_type = read_type(iter(code), ())
    if isinstance(numba_type, types.EnumMember):
        numba_type = numba_type.dtype
    if isinstance(numba_type, types.Float):
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    if numba_type == types.boolean:
        return bool(bits)
    if isinstance(numba_type, types.Integer):
        return bits - (1 << 64) if numba_type.signed and bits >> 63 else bits
    what = "an object" if isinstance(numba_type, CxxObject) else f"a {numba_type}"
    raise CxxError(f"{text} is not a number but {what} of C++\n  expected: an integer, bool, float or enumerator")

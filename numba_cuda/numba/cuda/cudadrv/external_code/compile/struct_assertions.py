# SPDX-License-Identifier: BSD-2-Clause
"""Assertions of `prototype_assertions` that the numbers in a struct by value are where a tuple or a record has them.

The compiler finds the offsets of members without their names: it reads members from bytes of which each tells a bit of
its own offset. That needs C++17, and a struct of numbers. Of one with pointers, the offsets are those that the types of
the members lead to. What C++ cannot take apart is not compared: a class with private members or a base class, a struct
with bit-fields, a union. Which calls these are, the compiler tells by the lowered name of `question`.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Sequence

# A struct of more members is not taken apart.
MOST_MEMBERS = 32
_NUMBER = re.compile(r"L[a-z](\d+)E")


def write_members(most_taken: int) -> str:
    """Return C++ templates that take structs apart: functions that call another one with all members of a struct, and
    functions whose type is whether so many empty lists initialise an aggregate, up to *most_taken*."""
    counts = range(1, MOST_MEMBERS + 1)
    return "\n".join(
        [
            "struct nca_yes { char nca_c[2]; };",
            "struct nca_no { char nca_c[1]; };",
            "template <int nca_N> struct nca_empty;",
            *map(_write_empty, range(1, most_taken + 1)),
            "template <int nca_N> struct nca_bound;",
            *map(_write_bound, counts),
        ]
    )


def _write_bound(n: int) -> str:
    names = ", ".join(f"nca_m{i}" for i in range(n))
    return (
        f"template <> struct nca_bound<{n}> {{ template <class nca_T, class nca_F> static constexpr __device__"
        f" decltype(auto) nca_in(nca_T& nca_t, nca_F nca_f) {{ auto& [{names}] = nca_t; return nca_f({names}); }} }};"
    )


def _write_empty(n: int) -> str:
    made = f"nca_T{{{', '.join(['{}'] * n)}}}"
    return (
        f"template <> struct nca_empty<{n}> {{\ntemplate <class nca_T> static __device__ auto nca_in(int)"
        f" -> decltype({made}, nca_yes{{}});\ntemplate <class nca_T> static __device__ nca_no nca_in(long); }};"
    )


def read_templates(name: str) -> str:
    text = pkgutil.get_data(__package__, name)
    assert text is not None
    return text.decode().replace("$", "nca_")


_WRITTEN = f"enum {{ nca_most = {MOST_MEMBERS} }};\n{write_members(MOST_MEMBERS)}"
# Precede the assertions of structs.
STRUCT_TEMPLATES = (
    f"\nnamespace numba_cuda_autolink_prototypes {{\n{_WRITTEN}\n}}\n{read_templates('struct_assertions.cuh')}"
)


def question(numbers: Sequence[int], space: str) -> str:
    """Return the name expression that tells which of the calls with these *numbers* have structs that are not taken
    apart."""
    return f"&{space}::nca_told<{', '.join(f'{space}::nca_hides_{number}' for number in numbers)}>"


def read_answer(lowered: str) -> list[bool]:
    """Return what the *lowered* name of a `question` tells, in the order of its numbers."""
    return [number != "0" for number in _NUMBER.findall(lowered)]

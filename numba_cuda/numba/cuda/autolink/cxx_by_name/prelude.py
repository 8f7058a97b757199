# SPDX-License-Identifier: BSD-2-Clause
"""The C++ text after each library's source: that of ``prelude.cuh``, and what is written once for each number."""

from __future__ import annotations

from importlib import resources

from numba.cuda.cudadrv.external_code.compile.prototype_assertions import MOST_MEMBERS, write_members

# The numbers that begin a type, and the C++ types of the plain ones: the two halves of the language.
PLAIN = {
    "void": 0, "bool": 1, "signed char": 2, "char": 2, "unsigned char": 3, "short": 4, "unsigned short": 5,
    "int": 6, "unsigned int": 7, "long": 8, "long long": 8, "unsigned long": 9, "unsigned long long": 9,
    "__half": 10, "__nv_bfloat16": 11, "float": 12, "double": 13, "char16_t": 5, "char32_t": 7, "wchar_t": 6,
}  # fmt: skip
POINTER, COMPLEX, TUPLE, ARRAY, OBJECT, RECORD, STRUCT, ENUMERATOR = range(20, 28)
_CODES = {
    "pointer": POINTER, "complex": COMPLEX, "tuple": TUPLE, "array": ARRAY, "object": OBJECT, "record": RECORD,
    "struct": STRUCT, "enumerator": ENUMERATOR,
}  # fmt: skip


def _write_codes() -> str:
    codes = ", ".join(f"nca_code_{name} = {code}" for name, code in _CODES.items())
    plain = (
        f"template <> struct nca_plain_code<{name}> {{ enum {{ nca_value = {n} }}; }};" for name, n in PLAIN.items()
    )
    return "\n".join(
        [
            f"enum : unsigned long long {{ {codes} }};",
            f"enum {{ nca_most = {MOST_MEMBERS} }};",
            "template <class nca_T> struct nca_plain_code { enum { nca_value = -1 }; };",
            *plain,
        ]
    )


def _write_fields(n: int) -> str:
    """Return a struct of *n* members."""
    types = ", ".join(f"nca_T{i}" for i in range(n))
    declared = ", ".join(f"class nca_T{i}" for i in range(n))
    members = " ".join(f"nca_T{i} _{i};" for i in range(n))
    return f"template <{declared}> struct nca_fields<{types}> {{ {members} }};"


def _write_prelude() -> str:
    counts = range(1, MOST_MEMBERS + 1)
    return "\n".join(
        [
            "struct __half;",
            "struct __nv_bfloat16;",
            "namespace nca {",
            _write_codes(),
            write_members(MOST_MEMBERS + 1),
            "template <class... nca_T> struct nca_fields;",
            *map(_write_fields, counts),
            "}",
            _read("prelude.cuh"),
        ]
    )


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


PRELUDE = _write_prelude()
# Follows where a call passes an array.
VIEWS = _read("array_views.cuh")

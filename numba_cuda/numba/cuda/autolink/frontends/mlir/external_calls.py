# SPDX-License-Identifier: BSD-2-Clause
"""Functions of C++ that are called with nothing but plain numbers and addresses.

Kernels of numba-cuda-mlir declare functions without what LLVM needs to pass structs as C++ does, or numbers shorter
than 32 bits. For a C function that takes or returns one, a small function of CUDA C++ takes structs by address and
short numbers as ``int``. Link-time optimisation leaves nothing of it.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype, CType
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput

from ...c_abi.structs import CStruct

# As their headers define them, which a compiler would need a second for.
_DEFINITIONS = {
    "__half": "struct __align__(2) __half { unsigned short x; };",
    "__nv_bfloat16": "struct __align__(2) __nv_bfloat16 { unsigned short x; };",
}
_NAME = re.compile(r"\b(?:__half|__nv_bfloat16)\b")


def is_struct(c_type: CType) -> bool:
    """Whether C sees a value of *c_type* as a struct."""
    return c_type.kind == "struct"


def is_short(c_type: CType) -> bool:
    """Whether *c_type* is a number that C extends to 32 bits."""
    return c_type.kind in ("int", "uint", "bool") and c_type.size < 4


def is_plain(prototype: CPrototype) -> bool:
    """Whether kernels can call such a function itself."""
    return not any(is_struct(each) or is_short(each) for each in (prototype.returns, *prototype.parameters))


@dataclass(frozen=True)
class ByAddress:
    """The function *symbol*, which calls *callee* with what it is given: the *source* that defines it."""

    symbol: str
    source: str

    @property
    def link_input(self) -> LinkInput:
        """The source as a link input."""
        return LinkInput(kinds.CUDA, self.source.encode(), name=f"{self.symbol}.cu")


@functools.cache
def by_address(callee: str, prototype: CPrototype) -> ByAddress:
    """Return the function that calls *callee*. Its first parameter is the address of the result, if that is a
    struct."""
    structs: dict[CStruct, str] = {}
    types = [_declare(each, structs) for each in (prototype.returns, *prototype.parameters)]
    returns, *parameters = types
    taken = [("const void*" if is_struct(c) else "int" if is_short(c) else t) for c, t in _pairs(prototype, parameters)]
    passed = [
        f"*reinterpret_cast<const {t}*>(a{i})" if is_struct(c) else f"static_cast<{t}>(a{i})"
        for i, (c, t) in enumerate(_pairs(prototype, parameters))
    ]
    named = [f"{t} a{i}" for i, t in enumerate(taken)]
    call = f"{callee}({', '.join(passed)})"
    result, body = returns, f"return {call};"
    if is_struct(prototype.returns):
        result, body, named = "void", f"*reinterpret_cast<{returns}*>(result) = {call};", ["void* result", *named]
    elif is_short(prototype.returns):
        result = "int"
    elif prototype.returns.kind == "void":
        body = f"{call};"
    declared = f'extern "C" __device__ {returns} {callee}({", ".join(parameters)});'
    digest = hashlib.sha256(f"{declared}{sorted(structs.values())}".encode()).hexdigest()[:12]
    symbol = f"{callee}_by_address_{digest}"
    used = sorted(set(_NAME.findall(" ".join([*types, *(each.cxx for each in structs)]))))
    definitions = [_DEFINITIONS[name] for name in used]
    definitions += [f"typedef {_definition(c_type)} {name};" for c_type, name in structs.items()]
    function = f'extern "C" __device__ {result} {symbol}({", ".join(named)}) {{ {body} }}'
    return ByAddress(symbol, "\n".join([*definitions, declared, function, ""]))


def _definition(struct: CStruct) -> str:
    """Return a struct of C++; of a view, a struct of the same members, since its header takes time to compile."""
    if struct.cxx.startswith("struct {"):
        return struct.cxx
    members = " ".join(f"{each.cxx} _{number};" for number, each in enumerate(struct.members))
    return f"struct {{ {members} }}"


def _pairs(prototype: CPrototype, parameters: list[str]) -> list[tuple[CType, str]]:
    return list(zip(prototype.parameters, parameters, strict=True))


def _declare(c_type: CType, structs: dict[CStruct, str]) -> str:
    """Return how C++ declares a value; a struct without a name gets one in *structs*."""
    if isinstance(c_type, CStruct):
        return structs.setdefault(c_type, f"struct_{len(structs)}")
    if c_type.kind == "pointer" and c_type.pointee is None:
        return "const void*" if c_type.cxx.startswith("const ") else "void*"
    return c_type.cxx

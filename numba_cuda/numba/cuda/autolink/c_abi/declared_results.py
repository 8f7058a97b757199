# SPDX-License-Identifier: BSD-2-Clause
"""How C sees a function of ``declare_device``: what LLVM's types do not tell is what its result pointer points to, and
that it returns nothing, which is a pointer to Numba."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype, prototype_of_llvm
from numba.cuda.cudadrv.external_code.plan.declared_functions import declarations

from .c_types import ctype


def prototype_of_declared(function: Any, llvm_type: str, returns: Any) -> CPrototype | None:
    """Return the prototype of a declared *function* with this *llvm_type* that *returns* an integer or a
    floating-point number by a pointer, or nothing and has the ABI of C; ``None`` for another one."""
    declared = declarations.get(function)
    if declared is None:
        return None
    prototype = prototype_of_llvm(llvm_type)
    if declared.abi == "c":
        return replace(prototype, returns=ctype(returns)) if returns == types.void else None
    if returns not in types.integer_domain | types.real_domain:
        return None
    result = ctype(returns)
    if result.kind not in ("int", "uint", "float"):
        return None
    pointee = replace(result, kind="byte") if result.size == 1 else result  # C++ may write a bool or a char
    first, *others = prototype.parameters
    return replace(prototype, parameters=(replace(first, cxx=f"{result.cxx}*", pointee=pointee), *others))

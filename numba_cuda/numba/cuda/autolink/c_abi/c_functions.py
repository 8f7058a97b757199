# SPDX-License-Identifier: BSD-2-Clause
"""C functions in LLVM IR, as NVRTC and nvcc compile them.

These rules make it the same function for both compilers, in PTX and under link-time optimisation (the tests compare):

- ``bool`` is 8 bits wide: a function with an ``i1`` parameter is not inlined.
- Small integers are extended to 32 bits by the caller, which the callee relies on.
- Structs by value are identified types, with their C++ alignment as an ``align`` annotation. A literal struct has the
  alignment of its fields, so the caller would pass its bytes in other registers than those that the callee reads.
- Pointers are ``i8*``, except in functions with structs by value: there they have their C++ types, since otherwise
  nvJitLink before 13.1 takes the types of the two functions for different ones and inlines nothing.
- The functions are ``convergent``, since they may contain barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir as llvm

from .c_types import CType
from .llvm_values import llvm_type


def function_type(module: Any, returns: CType, args: Sequence[CType]) -> Any:
    """Return the LLVM type of a function in *module* with a result and parameters of these C types."""
    typed_pointers = any(c_type.kind == "struct" for c_type in (returns, *args))
    returned, *taken = (llvm_type(module, c_type, typed_pointers) for c_type in (returns, *args))
    return llvm.FunctionType(returned, taken)


def new_function(module: Any, symbol: str, returns: CType, args: Sequence[CType]) -> Any:
    """Return a new function of *module*, declared with a result and parameters of these C types."""
    function = llvm.Function(module, function_type(module, returns, args), symbol)
    function.attributes.add("convergent")
    values = (function.return_value, *function.args)
    for number, (value, c_type) in enumerate(zip(values, (returns, *args), strict=True)):
        _annotate(module, function, number, value, c_type)
    return function


def _annotate(module: Any, function: Any, number: int, value: Any, c_type: CType) -> None:
    """Annotate a parameter of *function*: *number* 0 is the return value, 1 the first parameter."""
    if c_type.kind == "struct":
        align = llvm.Constant(llvm.IntType(32), number << 16 | c_type.align)
        module.add_named_metadata("nvvm.annotations", [function, "align", align])
    elif c_type.kind in ("int", "uint", "bool") and c_type.size < 4:
        value.add_attribute("signext" if c_type.kind == "int" else "zeroext")

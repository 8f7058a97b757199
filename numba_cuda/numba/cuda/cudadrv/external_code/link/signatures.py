# SPDX-License-Identifier: BSD-2-Clause
"""Whether the parameters of a function, where PTX shows them, are those that its caller passes.

nvJitLink links them in any case: the callee then reads what nobody wrote.
"""

from __future__ import annotations

import re

from ..formats.bounds import FormatError
from ..formats.ptx import Parameter, Prototype, ptx_symbols
from ..inputs import kinds
from .errors import LinkError, message
from .parts import LinkJob, Part
from .plan import NAMED_EXPLICITLY

_LLVM_SIZES = {"void": 0, "float": 4, "double": 8, "ptr": 8}


def check_signatures(job: LinkJob) -> None:
    """Compare the calls in Python with the PTX that called objects provide. Raises `LinkError` if a function is called
    with a signature that is not its own."""
    prototypes = job.kernel_code.prototypes
    for part in job.parts:
        if part.kind is kinds.PTX and part.planned is not None and part.planned.origins != (NAMED_EXPLICITLY,):
            for symbol, defined in prototypes_of_ptx(part.code, prototypes).items():
                called = prototype_of_llvm(prototypes[symbol])
                if differ(called, defined):
                    raise _wrong_signature(job, part, symbol, (called, defined))


def _wrong_signature(job: LinkJob, part: Part, symbol: str, prototypes: tuple[Prototype, Prototype]) -> LinkError:
    called, defined = prototypes
    return LinkError(
        message(
            job.plan,
            f"{symbol!r} is called with the wrong signature",
            f"defined by: {part.origin}",
            f"got: a caller whose {symbol!r} {called}: {job.kernel_code.referenced_by(symbol)}",
            f"expected: the function {defined}",
            "what to do: make the function's parameters those of the call, or the other way round (Extern's args and"
            " returns, or declare_device's signature, whose functions return a status and take a pointer to the"
            " result)",
        )
    )


def prototypes_of_ptx(code: bytes, names: dict[str, str]) -> dict[str, Prototype]:
    """Return the prototypes of the functions among *names* that PTX *code* defines for other code."""
    if not any(name.encode() in code for name in names):
        return {}
    try:
        return {
            symbol.name: symbol.prototype
            for symbol in ptx_symbols(code)
            if symbol.linkage == "visible" and symbol.prototype is not None and symbol.name in names
        }
    except FormatError:  # the linker reports what is wrong with it
        return {}


def differ(one: Prototype, other: Prototype) -> bool:
    """Return whether the two cannot be the same function: by sizes, those that are known."""
    if len(one.parameters) != len(other.parameters):
        return True
    pairs = [(one.returns, other.returns), *zip(one.parameters, other.parameters, strict=True)]
    sizes = [[0 if parameter is None else parameter.size for parameter in pair] for pair in pairs]
    return any(None not in pair and pair[0] != pair[1] for pair in sizes)


def prototype_of_llvm(function_type: str) -> Prototype:
    """Return the prototype of an LLVM function type, such as ``i32 (i32*, float)``."""
    returns, _, rest = function_type.partition(" (")
    result = _parameter(returns)
    return Prototype(None if result.size == 0 else result, tuple(map(_parameter, _split(rest.rpartition(")")[0]))))


def _split(parameters: str) -> list[str]:
    """Return the parameters, which are separated by the commas outside of brackets."""
    found, depth, current = [], 0, ""
    for character in parameters:
        depth += (character in "({[<") - (character in ")}]>")
        if character == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += character
    return [*found, current.strip()] if current.strip() else found


def _parameter(llvm_type: str) -> Parameter:
    llvm_type = llvm_type.strip()
    if llvm_type in _LLVM_SIZES:
        return Parameter(_LLVM_SIZES[llvm_type])
    if llvm_type.endswith("*"):
        return Parameter(8)
    if re.fullmatch(r"i\d+", llvm_type) and int(llvm_type[1:]) <= 64:
        return Parameter(max(4, (int(llvm_type[1:]) + 7) // 8))
    return Parameter(None)  # a structure, whose name does not show its size

# SPDX-License-Identifier: BSD-2-Clause
"""Whether a function's parameters, where PTX shows them, are those that its caller passes.

nvJitLink does not mind if they differ: the callee then reads what nobody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FUNCTION = re.compile(
    rb"\.visible\s+\.func\s*(?:\((?P<returns>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*(?:\((?P<parameters>[^)]*)\))?"
)
_PARAMETER = re.compile(rb"\.param\s+(?:\.align\s+\d+\s+)?\.([a-z])(\d+)\s+[\w$%]+(?:\[(\d*)\])?")
_LLVM_SIZES = {"void": 0, "float": 4, "double": 8, "ptr": 8}


@dataclass(frozen=True)
class Signature:
    """The sizes in bytes of what a function returns and of its parameters; ``None`` for one that is not known."""

    returns: int | None
    parameters: tuple[int | None, ...]

    def differs_from(self, other: Signature) -> bool:
        """Whether the two cannot be the same function."""
        if len(self.parameters) != len(other.parameters):
            return True
        pairs = [(self.returns, other.returns), *zip(self.parameters, other.parameters, strict=True)]
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)

    def __str__(self) -> str:
        def size(value: int | None) -> str:
            return "unknown size" if value is None else "nothing" if value == 0 else f"{value} bytes"

        takes = ", ".join(map(size, self.parameters)) or "nothing"
        return f"takes {takes} and returns {size(self.returns)}"


def of_ptx(code: bytes) -> dict[str, Signature]:
    """The signatures of the functions that PTX defines or declares for others to see."""
    found = {}
    for function in _FUNCTION.finditer(code):
        returns = _sizes(function["returns"] or b"")
        if len(returns) <= 1:
            signature = Signature(returns[0] if returns else 0, _sizes(function["parameters"] or b""))
            found[function["name"].decode()] = signature
    return found


def _sizes(parameters: bytes) -> tuple[int | None, ...]:
    sizes: list[int | None] = []
    for parameter in parameters.split(b","):
        if parameter.strip():
            found = _PARAMETER.search(parameter)
            sizes.append(_in_registers(int(found[2]) // 8, found[3]) if found else None)
    return tuple(sizes)


def _in_registers(size: int, count: bytes | None) -> int | None:
    """What a parameter takes: 1- and 2-byte numbers are passed in 4 bytes."""
    if count is None:
        return max(size, 4)
    return size * int(count) if count else None


def of_llvm(prototype: str) -> Signature:
    """The signature of an LLVM function type, such as ``i32 (i32*, float)``."""
    returns, _, rest = prototype.partition(" (")
    parameters = _split(rest.rpartition(")")[0])
    return Signature(_llvm_size(returns), tuple(map(_llvm_size, parameters)))


def _split(parameters: str) -> list[str]:
    """The parameters between the commas that are in no bracket."""
    found, depth, current = [], 0, ""
    for character in parameters:
        depth += (character in "({[<") - (character in ")}]>")
        if character == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += character
    return [*found, current.strip()] if current.strip() else found


def _llvm_size(llvm_type: str) -> int | None:
    llvm_type = llvm_type.strip()
    if llvm_type in _LLVM_SIZES:
        return _LLVM_SIZES[llvm_type]
    if llvm_type.endswith("*"):
        return 8
    if re.fullmatch(r"i\d+", llvm_type) and int(llvm_type[1:]) <= 64:
        return max(4, (int(llvm_type[1:]) + 7) // 8)
    return None  # a structure, whose size its name does not tell


def mismatch(prototypes: Mapping[str, str], code: bytes) -> tuple[str, Signature, Signature] | None:
    """A function that PTX defines with another signature than its LLVM prototype in *prototypes*: its name, what the
    caller passes, and what the function takes; ``None`` if there is none."""
    if not any(symbol.encode() in code for symbol in prototypes):
        return None
    for name, defined in of_ptx(code).items():
        if name in prototypes:
            called = of_llvm(prototypes[name])
            if called.differs_from(defined):
                return name, called, defined
    return None

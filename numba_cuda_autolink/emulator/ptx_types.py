# SPDX-License-Identifier: BSD-2-Clause
"""The types of PTX: kind and width."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PTXType:
    """A type: *kind* is ``b`` (bits), ``u``, ``s``, ``f``, ``bf`` (bfloat16), ``pred`` or a packed pair (``f16x2``)."""

    name: str
    kind: str
    bits: int

    @property
    def nbytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def llvm(self) -> str:
        """The LLVM type of values: half precision and packed pairs are kept as their bits."""
        if self.kind == "f" and self.bits >= 32:
            return "float" if self.bits == 32 else "double"
        return f"i{self.bits}"

    @property
    def integer(self) -> str:
        return f"i{self.bits}"

    @property
    def is_signed(self) -> bool:
        return self.kind == "s"


TYPES = {"pred": PTXType("pred", "pred", 1), "bf16": PTXType("bf16", "bf", 16), "tf32": PTXType("tf32", "b", 32)}
TYPES.update({f"{kind}{bits}": PTXType(f"{kind}{bits}", kind, bits) for kind in "bus" for bits in (8, 16, 32, 64)})
TYPES.update({f"f{bits}": PTXType(f"f{bits}", "f", bits) for bits in (16, 32, 64)})
TYPES.update({name: PTXType(name, name, 32) for name in ("f16x2", "bf16x2")})
TYPES["b128"] = PTXType("b128", "b", 128)


def ptx_type(name: str) -> PTXType:
    """Return the type *name* (without a dot); raise KeyError for what is not a type."""
    return TYPES[name]

# SPDX-License-Identifier: BSD-2-Clause
"""The text of a function of LLVM IR in the making: instructions, labels, and slots on its stack."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

SUFFIXES = {"float": "f32", "double": "f64"}  # of the types in names of intrinsics; integers have their own names


class IRText:
    """Instructions in *lines*; the slots come before them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.slots: dict[str, str] = {}
        self.declarations: set[str] = set()
        self.count = 0

    def emit(self, line: str) -> None:
        self.lines.append(" " + line)

    def temporary(self, line: str) -> str:
        """Emit what has a result; return its name."""
        self.count += 1
        self.emit(f"%t{self.count} = {line}")
        return f"%t{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def start_block(self, label: str) -> None:
        self.lines.append(f'"{label}":')

    def go_to(self, label: str) -> None:
        """Go on in a new block with this *label*."""
        self.emit(f'br label %"{label}"')
        self.start_block(label)

    def leave(self, line: str) -> None:
        """Emit an instruction after which nothing of this block is reached."""
        self.emit(line)
        self.start_block(self.label())

    @contextlib.contextmanager
    def when(self, condition: str, *, fails: bool = False) -> Iterator[None]:
        """Do what is emitted within only if the *condition* holds; or if it *fails*, which is rare."""
        then, after = self.label(), self.label()
        targets = f"label %{after}, label %{then}, !prof !0" if fails else f"label %{then}, label %{after}"
        self.emit(f"br i1 {condition}, {targets}")
        self.start_block(then)
        yield
        self.go_to(after)

    def slot(self, name: str, type: str) -> str:
        """Return a pointer to what is on the stack under *name*; an integer is 0 at first."""
        pointer = f'%"{name}"'
        if pointer not in self.slots:
            zero = f"\n store {type} 0, ptr {pointer}" if type[0] == "i" else ""
            self.slots[pointer] = f" {pointer} = alloca {type}{zero}"
        return pointer

    def call_symbol(self, returns: str, symbol: str, *arguments: str) -> str:
        """Call *symbol* with *arguments*, each after its type; return the result."""
        text = f"call {returns} {symbol}({', '.join(arguments)})"
        if returns != "void":
            return self.temporary(text)
        self.emit(text)
        return ""

    def call_intrinsic(self, name: str, returns: str, *arguments: str) -> str:
        """Call what LLVM has under *name* with *arguments*, each after its type."""
        types = ", ".join(argument.partition(" ")[0] for argument in arguments)
        self.declarations.add(f"declare {returns} @llvm.{name}({types})")
        return self.call_symbol(returns, f"@llvm.{name}", *arguments)

    def intrinsic(self, name: str, llvm: str, *arguments: str) -> str:
        """Call an intrinsic of one type."""
        more = ["i1 false"] if name in ("abs", "ctlz", "cttz") else []  # whether a result is undefined
        return self.call_intrinsic(
            f"{name}.{SUFFIXES.get(llvm, llvm)}", llvm, *(f"{llvm} {each}" for each in arguments), *more
        )

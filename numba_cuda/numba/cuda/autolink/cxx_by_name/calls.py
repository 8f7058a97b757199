# SPDX-License-Identifier: BSD-2-Clause
"""Calls of C++ functions, as records."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from numba.cuda.cudadrv.external_code.inputs.link_input import line_marker

from ..device_callable.array_views import mdspan
from .kernels import MARKED_KERNELS
from .parameters import Parameter, mode_of
from .prelude import PRELUDE, VIEWS
from .structs import Struct

_LONGEST_READABLE = 40
# Stands for the text that is ours in the symbols of calls.
_PRELUDE = hashlib.sha256((PRELUDE + VIEWS).encode()).hexdigest()
_VIEW_MODES = ("nca::nca_by_mdspan", "nca::nca_by_span")


@dataclass(frozen=True)
class Head:
    """What the calls of a library share.

    Attributes
    ----------
    source:
        The library's source.
    identity:
        Digits that stand for the source and how it is compiled.
    namespace:
        Where names resolve; empty for the global namespace.
    records:
        The structs that have Numba types.
    """

    source: str
    identity: str
    namespace: str = ""
    records: tuple[Struct, ...] = ()

    @property
    def text(self) -> str:
        """The text before all calls of a translation unit."""
        check = f"namespace nca_check {{ using namespace {self.namespace}; }}\n" if self.namespace else ""
        source = f"{MARKED_KERNELS}{line_marker('source of autolink.cxx')}{self.source}"
        return f"{source}\n{check}{line_marker('prelude')}{PRELUDE}"


@dataclass(frozen=True)
class CallPattern:
    """How a function of C++ is called, whatever the arguments are.

    Attributes
    ----------
    name:
        What messages call the function.
    text:
        The C++ expression, in which `ALL`, or `FIRST` and `REST`, stand for the arguments.
    callee:
        An expression for the function object that is called, which the text calls `CALLEE`.
    passing:
        How arrays are passed; see `CxxFunction.passing`.
    written:
        The positions of the arguments whose new values are returned as well.
    """

    name: str
    text: str
    callee: str = ""
    passing: tuple[str | None, ...] = ()
    written: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call:
    """A call of a C++ function with arguments of the Numba types *argtypes*; *label* is what messages call it, and
    *symbol* the name of the C function that makes it."""

    head: Head
    pattern: CallPattern
    parameters: tuple[Parameter, ...]
    label: str
    argtypes: tuple[Any, ...] = ()
    symbol: str = field(init=False)

    def __post_init__(self) -> None:
        name = self.pattern.name.partition("(")[0]
        readable = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:_LONGEST_READABLE] or "expression"
        called = self.pattern.text, self.pattern.callee, self.pattern.written
        head = self.head.identity, self.head.namespace, self.head.records
        content = repr((head, called, self.parameters, _PRELUDE))
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        object.__setattr__(self, "symbol", f"cxx_{readable}_{digest}")

    @property
    def question(self) -> str:
        """The name expression whose lowered name spells the type of the result, the way arrays are passed, and which
        arguments are written to."""
        passed = f"nca::nca_told<{self.symbol}_mode, {self.symbol}_written>"
        return f"&nca::nca_tell<nca::nca_all_t<{passed}, {self.symbol}_code>>"

    def array_views(self, mode: int) -> list[Any]:
        """Return for each parameter the view that an `Extern` passes it as, or None, where C++ chose *mode* for arrays
        that may be passed in several ways."""
        chosen = ("nca::nca_by_pointer", *_VIEW_MODES)[mode]
        return [
            mdspan if each.as_array and (mode_of(each.way) if each.way else chosen) in _VIEW_MODES else None
            for each in self.parameters
        ]

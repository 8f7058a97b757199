# SPDX-License-Identifier: BSD-2-Clause
"""One kernel: its checks, the functions that it reaches, the layout of its shared memory, what its lowering finds."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields

import numpy as np

from .linked_texts import LinkedTexts
from .memory import Region
from .parser import Function, Variable
from .state import FIRST_SHARED_ADDRESS


@dataclass(frozen=True)
class Checks:
    """The checks of a module.

    - *bounds*: each access is within an allocation, a shared or local variable, or the parameters, and none of it is
      freed.
    - *alignment*: addresses are multiples of what is accessed there.
    - *initialised*: shared and local memory is written before it is read.
    - *races*: two threads of a block do not access the same byte of shared memory, one of them writing, with no barrier
      between; atomic accesses do not race with each other.
    - *barriers*: threads that wait for each other wait in the same barrier instruction.
    - *exited*: no thread has returned when the others wait at a barrier of the whole block. GPUs allow this.
    - *most_back_edges*: how often a thread may go back in its loops; 0 is as often as it likes.
    """

    bounds: bool = True
    alignment: bool = True
    initialised: bool = False
    races: bool = False
    barriers: bool = True
    exited: bool = False
    most_back_edges: int = 0

    @classmethod
    def all(cls) -> Checks:
        """Return every check; kernels run slower."""
        return cls(**{field.name: True for field in fields(cls) if isinstance(field.default, bool)})


_GAP_BYTES, _LARGEST_WITH_GAPS = 16, 32 << 10
_SPILLED_BYTES = 32  # an instruction becomes at most four values that live across branches


class Program:
    """The kernel *kernel* of *linked*, whose variables are at the addresses *variables*.

    Its lowering notes the declarations, native functions and helpers that it needs, whether threads may wait, loop and
    spin, and the number of its slots, which hold what accesses met last.
    """

    def __init__(self, linked: LinkedTexts, kernel: Function, checks: Checks, variables: np.ndarray):
        self.linked, self.kernel, self.checks, self.variables = linked, kernel, checks, variables
        self.functions = linked.list_reachable(kernel)
        self.declarations: set[str] = set()
        self.natives: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.loops = self.spins = False
        self.slots: dict[tuple[int, str, int], int] = {}
        self.shared, self.static_shared_bytes = self._lay_out_shared()
        self.suspends = checks.initialised and checks.races and bool(self.shared)  # see `access.fail_unwritten`

    def _lay_out_shared(self) -> tuple[dict[tuple[int, str], Region], int]:
        """Return where variables are, as shared addresses, by text and name; and the bytes of those of a known size."""
        used: dict[tuple[int, str], Variable] = {}
        for function in self.functions:
            for name in function.names:
                text, variable = self.linked.find_variable(function.text, name)
                if variable is not None and variable.space == "shared":
                    used[text, name] = variable
        end = FIRST_SHARED_ADDRESS
        regions: dict[tuple[int, str], Region] = {}
        # Between them is memory that is never written, where accesses past the end of one are found.
        fits = sum(variable.nbytes + 2 * _GAP_BYTES for variable in used.values()) <= _LARGEST_WITH_GAPS
        gap = _GAP_BYTES if self.checks.initialised and fits else 0
        for key, variable in used.items():
            if variable.nbytes:
                end += gap if regions else 0
                end = -(-end // variable.align) * variable.align
                regions[key] = Region(end, variable.nbytes, variable.name)
                end += variable.nbytes
        align = max([16, *(v.align for v in used.values() if not v.nbytes)])
        dynamic = -(-end // align) * align
        unsized = {key: Region(dynamic, 0, v.name) for key, v in used.items() if not v.nbytes}
        return regions | unsized, (dynamic if unsized else end) - FIRST_SHARED_ADDRESS

    @property
    def local_bytes(self) -> int:
        """The bytes of local memory in all functions."""
        return sum(v.nbytes for f in self.functions for v in f.local_variables.values() if v.space == "local")

    @property
    def frame_bytes(self) -> int:
        """The bytes that a call of each function takes: local memory with its shadow, and all values if they are
        spilled."""
        return 2 * self.local_bytes + _SPILLED_BYTES * sum(len(f.code) for f in self.functions)

    @property
    def stack_bytes(self) -> int:
        """The bytes of a thread's stack: for a call of each function, and for recursion."""
        nbytes = self.frame_bytes + (1 << 18 if self.may_recurse else 1 << 15)
        return -(-nbytes // 4096) * 4096

    @functools.cached_property
    def may_recurse(self) -> bool:
        """Whether functions call others in a circle, or through pointers."""
        if any(function.calls_pointers for function in self.functions):
            return True
        find = self.linked.find_function
        callees = {id(f): {id(find(f.text, name)) for name in f.called} for f in self.functions}
        while leaves := [f for f, called in callees.items() if not called & callees.keys()]:
            for leaf in leaves:
                del callees[leaf]
        return bool(callees)

    # What functions ask

    def find_variable(self, function: Function, name: str) -> Variable | None:
        """Return the variable that *name* stands for, which may be a register, in *function*."""
        if name in function.registers:
            return None
        return function.local_variables.get(name) or self.linked.find_variable(function.text, name)[1]

    def function_symbol(self, function: Function) -> str:
        return "@kernel" if function.is_entry else f"@f{self.linked.function_numbers[id(function)]}"

# SPDX-License-Identifier: BSD-2-Clause
"""Modules: linked PTX with its variables, and its kernels, compiled once each."""

from __future__ import annotations

import ctypes
import re
import threading
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from ..cache_folder import read_entry, write_entry
from . import memory
from .compiler import NativeCode, compile_text, entry_name
from .diagnosis import Size, describe_shared_memory
from .errors import PTXSyntaxError
from .launcher import launch
from .linked_texts import LinkedTexts
from .lowering import lower_program
from .parser import TYPES, Function, Variable, parse_constant
from .program import Checks, Program

_MOST_STATIC_SHARED = 48 << 10  # bytes, of each GPU


class Module:
    """The texts *ptx*, joined, ready to run. Raises `UnsupportedInstruction` for what the emulator does not have.

    *checks* says what is checked while its kernels run. *make_lined* returns the same texts with the lines of their
    sources, for messages.
    """

    def __init__(
        self,
        ptx: Sequence[str],
        *,
        checks: Checks | None = None,
        make_lined: Callable[[], Sequence[str]] | None = None,
    ):
        self.checks = checks or Checks()
        self.texts = [text.decode() if isinstance(text, bytes) else text for text in ptx]
        self.linked = LinkedTexts(self.texts, make_lined)
        self.addresses = np.zeros(max(1, len(self.linked.variables)), np.uint64)
        weakref.finalize(self, memory.abandoned.append, self.addresses)
        self.kernels = {f.name: Kernel(self, f) for f in self.linked.functions if f.is_entry}
        for function in self.linked.functions:
            for name in function.names:
                self._address_of(function.text, name)

    def find_variable(self, name: str) -> memory.Region | None:
        """Return where the global or constant variable *name* is; one that no code uses gets its memory now."""
        found = [(text, v) for text, v in self.linked.variables if v.name == name]
        return memory.Region(self._address_of(found[-1][0], name), found[-1][1].nbytes, name) if found else None

    def _address_of(self, text: int, name: str) -> int:
        """Return the address of what *name* stands for in a *text*, 0 if there is nothing. A variable that is new gets
        its memory and its initial value."""
        text, variable = self.linked.find_variable(text, name)
        number = self.linked.variable_numbers.get((text, name))
        if variable is None or number is None:
            function = self.linked.find_function(text, name)
            return 0 if function is None else self.linked.function_address(function)
        if not self.addresses[number]:
            self.addresses[number] = address = memory.allocate(variable.nbytes, label=name)
            content = b"".join(self._bytes_of(word, variable, text) for word in variable.initial)
            ctypes.memmove(address, content.ljust(variable.nbytes, b"\0"), variable.nbytes)
        return int(self.addresses[number])

    def _bytes_of(self, word: str, variable: Variable, text: int) -> bytes:
        """Return the bytes of a *word* of the initial value of a *variable* of a *text*."""
        type = TYPES[variable.type]
        value = parse_constant(word, type)
        if value is None:
            found = re.fullmatch(r"(?:generic\s*\(\s*([\w$]+)\s*\)|([\w$]+))\s*(?:([+-])\s*(\d+))?", word)
            if found is None:
                raise PTXSyntaxError(f"The initial value {word} of a variable was not understood")
            name, offset = found[1] or found[2], int(found[4] or 0) * (-1 if found[3] == "-" else 1)
            address = self._address_of(text, name)
            if not address:
                raise PTXSyntaxError(f"The initial value of a variable names {name}, which is not defined")
            value = address + offset & (1 << type.bits) - 1
        return value.to_bytes(type.nbytes, "little")


class Kernel:
    """A kernel of a `Module`, and what a driver tells about it."""

    def __init__(self, module: Module, function: Function):
        self.name, self._module, self._function = function.name, module, function
        self._program = Program(module.linked, function, module.checks, module.addresses)
        self.shared_bytes, self.local_bytes = self._program.static_shared_bytes, self._program.local_bytes
        if self.shared_bytes > _MOST_STATIC_SHARED:
            raise describe_shared_memory(self._program, _MOST_STATIC_SHARED)
        threads = function.directives.get("reqntid") or function.directives.get("maxntid") or (1024, 1, 1)
        self.max_threads = min(1024, threads[0] * threads[1] * threads[2])
        self.constant_bytes = sum(each.nbytes for _, each in module.linked.variables if each.space == "const")
        self._entry = entry_name("kernel", function.name, repr(module.checks), *module.texts)
        self._stored = read_entry(self._entry)
        self._text = "" if self._stored else lower_program(self._program)
        self._code: NativeCode | None = None
        self._lock = threading.Lock()

    @property
    def parameters(self) -> tuple[tuple[int, int], ...]:
        """Offset and size of each parameter in the packed buffer."""
        offsets, _ = self._function.parameter_offsets
        return tuple((offsets[each.name], each.nbytes) for each in self._function.parameters)

    def _compile(self) -> NativeCode:
        with self._lock:
            if self._code is None:
                if self._stored is None:
                    self._stored = compile_text(self._text)
                    write_entry(self._entry, self._stored)
                self._code = NativeCode(self._stored)
                self._stored, self._text = None, ""
            return self._code

    def launch(self, grid: Size, block: Size, arguments: bytes, *, shared: int = 0, cooperative: bool = False) -> None:
        """Run the kernel to its end on *grid* blocks of *block* threads; *arguments* is the packed parameter buffer.

        *shared* are the bytes of dynamic shared memory. The blocks of a *cooperative* grid run at the same time.
        """
        launch(self._compile(), self._program, grid, block, arguments, shared, cooperative)

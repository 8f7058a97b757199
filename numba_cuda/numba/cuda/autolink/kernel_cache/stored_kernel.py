# SPDX-License-Identifier: BSD-2-Clause
"""A compiled kernel with external code as bytes, together with the record of what it was made of."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.target import Target

from ..compiling.code_library import LinkingCodeLibrary
from .bodies import bodies_of
from .reachable import Reached
from .record import Record
from .references import KernelPickler, KernelUnpickler, NotCacheableError


@dataclass(frozen=True)
class StoredKernel:
    """A kernel that was saved.

    Attributes
    ----------
    signature:
        The types of its arguments.
    kernel:
        Its states, without the code library.
    library_class, library:
        The class and the states of its code library.
    record:
        What it was made of.
    """

    signature: Any
    kernel: dict[str, Any]
    library_class: Any
    library: dict[str, Any]
    record: Record

    def change(self, signature: Any) -> str | None:
        """Return what changed since the kernel was saved, in words, or ``None``. Asks hooks, which may raise."""
        if self.signature != signature:
            return "its argument types have the names of other types"
        return self.record.change(self.library.get("entries", ()))

    def states(self) -> dict[str, Any]:
        """Return what numba-cuda rebuilds the kernel from."""
        return {**self.kernel, "codelibrary": self.library_class._rebuild(**self.library)}


def dump_kernel(kernel: Any, signature: Any, reached: Reached) -> bytes:
    """Return *kernel*, which was just linked, as bytes, with the record of its external code.

    Raises
    ------
    NotCacheableError
        If another process could not find out whether it changed.
    """
    if reached.unknown is not None:
        raise NotCacheableError(reached.unknown)
    library = kernel._codelibrary
    states = library._reduce_states()
    entries = states.get("entries", ())
    file = io.BytesIO()
    pickler = KernelPickler(file, reached, entries)
    kernel_states = {name: value for name, value in kernel._reduce_states().items() if name != "codelibrary"}
    target = states.get("target") or Target((0, 0))
    record = Record.of(entries, target, bodies_of(library, kernel.py_func, reached))
    if isinstance(library, LinkingCodeLibrary) and library.changed_since_linked:
        raise NotCacheableError("a file that it links was edited while it was built")
    pickler.dump((signature, kernel_states, library._reduce_class(), states, record))
    return file.getvalue()


def load_kernel(data: bytes, reached: Reached) -> StoredKernel:
    """Return the kernel that `dump_kernel` wrote, with references to what is *reached* now.

    *data* is unpickled: it must come from a store that nobody else can write to.
    """
    return StoredKernel(*KernelUnpickler(io.BytesIO(data), reached).load())

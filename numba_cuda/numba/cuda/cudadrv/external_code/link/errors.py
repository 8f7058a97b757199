# SPDX-License-Identifier: BSD-2-Clause
"""The error of a link, and what its messages speak of: the parts of the link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuda.core import ObjectCode
from numba.cuda.cudadrv.driver import LinkerError

from ..inputs import kinds
from ..inputs.kinds import Kind

_MAKE = {
    kinds.PTX: ObjectCode.from_ptx,
    kinds.LTO_IR: ObjectCode.from_ltoir,
    kinds.CUBIN: ObjectCode.from_cubin,
    kinds.FATBIN: ObjectCode.from_fatbin,
    kinds.OBJECT: ObjectCode.from_object,
    kinds.ARCHIVE: ObjectCode.from_library,
}


class LinkError(LinkerError):
    """A kernel's external code could not be compiled or linked.

    Attributes
    ----------
    log:
        All that the compiler or linker printed; its own exception is ``__cause__``.
    source_path:
        Of a CUDA C++ source that does not compile: the file that holds it, ``None`` where it could not be saved.
    """

    def __init__(self, message: str, log: str = "", *, source_path: str | None = None, shown: str | None = None):
        self.log = log.replace("\0", "").strip()
        self.source_path = source_path
        shown = self.log if shown is None else shown
        super().__init__(f"{message}\n  log: {_indented(shown)}" if shown else message)


def _indented(log: str) -> str:
    return "\n    ".join(line for line in log.splitlines() if line.strip())


@dataclass(frozen=True)
class Part:
    """One input as the linker takes it. ``origin`` tells where it comes from, for messages."""

    kind: Kind
    code: bytes
    origin: str
    name: str

    def object_code(self) -> ObjectCode:
        """The same as the linker takes it."""
        return _MAKE[self.kind](self.code, name=self.name)


def listed(parts: Sequence[Part]) -> str:
    """The origins of *parts*, for a message."""
    return "; ".join(part.origin for part in parts)

# SPDX-License-Identifier: BSD-2-Clause
"""Which code runs on which GPU, and which of it is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class CodeFor(NamedTuple):
    """What code was built for: a compute capability, its suffix (``a``, ``f`` or none), and ``cubin`` or ``ptx``."""

    major: int
    minor: int
    suffix: str
    kind: str

    def __str__(self) -> str:
        return f"{'compute' if self.kind == 'ptx' else 'sm'}_{self.major}{self.minor}{self.suffix}"

    def runs_on(self, device: tuple[int, int]) -> bool:
        """Return whether it runs on a GPU of compute capability *device*.

        Cubins run on later minor versions of their major version, PTX on all later ones; what is architecture-specific
        (``a``) runs on its own compute capability alone, and what is family-specific (``f``) on its major version.
        """
        own = self.major, self.minor
        if self.suffix == "a":
            return own == device
        if self.suffix == "f" or self.kind == "cubin":
            return self.major == device[0] and own <= device
        return own <= device

    @property
    def preference(self) -> tuple[bool, int, int, int]:
        """The higher, the better a GPU is used, of code that runs on it."""
        return self.kind == "cubin", self.major, self.minor, ("", "f", "a").index(self.suffix)


def best(codes: Iterable[CodeFor], device: tuple[int, int]) -> int | None:
    """Return the index of the best of *codes* for a GPU of compute capability *device*, ``None`` if none runs on it."""
    fitting = [(code.preference, -index) for index, code in enumerate(codes) if code.runs_on(device)]
    return -max(fitting)[1] if fitting else None

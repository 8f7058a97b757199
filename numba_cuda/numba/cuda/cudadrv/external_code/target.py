# SPDX-License-Identifier: BSD-2-Clause
"""The target of a compilation: what linkable code must fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import toolkit


@dataclass(frozen=True)
class Target:
    """What linkable code must fit. Equal targets can share code.

    Attributes
    ----------
    compute_capability:
        ``(major, minor)``, for example ``(9, 0)``.
    suffix:
        ``"a"`` (architecture-specific), ``"f"`` (family-specific) or ``""``.
    lto:
        Whether the kernel is linked with link-time optimisation: LTO-IR is then inlined into it.
    debug, lineinfo, fastmath:
        The kernel's options of the same names.
    max_registers:
        The kernel's register cap per thread, or ``None``.
    """

    compute_capability: tuple[int, int]
    suffix: str = ""
    lto: bool = False
    debug: bool = False
    lineinfo: bool = False
    fastmath: bool = False
    max_registers: int | None = None

    def __post_init__(self) -> None:
        if self.suffix not in ("", "a", "f"):
            raise ValueError(f"the suffix of a compute capability is '', 'a' or 'f', not {self.suffix!r}")

    @property
    def cc(self) -> tuple[int, int, str]:
        """Compute capability and suffix as numba-cuda's code libraries take them: ``(9, 0, "a")``."""
        return (*self.compute_capability, self.suffix)

    @property
    def arch(self) -> str:
        """The architecture's name for compilers and linkers, for example ``"sm_90a"``."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}{self.suffix}"

    @property
    def nvrtc_version(self) -> tuple[int, int] | None:
        """``(major, minor)`` of the NVRTC in this process, ``None`` where there is none."""
        return toolkit.nvrtc_version()

    @property
    def nvjitlink_version(self) -> tuple[int, int] | None:
        """``(major, minor)`` of the nvJitLink in this process, ``None`` where there is none."""
        return toolkit.nvjitlink_version()

    @property
    def nvvm_version(self) -> tuple[int, int] | None:
        """``(major, minor)`` of the libNVVM in this process, ``None`` where there is none."""
        return toolkit.nvvm_version()


def split_cc(cc: tuple[Any, ...]) -> tuple[tuple[int, int], str]:
    """``(9, 0)`` or ``(9, 0, "a")`` as compute capability and suffix."""
    return (int(cc[0]), int(cc[1])), (str(cc[2]) if len(cc) == 3 else "")

# SPDX-License-Identifier: BSD-2-Clause
"""Compute capabilities, and the target of a compilation: what linkable code must fit."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from ..diagnostics.messages import safe_repr, shown, suggest_names
from . import cuda_libraries

# What `ComputeCapability.parse` accepts; the types of other packages are named tuples.
ComputeCapabilityLike: TypeAlias = "ComputeCapability | tuple[Any, ...] | str | SupportsIndex"

_TEXT = re.compile(r"(?:(\d{1,2})\.(\d)|(?:sm_|compute_)?(\d{1,2})(\d))([af]?)", re.ASCII)
_EXPECTED = "expected (9, 0), (9, 0, 'a'), '9.0', '9.0a', 'sm_90a' or 90"


class ComputeCapability(tuple[Any, ...]):
    """A compute capability: that of a GPU, or what code is built for.

    It is a tuple, equal to ``(9, 0)`` or, with a suffix, to ``(9, 0, "a")``. As text it is ``9.0a``. The *suffix* is
    ``"a"`` (architecture-specific code), ``"f"`` (family-specific code) or ``""``.

    Raises ``TypeError`` if ``major`` or ``minor`` is not an integer, ``ValueError`` if ``minor`` is not one digit,
    ``major`` is negative or not below 100, or there is no such suffix.
    """

    __slots__ = ()

    def __new__(cls, major: SupportsIndex, minor: SupportsIndex, suffix: str = "") -> ComputeCapability:
        if isinstance(major, bool) or isinstance(minor, bool):
            raise TypeError(f"the parts of a compute capability are integers, not ({major!r}, {minor!r})")
        try:
            numbers = operator.index(major), operator.index(minor)
        except TypeError:
            raise TypeError(
                f"the parts of a compute capability are integers, not ({safe_repr(major, 40)}, {safe_repr(minor, 40)})"
            ) from None
        if not (0 <= numbers[0] < 100 and 0 <= numbers[1] < 10):
            raise ValueError(f"there is no compute capability {numbers[0]}.{numbers[1]}")
        if suffix not in ("", "a", "f"):
            raise ValueError(f"the suffix of a compute capability is '', 'a' or 'f', not {suffix!r}")
        return super().__new__(cls, (*numbers, suffix) if suffix else numbers)

    @classmethod
    @suggest_names
    def parse(cls, value: ComputeCapabilityLike) -> ComputeCapability:
        """Return the compute capability that *value* means: ``(9, 0)``, ``(9, 0, "a")``, ``"9.0"``, ``"9.0a"``,
        ``"sm_90a"``, ``"compute_90"``, ``"90a"`` or ``90``; or what numba-cuda and ``cuda.core`` return for a GPU.

        Raises ``TypeError`` if *value* is of another type (a ``float`` is refused: 12.1 and 12.10 are the same one),
        ``ValueError`` if it is a tuple, text or number that does not mean a compute capability.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, tuple):
            if len(value) not in (2, 3):
                raise ValueError(f"{value!r} is not a compute capability: got {len(value)} parts, {_EXPECTED}")
            try:
                return cls(*value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{value!r} is not a compute capability: {error}; {_EXPECTED}") from None
        try:
            if isinstance(value, bool):
                raise TypeError
            match = _TEXT.fullmatch(value.strip() if isinstance(value, str) else str(operator.index(value)))
        except TypeError:
            raise TypeError(f"{shown(value, 20)} is not a compute capability: {_EXPECTED}") from None
        if match is None:
            raise ValueError(f"{value!r} is not a compute capability: {_EXPECTED}")
        major, minor = match.group(1, 2) if match[1] else match.group(3, 4)
        return cls(int(major), int(minor), match[5])

    @property
    def major(self) -> int:
        """The first number: 9 of 9.0."""
        return int(self[0])

    @property
    def minor(self) -> int:
        """The second number: 0 of 9.0."""
        return int(self[1])

    @property
    def suffix(self) -> str:
        """``"a"``, ``"f"`` or ``""``."""
        return self[2] if len(self) == 3 else ""

    @property
    def parts(self) -> tuple[int, int, str]:
        """Numbers and suffix as numba-cuda's code libraries take them: ``(9, 0, "")``."""
        return self.major, self.minor, self.suffix

    @property
    def base(self) -> ComputeCapability:
        """The compute capability without its suffix."""
        return ComputeCapability(self.major, self.minor)

    @property
    def as_launched(self) -> ComputeCapability:
        """What a launch on a GPU of it builds for: from 9.0 on architecture-specific code."""
        return ComputeCapability(self.major, self.minor, "a") if self >= (9, 0) else self

    @property
    def arch(self) -> str:
        """The architecture's name for compilers and linkers, for example ``"sm_90a"``."""
        return f"sm_{self.major}{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self))})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


@dataclass(frozen=True)
class Target:
    """What linkable code must fit. Equal targets can share code.

    ``TypeError`` or ``ValueError`` is raised if the first two are not a compute capability.

    Attributes
    ----------
    compute_capability:
        A `ComputeCapability` without suffix, equal to ``(9, 0)``, for which anything can be given that
        `ComputeCapability.parse` accepts, a suffix included.
    suffix:
        ``"a"`` (architecture-specific), ``"f"`` (family-specific) or ``""``.
    lto:
        Whether the kernel is linked with link-time optimisation, in which LTO-IR is inlined into it.
    debug, lineinfo, fastmath:
        The kernel's option of this name.
    max_registers:
        The kernel's register cap per thread, or ``None``.
    """

    compute_capability: ComputeCapability
    suffix: str = ""
    lto: bool = False
    debug: bool = False
    lineinfo: bool = False
    fastmath: bool = False
    max_registers: int | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            compute_capability: ComputeCapabilityLike,
            suffix: str = "",
            lto: bool = False,
            debug: bool = False,
            lineinfo: bool = False,
            fastmath: bool = False,
            max_registers: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        given = ComputeCapability.parse(self.compute_capability)
        if self.suffix and given.suffix not in ("", self.suffix):
            raise ValueError(f"the suffix {self.suffix!r} contradicts the compute capability {given}")
        whole = ComputeCapability(given.major, given.minor, self.suffix or given.suffix)
        self.__dict__.update(compute_capability=whole.base, suffix=whole.suffix)

    @property
    def cc(self) -> tuple[int, int, str]:
        """Compute capability and suffix as numba-cuda's code libraries take them: ``(9, 0, "a")``."""
        return self.compute_capability.major, self.compute_capability.minor, self.suffix

    @property
    def arch(self) -> str:
        """The architecture's name for compilers and linkers, for example ``"sm_90a"``."""
        return f"{self.compute_capability.arch}{self.suffix}"

    @property
    def nvrtc_version(self) -> tuple[int, int] | None:
        """``(major, minor)`` of the NVRTC in this process, ``None`` where there is none."""
        return cuda_libraries.nvrtc_version()

    @property
    def nvjitlink_version(self) -> tuple[int, int] | None:
        """``(major, minor)`` of the nvJitLink in this process, ``None`` where there is none."""
        return cuda_libraries.nvjitlink_version()

    @property
    def nvvm_version(self) -> tuple[int, int] | None:
        """``(major, minor)`` of the libNVVM in this process, ``None`` where there is none."""
        return cuda_libraries.nvvm_version()

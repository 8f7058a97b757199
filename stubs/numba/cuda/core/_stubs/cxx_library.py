# SPDX-License-Identifier: BSD-2-Clause
# A stub in a Python file: in others jedi does not look for __getattr__.
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy import dtype
from numpy.typing import DTypeLike

from numba.cuda.autolink import CxxFunction, CxxType, DeviceCallable
from numba.cuda.core._stubs.arguments import _ComputeCapabilityLike


class CxxLibrary(DeviceCallable):
    __call__: None  # type: ignore[assignment]  # its functions are called

    def __getattr__(self, name: str) -> CxxFunction: ...
    def __getitem__(self, name: str) -> CxxFunction: ...
    def expr(self, text: str) -> CxxFunction: ...
    def eval(self, text: str, cc: _ComputeCapabilityLike | None = None) -> Any: ...
    def type(self, name: str, cc: _ComputeCapabilityLike | None = None) -> CxxType: ...
    def record(
        self, name: str, dtype: DTypeLike | None = None, cc: _ComputeCapabilityLike | None = None
    ) -> dtype[Any]: ...
    def declare(
        self,
        calls: Iterable[tuple[str | CxxFunction, Iterable[Any]]],
        cc: _ComputeCapabilityLike | None = None,
    ) -> None: ...

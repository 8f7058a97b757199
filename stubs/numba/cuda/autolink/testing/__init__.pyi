# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable, Iterable
from typing import Any, Literal

from numba.cuda.autolink import Variable
from numba.cuda.core._stubs.arguments import _ComputeCapabilityLike, _KernelSignature
from numba.cuda.core._stubs.autolink import FailedCheck, HasHook, Kind
from numba.cuda.core._stubs.launches import Size
from numba.cuda.dispatcher import CUDADispatcher

__all__ = [
    "Check",
    "LinkInput",
    "Linkable",
    "LinkedCode",
    "NotLinkableError",
    "ask",
    "check_linkable",
    "compile_cached",
]

class LinkInput:
    @property
    def kind(self) -> Kind: ...
    @property
    def code(self) -> bytes: ...
    @property
    def text(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def variable(self) -> Variable | None: ...

class Check:
    name: str
    skipped: str

class LinkedCode:
    kind: str
    name: str
    size: int
    digest: str
    text: str | None
    @classmethod
    def of(cls, item: LinkInput) -> LinkedCode: ...

class Linkable:
    call: str
    argtypes: tuple[Any, ...]
    symbols: tuple[str, ...]
    @property
    def code(self) -> tuple[LinkedCode, ...]: ...
    @property
    def checks(self) -> tuple[Check, ...]: ...

class NotLinkableError(AssertionError):
    @property
    def wrong(self) -> tuple[FailedCheck, ...]: ...
    @property
    def checks(self) -> tuple[Check, ...]: ...

def ask(
    obj: object, *argtypes: Any, cc: _ComputeCapabilityLike = (9, 0), lto: bool = True
) -> tuple[LinkInput, ...] | None: ...
def check_linkable(
    obj: Callable[..., Any] | CUDADispatcher[..., Any] | HasHook,
    *argtypes: Any,
    cc: _ComputeCapabilityLike = (9, 0),
    lto: bool | None = None,
    others: Iterable[Any] = (),
    length: int = 64,
    threads: Size | None = None,
    samples: Iterable[tuple[Any, ...]] | None = None,
    rtol: float | None = None,
) -> Linkable: ...
def compile_cached(
    kernel: Any, signature: _KernelSignature, cc: _ComputeCapabilityLike
) -> tuple[bytes, Literal["loaded", "built"]]: ...

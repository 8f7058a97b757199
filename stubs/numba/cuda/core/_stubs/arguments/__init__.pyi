# SPDX-License-Identifier: BSD-2-Clause
# Types of arguments. jedi, which does not see private names of other stubs, then takes the overload of build that fits.
from collections.abc import Iterator
from types import CodeType
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar

from typing_extensions import Never

from numba.cuda.autolink import ComputeCapability
from numba.cuda.dispatcher import CUDADispatcher

_T = TypeVar("_T", covariant=True)

_ComputeCapabilityLike: TypeAlias = (
    ComputeCapability | tuple[SupportsIndex, ...] | tuple[SupportsIndex, SupportsIndex, str] | str | SupportsIndex
)
_OptionalComputeCapability: TypeAlias = _ComputeCapabilityLike | None
_Output: TypeAlias = Literal["cubin", "ptx", "ltoir"]

# A list, and neither a tuple nor text: of any of these, as a list that is read, which list[...] is not.
class _ListOf(Protocol[_T]):
    def __iter__(self) -> Iterator[_T]: ...
    def reverse(self) -> None: ...

class _Signature(Protocol):
    @property
    def args(self) -> tuple[Any, ...]: ...
    @property
    def return_type(self) -> Any: ...

# Integers in kernels: those that Numba's types make have its signatures.
_Integer: TypeAlias = SupportsIndex | _Signature

# What is compiled for a signature: a dispatcher, a function, or a kernel of numba-cuda-mlir.
class _Function(Protocol):
    @property
    def __code__(self) -> CodeType: ...
    def __call__(self, *args: Any, **kwargs: Any) -> object: ...

class _MLIRKernel(Protocol):
    @property
    def inspect_mlir(self) -> Any: ...

_Buildable: TypeAlias = CUDADispatcher[..., Any] | _Function | _MLIRKernel
_KernelSignature: TypeAlias = str | tuple[Any, ...] | _Signature

# A collection, which text is not.
class _Several(Protocol):
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, item: object, /) -> bool: ...

_LaunchBounds: TypeAlias = int | tuple[int, ...] | None

# No value is of these types, and checkers name the argument. mypy does so for an overload that the argument fits where
# type arguments do not count. The names of the classes are in messages. NoSuchOption is of any name in the last of
# several overloads.
class NoSuchOption(Protocol[_T]):
    def __sizeof__(self) -> _T: ...  # type: ignore[override]

class GridAndBlockOfIntegers(NoSuchOption[_T], Protocol[_T]): ...
class GivenByName(NoSuchOption[_T], Protocol[_T]): ...
class SignatureIsMissing(NoSuchOption[_T], Protocol[_T]): ...
class NothingElse(NoSuchOption[_T], Protocol[_T]): ...

NoOther: TypeAlias = NothingElse[Never]

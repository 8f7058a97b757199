# SPDX-License-Identifier: BSD-2-Clause
"""The hooks that objects implement, as protocols for type checkers and readers.

An object needs none of these classes: it has the method, and imports nothing. `isinstance` tells whether it has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union, runtime_checkable

if TYPE_CHECKING:
    from cuda.core import ObjectCode
    from numba.cuda.cudadrv.linkable_code import LinkableCode

    from ..c_abi.extern import Extern
    from ..device_functions.definition import DeviceFunction

# A Union of forward references: the simulator can import this module too.
LinkItem: TypeAlias = Union["LinkableCode", "ObjectCode", "DeviceFunction", str, "os.PathLike[str]"]
"""One piece of code to link, as a ``__numba_cuda_link__`` returns it."""

# What a __numba_cuda_link__ may return.
LinkItems: TypeAlias = LinkItem | Iterable[LinkItem] | None

# `named` of the methods below takes nothing. Type checkers accept any parameters in an implementation only of methods
# with both *args: Any and **kwargs: Any.


@runtime_checkable
class SupportsLink(Protocol):
    """An object whose calls in kernels bring code to link.

    Any object that a kernel can call may have the hook: a function declared by ``cuda.declare_device``, a device
    function, an object with Numba typing of its own, a `DeviceCallable`.
    """

    def __numba_cuda_link__(self, *argtypes: Any, **named: Any) -> LinkItems:
        """Return the code that a call with arguments of the Numba types *argtypes* needs.

        It is called once for each object, signature and target, while a kernel is compiled: with the final types of the
        call's arguments, in the order of the callee's parameters. `current_target` returns what the code must fit. Any
        exception refuses the signature: a `CallError` at the line of the call.

        Returns
        -------
        None, LinkItem or iterable of LinkItem
            A ``LinkableCode`` (`CUDASource`, `Bitcode`, ``cuda.LTOIR``, ``cuda.PTXSource``, ``cuda.CUSource``,
            ``cuda.Cubin``, ``cuda.Fatbin``, ``cuda.Object``, ``cuda.Archive``), a ``cuda.core.ObjectCode``, a
            `device_function`, or the path of a file whose suffix tells its kind; several of these, a generator
            included; or nothing.
        """


@runtime_checkable
class SupportsLinkKey(Protocol):
    """An object whose code is remembered on disk, so that it is not generated again."""

    def __numba_cuda_link_key__(self, *argtypes: Any, **named: Any) -> object:
        """Return a value that stands for everything that affects the code for *argtypes*, Numba types as for
        ``__numba_cuda_link__``.

        It is a number, string, dtype, Numba type or the like, or a tuple of them: equal in every process, and different
        wherever the code is. ``None``: the code is not remembered.
        """


@runtime_checkable
class SupportsCall(Protocol):
    """An object that describes its calls in kernels. It must derive from `DeviceCallable`."""

    def __numba_cuda_call__(self, *argtypes: Any, **named: Any) -> Extern | Callable[..., Any]:
        """Return the C function for a call with arguments of the Numba types *argtypes*, or a Python function with the
        same parameters, which is compiled as a device function.

        It has the parameters of the call: keywords and defaults work as in Python. Any exception refuses the signature:
        a typing error at the line of the call.
        """

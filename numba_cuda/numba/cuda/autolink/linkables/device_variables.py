# SPDX-License-Identifier: BSD-2-Clause
"""Variables of device code that Python sets: ``autolink.Variable``."""

from __future__ import annotations

import operator
import re
import uuid
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.cuda import types
from numba.cuda.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, suggest_names
from numba.cuda.cudadrv.external_code.inputs.link_input import VariableSource

from numba_cuda_autolink.finished import variables
from numba_cuda_autolink.plain_types import MOST_CONSTANT, SPACES, VariableType, element_type
from numba_cuda_autolink.printable_texts import did_you_mean

from ..c_abi.c_types import CABIError, element_ctype, memory_layout, numba_type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

_SHORT = 50  # characters of a type that a first line shows
_KINDS = "biufc"
# Those of this process, so that a variable that is unpickled where it was pickled is the same one.
_known: weakref.WeakValueDictionary[str, Variable] = weakref.WeakValueDictionary()


@suggest_names
class Variable(VariableSource):
    """A variable of device code that the host sets: a table of coefficients, a parameter, a counter.

    An object returns it among the items of ``__numba_cuda_link__``, and C++ declares it ``extern``::

        table = autolink.Variable("table", np.float32, 256, space="constant")
        ...
        extern __constant__ float table[256];

    Each kernel that links it has its own copy on each device, as each is a module of its own. `set` sets them all.

    Parameters
    ----------
    name : str
        Its name in C++, a C identifier. The variables of a kernel have different names.
    dtype : NumPy dtype or scalar class, Numba type, or its name
        The type of its elements: a number, a bool, complex, or a record, for which C++ declares a struct of the same
        layout.
    shape : int or tuple of int, optional
        Its shape. Default: a single value.
    space : {"device", "constant", "managed"}, optional
        The memory that it is in. Constant memory is cached for reads of one address by all threads; a kernel has 64 KiB
        of it.
    value : array or number, optional
        Its first value. Default: zeros.

    Raises
    ------
    TypeError, ValueError
        If the name is not a C identifier, there is no such dtype, shape or space in CUDA C++, it is too large for
        constant memory, or *value* does not fit.
    """

    _public = (*VariableSource._public, "declaration", "dtype", "get", "set", "shape", "space")

    def __init__(
        self,
        name: str,
        dtype: Any,
        shape: int | tuple[int, ...] = (),
        *,
        space: str = "device",
        value: ArrayLike | None = None,
    ):
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"Variable() takes a C identifier as the name, got {safe_repr(name)}")
        if space not in SPACES:
            raise ValueError(
                f"the space of the variable {name!r} is {safe_repr(space)}{did_you_mean(space, SPACES)}\n"
                f"  expected: {', '.join(map(repr, SPACES))}"
            )
        try:
            lengths = (operator.index(shape),) if not isinstance(shape, tuple) else tuple(map(operator.index, shape))
        except TypeError:
            raise TypeError(f"the shape of the variable {name!r} is {safe_repr(shape)}, expected integers") from None
        if any(length < 1 for length in lengths):
            raise ValueError(f"the variable {name!r} of shape {lengths} has no elements, which C++ does not allow")
        described = VariableType(name, element_type(_dtype(name, dtype)), lengths, space)
        if space == "constant" and described.nbytes > MOST_CONSTANT:
            raise ValueError(
                f"the variable {name!r} is too large for constant memory: {described.nbytes / 1024:.1f} KiB of"
                f" {MOST_CONSTANT >> 10} KiB\n"
                "  what to do: use space='device', which is global memory"
            )
        self._token = uuid.uuid4().hex
        _known[self._token] = self
        super().__init__(variables.Variable(described))
        if value is not None:
            self.set(value)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of its elements."""
        return self.memory.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.memory.shape

    @property
    def space(self) -> str:
        """The memory that it is in."""
        return self.memory.space

    @property
    def declaration(self) -> str:
        """Its declaration in C++. Raises `CABIError` for records, whose struct only C++ knows."""
        numba_type = numba_type_of(self.dtype)
        if isinstance(numba_type, types.Record):
            raise CABIError(f"{self.memory.name!r} is of records, whose struct only C++ knows")
        sizes = "".join(f"[{length}]" for length in self.shape)
        return f'extern "C" __{self.space}__ {element_ctype(numba_type).cxx} {self.memory.name}{sizes};'

    def set(self, value: ArrayLike, *, device: int | None = None) -> None:
        """Set it in all kernels, loaded now and later, as `numba_cuda_autolink.Variable.set` does."""
        self.memory.set(value, device=device)

    def get(self, kernel: Any = None, *, device: int | None = None) -> np.ndarray[Any, Any]:
        """Return the value as a NumPy array: as it is in memory, where kernels may have changed it, as
        `numba_cuda_autolink.Variable.get` does."""
        owners = None if kernel is None else list(_modules_of(kernel))
        return self.memory._get_from(owners, device)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a kernel that is compiled with it depends on, which its value is not."""
        return self.memory.type._asdict()

    def __reduce__(self) -> Any:
        return _restored, (self._token, self.memory.type, self.memory.initial)

    def __repr__(self) -> str:
        return f"<autolink.Variable {self.memory.name}: {self.memory.type}>"


def _restored(token: str, described: VariableType, value: bytes | None) -> Variable:
    """Return the variable of this process with this *token*; without one, a copy of that which was pickled."""
    found = _known.get(token)
    if found is None:
        found = Variable(described.name, described.dtype, described.shape, space=described.space)
        found._token = token
        found = _known.setdefault(token, found)
        if value is not None:
            found.set(np.frombuffer(value, described.dtype).reshape(described.shape))
    return found


def _dtype(name: str, given: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of the elements of the variable *name*. Raise `TypeError` if C++ has no such type."""
    try:
        numba_type = numba_type_of(given)
        if isinstance(numba_type, types.Record):
            memory_layout(numba_type)
        else:
            element_ctype(numba_type)
        from numba.cuda.np import numpy_support

        found: np.dtype[Any] = np.dtype(numpy_support.as_dtype(numba_type))
        if not found.names and found.kind not in _KINDS:
            raise NotImplementedError
    except (CABIError, NotImplementedError, NumbaError) as error:
        shown = safe_repr(given)
        short, why = shown if len(shown) <= _SHORT else "this type", [line.strip() for line in str(error).splitlines()]
        got = [f"got: {shown}"] if short != shown else []
        raise TypeError(
            f"the variable {name!r} cannot have elements of {short}\n"
            + "".join(f"  {line}\n" for line in [*got, *why])
            + "  expected: a number, bool, complex or aligned record, as a NumPy dtype or a Numba type"
        ) from None
    return found


def _modules_of(kernel: Any) -> Iterator[Any]:
    compiled = kernel.overloads.values() if hasattr(kernel, "overloads") else getattr(kernel, "_owners", None)
    if compiled is None:
        raise TypeError(f"get() takes a kernel made by cuda.jit or autolink.bind, got {safe_repr(kernel)}")
    for each in compiled:
        code = getattr(each, "_codelibrary", None)
        if code is None:  # of the emulator
            yield each
        else:
            yield from code._cubin_cache.values()
            yield from filter(None, [getattr(code, "emulated_code", None)])

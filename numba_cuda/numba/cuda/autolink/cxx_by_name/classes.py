# SPDX-License-Identifier: BSD-2-Clause
"""Classes of C++ whose objects kernels keep in memory: their size and alignment, constructors and member functions."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

from ..c_abi.c_types import CABIError
from .calls import FIRST, REST, Call, CallPattern
from .functions import CxxFunction, get_function
from .library_source import LibrarySource
from .questions import Question, ask
from .results import read_numbers
from .structs import Struct

_TEXT = """
@open@
@line@enum : unsigned long long { nca_size = sizeof(@subject@), nca_align = alignof(@subject@) };
@close@
"""
_QUESTION = "&nca::nca_tell_numbers<@inside@nca_size, @inside@nca_align>"
_DOC = """A class of C++. Kernels construct an object in a record of its dtype, with the arguments of a constructor.

size, align             its size and alignment in bytes
dtype                   the NumPy dtype of memory for one object
alignment               what cuda.shared.array and cuda.local.array take for it
method(name)            a member function, which kernels call with the object first
nested(name)            a class inside this one
"""
_CONSTRUCTION = f"(void)(new (nca::nca_here{{{{nca::nca_memory<{{0}}>({FIRST})}}}}) {{0}}({REST}))"
_OBJECT = "object_"  # begins the name of the one field of a class's dtype
_UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class CxxType(CxxFunction):
    """A class of C++: ``lib.type("cub::BlockReduce<float, 128>")``.

    Kernels keep its objects in arrays of ``dtype``, which are records to Numba and the objects to functions of the
    library. Called with such a record and the constructor's arguments, it constructs an object there::

        Rng = lib.type("my::Rng")

        @cuda.jit
        def kernel(r):
            state = cuda.local.array(1, Rng.dtype)
            Rng(state[0], 42)
            r[0] = next_value(state[0])

    Attributes
    ----------
    size, align:
        Its size and its alignment in bytes.
    dtype:
        The NumPy dtype of memory for one object.
    """

    size: int
    align: int
    dtype: np.dtype[np.void]
    _public = (*CxxFunction._public, "align", "alignment", "dtype", "method", "nested", "size")
    _doc = _DOC

    def __init__(self, source: LibrarySource, name: str, cc: ComputeCapability | None, size: int, align: int):
        super().__init__(source, CallPattern(name, _CONSTRUCTION.format(name)))
        self._name = name
        self._cc = cc
        unit = np.dtype(_UNITS.get(align, np.uint64))
        # A field name of its own, so that no two classes have one dtype.
        field = f"{_OBJECT}{hashlib.sha256(f'{name} {align}'.encode()).hexdigest()[:12]}"
        dtype = np.dtype([(field, unit, (size // unit.itemsize,))], align=True)
        vars(self).update(size=size, align=align, dtype=dtype)  # which nobody else assigns

    def _describe_inside(self, name: str) -> str:
        static = super()._describe_inside(name).removeprefix("for a name in it, write ")
        return f"for a member function, write .method({name!r}) of it before the kernel; for a static member, {static}"

    def _call(self, argtypes: Sequence[types.Type]) -> Call:
        """Return the construction of an object. Raise `CABIError` if the first argument is not memory for it."""
        if not argtypes or not isinstance(argtypes[0], (types.Record, types.Array)):
            raise CABIError(
                f"the first argument of a constructor is the memory for the object of {self.__name__}\n"
                "  what to do: pass an element of an array of its .dtype before the arguments, such as T(x[0], ...)"
            )
        return super()._call(argtypes)

    def _register(self) -> None:
        """Let the library take records of this dtype as objects of the class."""
        from numba.cuda.np import numpy_support

        struct = Struct.of_size(self._name, self.size, self.align)
        self._source.register(numpy_support.from_dtype(self.dtype), struct)

    def __reduce__(self) -> Any:
        return get_class, (self._source, self._name, self._cc)

    def __getstate__(self) -> Any:
        """Return what distinguishes it from other classes. Its size is one of the numbers that the library tells."""
        return self.__reduce__()[1]

    def method(self, name: str) -> CxxFunction:
        """Return the member function *name* as a device callable, whose first argument is the object: one of this
        class, or of a class derived from it."""
        template = "template " if "<" in name and not name.startswith("operator") else ""
        text = f"nca::nca_self<{self._name}>({FIRST}).{template}{name}({REST})"
        return get_function(self._source, CallPattern(f"{self._name}::{name}", text))

    def nested(self, name: str) -> CxxType:
        """Return the class *name* inside this one, such as ``"TempStorage"``."""
        return get_class(self._source, f"{self._name}::{name}", self._cc)

    @functools.cached_property
    def alignment(self) -> int:
        """What ``cuda.shared.array`` and ``cuda.local.array`` take as ``alignment``: a multiple of 8."""
        return max(8, self.align)


def get_class(source: LibrarySource, name: str, cc: ComputeCapability | None) -> CxxType:
    """Return the class *name* of a library, the same object as long as it has the same size. Raise `CxxError` if that
    is not a complete object type."""
    (answer,) = ask(source, Question(name, _TEXT, [_QUESTION]), cc)
    size, align = read_numbers(answer)
    found = source.get_object(("type", name, cc, size, align), lambda: CxxType(source, name, cc, size, align))
    found._register()
    return found


def is_of_class(dtype: np.dtype) -> bool:
    """Whether *dtype* is that of a `CxxType`: its bytes are an object whose members only C++ knows."""
    names = dtype.names or ()
    return len(names) == 1 and re.fullmatch(f"{_OBJECT}[0-9a-f]{{12}}", names[0]) is not None

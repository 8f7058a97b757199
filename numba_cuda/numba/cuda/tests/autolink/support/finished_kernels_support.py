# SPDX-License-Identifier: BSD-2-Clause
"""Files of kernels without code, and launches with a driver that is not there."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator

import cuda.bindings.driver
import cuda.core  # which needs the driver's real names
import numpy as np
import pytest
from fake_driver import FakeDriver

from numba_cuda_autolink.finished import kernel_file
from numba_cuda_autolink.finished.kernel_file import CodeFor, Image, Signature
from numba_cuda_autolink.launch import driver
from numba_cuda_autolink.plain_types import Parameter, leaves

VECTOR = Parameter("array", "x", "<f4", 1, "C")
NUMBER = Parameter("number", "a", "<f4")


@contextlib.contextmanager
def driver_of(**options) -> Iterator[FakeDriver]:
    """Use a `FakeDriver` made with *options* in place of cuda.bindings' driver."""
    caches = driver.bindings, driver.device_of, driver.device_count, driver._pointer_attribute
    with pytest.MonkeyPatch.context() as patch:
        made = FakeDriver(**options)
        patch.setattr(cuda.bindings, "driver", made)
        for each in caches:
            each.cache_clear()
        try:
            yield made
        finally:
            for each in caches:
                each.cache_clear()


def image(parameters=(VECTOR, NUMBER), code=b"code", runs_on=(9, 0, "", "cubin"), **more) -> Image:
    """Return code for *parameters* at their offsets in C."""
    layout = tuple((leaf.offset, leaf.size) for leaf in leaves(parameters))
    return Image(CodeFor(*runs_on), "entry", code, layout, **{"report": b"{}", **more})


def signature(*parameters, **more) -> Signature:
    """Return a signature of *parameters* with one image."""
    parameters = parameters or (VECTOR, NUMBER)
    return Signature(f"({', '.join(map(str, parameters))})", parameters, (image(parameters, **more),))


def write(path, **kernels) -> None:
    """Write *kernels* to *path*: by name, the signatures of each."""
    kernel_file.write(path, kernels, {"numba-cuda": "1.2.3"})


class CupyArray:
    """Has the attributes of CuPy's array that launching reads, and counts how often its address is."""

    _c_contiguous = _f_contiguous = False

    def __init__(self, pointer=0x5000, shape=(8,), dtype="f4", device=0):
        array = np.zeros(shape, dtype)
        self.shape, self.dtype, self.strides = array.shape, array.dtype, array.strides
        self.size, self.flags = array.size, array.flags
        self._c_contiguous, self._f_contiguous = array.flags.c_contiguous, array.flags.f_contiguous
        self.reads = 0
        self.data = _Pointer(weakref.ref(self), pointer, device)

    @property
    def ndim(self):
        return len(self.shape)


class _Pointer:
    def __init__(self, owner, pointer, device):
        self._owner, self._pointer, self.device_id = owner, pointer, device

    @property
    def ptr(self):
        self._owner().reads += 1
        return self._pointer


CupyArray.__module__, CupyArray.__name__ = "cupy", "ndarray"

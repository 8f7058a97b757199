# SPDX-License-Identifier: BSD-2-Clause
"""The base class of the generators. Each method that draws numbers is a C function around one of cuRAND's."""

from __future__ import annotations

import functools
import sys

import numpy as np
from cuda import pathfinder
from numba.cuda import autolink, types


@functools.cache
def headers():
    """Return the directory of cuRAND's headers, in the installed packages or in the system's toolkit.

    Raises
    ------
    FileNotFoundError
        If the headers are not installed.
    """
    found = pathfinder.locate_nvidia_header_directory("curand")
    if found is None:
        raise FileNotFoundError(
            "cuRAND's headers were not found: pip install nvidia-curand (CUDA 13) or nvidia-curand-cu12 (CUDA 12)"
        )
    return found.abs_path


def need_headers():
    """Print what is missing and exit with 2 if cuRAND's headers are not installed."""
    try:
        headers()
    except FileNotFoundError as error:
        print(f"This example needs cuRAND: {error}")
        sys.exit(2)


class Generator(autolink.DeviceCallable):
    """A generator whose state is an array of one record.

    Attributes
    ----------
    state_type : numpy.dtype
        The record type of the C++ state.
    """

    __numba_cuda_link_types__ = "numba-cuda"  # the checks of arguments compare types
    cxx_state: str
    layout: str  # static assertions

    def check(self, state):
        """Raise `TypeError` if *state* is not the type of a state."""
        dtype = state if isinstance(state, types.Record) else getattr(state, "dtype", state)
        if getattr(dtype, "size", None) != self.state_type.itemsize or not isinstance(dtype, types.Record):
            raise TypeError(
                f"state: got {state}, expected a record of {self.cxx_state}:"
                f" cuda.local.array(1, {type(self).__name__.lower()}.state_type)"
            )

    def source(self, name, signature, body):
        """Return the source of the C function *name*.

        All functions of a kernel are in one translation unit, since cuRAND's headers take nearly all of the compile
        time.
        """
        state = f'static_assert({self.layout}, "Python\'s record is another");'
        guard = f"NUMBA_CURAND_{type(self).__name__.upper()}"
        code = f"""
            #include <curand_kernel.h>
            #ifndef {guard}
            #define {guard}
            {state}
            #endif
            extern "C" __device__ {signature} {{ {body} }}"""
        return autolink.CUDASource(code, name=f"{name}.cu", include_paths=[headers()], unit="curand")

    def named(self, name):
        """Return the symbol of this generator's C function *name*."""
        return f"curand_{type(self).__name__.lower()}_{name}"


def draws(name, expression, returns):
    """Return a device method that draws one number. *expression* is C++, with the pointer ``state``."""

    def call(self, state):
        self.check(state)
        return autolink.Extern(self.named(name), returns=returns)

    def link(self, state):
        symbol = self.named(name)
        signature = f"{autolink.cxx_type(returns)} {symbol}({self.cxx_state}* state)"
        return self.source(symbol, signature, f"return {expression};")

    call.__name__ = name
    return autolink.device_method(call).link(link)


def draws_into(name, count, expression, dtype):
    """Return a device method that draws *count* numbers into an array. *expression* is C++ and returns a vector."""

    def check(self, state, out):
        self.check(state)
        if getattr(out, "dtype", None) != dtype:
            raise TypeError(f"out: got {out}, expected an array of {dtype} for {count} numbers")

    def call(self, state, out):
        check(self, state, out)
        return autolink.Extern(self.named(name))

    def link(self, state, out):
        symbol = self.named(name)
        T = autolink.cxx_type(dtype)
        body = f"const auto v = {expression}; " + " ".join(f"out[{i}] = v.{'xyzw'[i]};" for i in range(count))
        return self.source(symbol, f"void {symbol}({self.cxx_state}* state, {T}* out)", body)

    call.__name__ = name
    return autolink.device_method(call).link(link)


def record(fields):
    """Return the dtype of a record with C++ layout."""
    return np.dtype(fields, align=True)

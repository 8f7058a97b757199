# SPDX-License-Identifier: BSD-2-Clause
"""The base class of the generators. Their methods call cuRAND's functions by name."""

from __future__ import annotations

import functools
import sys

import numpy as np
from cuda import pathfinder
from numba.cuda import autolink, types

_AS_STATE = """
template <class State, class Record> State* as_state(Record* record) { return reinterpret_cast<State*>(record); }
template <class State, class Record> State* as_state(Record& record) { return reinterpret_cast<State*>(&record); }
"""


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
    return str(found.abs_path)


def need_headers():
    """Print what is missing and exit with 2 if cuRAND's headers are not installed."""
    try:
        headers()
    except FileNotFoundError as error:
        print(f"This example needs cuRAND: {error}")
        sys.exit(2)


@functools.cache
def library():
    """Return cuRAND's device functions, and assertions that the records in Python are its states."""
    layouts = {"curandStatePhilox4_32_10_t": 64, "curandStateSobol32_t": 140, "curandStateScrambledSobol32_t": 140}
    asserted = "".join(f'static_assert(sizeof({name}) == {size}, "");\n' for name, size in layouts.items())
    return autolink.cxx(f"#include <curand_kernel.h>\n{asserted}{_AS_STATE}", include_paths=[headers()])


class Generator(autolink.DeviceCallable):
    """A generator whose state is an array of one record.

    Attributes
    ----------
    state_type : numpy.dtype
        The record type of the C++ state.
    """

    __numba_cuda_link_types__ = "numba-cuda"  # the checks of arguments compare types
    cxx_state: str
    state_type: np.dtype

    def cxx(self, state, parameters, expression):
        """Return a C++ function of a ``state`` and *parameters*, after a check of the type of the state."""
        dtype = state if isinstance(state, types.Record) else getattr(state, "dtype", state)
        if getattr(dtype, "size", None) != self.state_type.itemsize or not isinstance(dtype, types.Record):
            raise TypeError(
                f"state: got {state}, expected a record of {self.cxx_state}:"
                f" cuda.local.array(1, {type(self).__name__.lower()}.state_type)"
            )
        declared = ", ".join(["auto&& record", *parameters])
        return library().expr(
            f"[]({declared}) {{ auto* state = as_state<{self.cxx_state}>(record); return {expression}; }}"
        )


def draws(expression, *parameters):
    """Return a device method that evaluates *expression*, C++ with the pointer ``state``; of the one *parameter*, if
    there is one, the argument is passed."""

    def call(self, state):
        function = self.cxx(state, (), expression)
        return lambda state: function(state)

    def call_with_argument(self, state, argument):
        function = self.cxx(state, parameters, expression)
        return lambda state, argument: function(state, argument)

    return autolink.device_method(call_with_argument if parameters else call)


def draws_into(count, expression, dtype):
    """Return a device method that draws *count* numbers into an array. *expression* is C++ and returns a vector."""
    stored = ", ".join(f"out[{i}] = v.{'xyzw'[i]}" for i in range(count))

    def call(self, state, out):
        if getattr(out, "dtype", None) != dtype:
            raise TypeError(f"out: got {out}, expected an array of {dtype} for {count} numbers")
        function = self.cxx(state, ["auto* out"], f"[&](auto v) {{ {stored}; }}({expression})")
        return lambda state, out: function(state, out)

    return autolink.device_method(call)


def record(fields):
    """Return the dtype of a record with C++ layout."""
    return np.dtype(fields, align=True)

# SPDX-License-Identifier: BSD-2-Clause
"""Call cuRAND's host library (https://docs.nvidia.com/cuda/curand/host-api-overview.html) through ctypes."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
from cuda import pathfinder

KINDS = {"philox": 161, "sobol32": 201, "scrambled_sobol32": 202}
_JOE_KUO_D6, _SCRAMBLED_JOE_KUO_D6 = 101, 102
_DIMENSIONS = 20_000

# The host library's Philox generator takes four numbers of each of these subsequences in turn.
PHILOX_SUBSEQUENCES = 65_536


@functools.cache
def library():
    """Return cuRAND's shared library."""
    return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("curand").abs_path)


def _call(name, *args):
    status = getattr(library(), name)(*args)
    if status != 0:
        raise RuntimeError(f"{name} failed with status {status}")


def direction_vectors(dimensions, scrambled=False):
    """Return the direction vectors (by Joe and Kuo) of the first *dimensions* dimensions of Sobol's sequence.

    They are an array of uint32 of shape ``(dimensions, 32)``. *dimensions* is at most 20000.
    """
    if not 1 <= dimensions <= _DIMENSIONS:
        raise ValueError(f"dimensions: got {dimensions!r}, expected 1 to {_DIMENSIONS}")
    pointer = ctypes.POINTER(ctypes.c_uint32)()
    kind = _SCRAMBLED_JOE_KUO_D6 if scrambled else _JOE_KUO_D6
    _call("curandGetDirectionVectors32", ctypes.byref(pointer), kind)
    return np.ctypeslib.as_array(pointer, (dimensions, 32)).copy()


def scramble_constants(dimensions):
    """Return the constants that scramble the first *dimensions* dimensions, as an array of uint32."""
    if not 1 <= dimensions <= _DIMENSIONS:
        raise ValueError(f"dimensions: got {dimensions!r}, expected 1 to {_DIMENSIONS}")
    pointer = ctypes.POINTER(ctypes.c_uint32)()
    _call("curandGetScrambleConstants32", ctypes.byref(pointer))
    return np.ctypeslib.as_array(pointer, (dimensions,)).copy()


class HostGenerator:
    """A generator of the host library: on the CPU, which needs no driver, or with ``on_device=True`` on the GPU.

    Parameters
    ----------
    kind : "philox", "sobol32" or "scrambled_sobol32"
    seed : int
        For Philox.
    dimensions : int
        For Sobol. The numbers are generated dimension by dimension.
    """

    def __init__(self, kind, *, seed=0, dimensions=1, on_device=False):
        self._handle = ctypes.c_void_p()
        create = "curandCreateGenerator" if on_device else "curandCreateGeneratorHost"
        _call(create, ctypes.byref(self._handle), KINDS[kind])
        if kind == "philox":
            _call("curandSetPseudoRandomGeneratorSeed", self._handle, ctypes.c_ulonglong(seed))
        else:
            _call("curandSetQuasiRandomGeneratorDimensions", self._handle, dimensions)

    def fill(self, function, address, count):
        """Call *function*, such as ``"curandGenerateUniform"``, to generate *count* numbers at *address*."""
        _call(function, self._handle, ctypes.c_void_p(address), ctypes.c_size_t(count))

    def bits(self, count):
        """Return an array of *count* uint32 numbers, from a generator on the CPU."""
        out = np.zeros(count, np.uint32)
        self.fill("curandGenerate", out.ctypes.data, count)
        return out

    def uniform(self, count):
        """Return an array of *count* float32 numbers, from a generator on the CPU."""
        out = np.zeros(count, np.float32)
        self.fill("curandGenerateUniform", out.ctypes.data, count)
        return out

    def __del__(self):
        if self._handle:
            library().curandDestroyGenerator(self._handle)

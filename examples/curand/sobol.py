# SPDX-License-Identifier: BSD-2-Clause
"""Sobol's quasirandom sequence, whose points fill the unit cube more evenly than random points."""

from __future__ import annotations

import numpy as np
from numba.cuda import autolink, types

from . import distributions
from .generator import Generator, draws, record

_MASK = 0xFFFFFFFF


class Sobol(Generator):
    """One dimension of a Sobol sequence, with the direction vectors of that dimension (see `direction_vectors`).

    Threads that share a sequence must begin at different offsets.
    """

    cxx_state = "curandStateSobol32_t"
    layout = "sizeof(curandStateSobol32_t) == 140"
    state_type = record(
        [("index", np.uint32), ("x", np.uint32), ("scramble", np.uint32), ("directions", np.uint32, 32)]
    )

    @autolink.device_method
    def init(self, state, directions, offset=0):
        """Set *state* to position *offset* of the sequence with these *directions*, an array of 32 uint32."""
        self.check(state)
        _check_directions(directions)
        args = {"state": None, "directions": types.voidptr, "offset": types.uint32}
        return autolink.Extern(self.named("init"), args=args)

    @init.link
    def init(self, state, directions, offset):
        name = self.named("init")
        signature = f"void {name}({self.cxx_state}* state, void* directions, unsigned int offset)"
        return self.source(name, signature, "curand_init((unsigned int*)directions, offset, state);")

    @init.python
    def init(self, state, directions, offset=0):
        _set(state[0], directions, 0, offset)

    @autolink.device_method
    def skipahead(self, state, count):
        """Skip *count* numbers."""
        self.check(state)
        return autolink.Extern(self.named("skipahead"), args={"state": None, "count": types.uint32})

    @skipahead.link
    def skipahead(self, state, count):
        name = self.named("skipahead")
        return self.source(
            name,
            f"void {name}({self.cxx_state}* state, unsigned int count)",
            f"skipahead<{self.cxx_state}*>(count, state);",
        )

    @skipahead.python
    def skipahead(self, state, count):
        record = state[0]
        _set(record, record["directions"].copy(), record["scramble"], int(record["index"]) + int(count))

    bits = draws("bits", "curand(state)", types.uint32)
    uniform = draws("uniform", "curand_uniform(state)", types.float32)
    uniform_double = draws("uniform_double", "curand_uniform_double(state)", types.float64)
    normal = draws("normal", "curand_normal(state)", types.float32)

    @bits.python
    def bits(self, state):
        record = state[0]
        drawn = record["x"]
        index = int(record["index"])
        lowest_zero = (~index & (index + 1)).bit_length() - 1
        record["x"] ^= record["directions"][lowest_zero]
        record["index"] = index + 1 & _MASK
        return drawn

    @uniform.python
    def uniform(self, state):
        return distributions.uniform(self.bits(state))

    @uniform_double.python
    def uniform_double(self, state):
        return distributions.uniform_double(self.bits(state))


class ScrambledSobol(Sobol):
    """A scrambled Sobol sequence. Its numbers are combined with a constant of the dimension (`scramble_constants`)."""

    cxx_state = "curandStateScrambledSobol32_t"
    layout = "sizeof(curandStateScrambledSobol32_t) == 140"

    @autolink.device_method
    def init(self, state, directions, constant, offset=0):
        """Set *state* to position *offset* of the sequence with these *directions*, scrambled by *constant*."""
        self.check(state)
        _check_directions(directions)
        numbers = {"constant": types.uint32, "offset": types.uint32}
        return autolink.Extern(self.named("init"), args={"state": None, "directions": types.voidptr, **numbers})

    @init.link
    def init(self, state, directions, constant, offset):
        name = self.named("init")
        parameters = f"{self.cxx_state}* state, void* directions, unsigned int constant, unsigned int offset"
        body = "curand_init((unsigned int*)directions, constant, offset, state);"
        return self.source(name, f"void {name}({parameters})", body)

    @init.python
    def init(self, state, directions, constant, offset=0):
        _set(state[0], directions, constant, offset)


def _check_directions(directions):
    if getattr(directions, "dtype", None) != types.uint32:
        raise TypeError(f"directions: got {directions}, expected an array of 32 uint32 (see direction_vectors)")


def _set(record, directions, scramble, offset):
    gray = int(offset) ^ int(offset) >> 1
    x = int(scramble)
    for bit in range(32):
        if gray >> bit & 1:
            x ^= int(directions[bit])
    record["index"], record["x"], record["scramble"] = int(offset) & _MASK, x, scramble
    record["directions"] = directions

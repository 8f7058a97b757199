# SPDX-License-Identifier: BSD-2-Clause
"""Sobol's quasirandom sequence, whose points fill the unit cube more evenly than random points."""

from __future__ import annotations

import numpy as np
from numba.cuda import autolink, types

from . import distributions
from .generator import Generator, draws, record

_MASK = 0xFFFFFFFF
_PARAMETERS = "const unsigned* directions", "unsigned offset"


class Sobol(Generator):
    """One dimension of a Sobol sequence, with the direction vectors of that dimension (see `direction_vectors`).

    Threads that share a sequence must begin at different offsets.
    """

    cxx_state = "curandStateSobol32_t"
    state_type = record(
        [("index", np.uint32), ("x", np.uint32), ("scramble", np.uint32), ("directions", np.uint32, 32)]
    )

    @autolink.device_method
    def init(self, state, directions, offset=0):
        """Set *state* to position *offset* of the sequence with these *directions*, an array of 32 uint32."""
        _check_directions(directions)
        start = self.cxx(state, _PARAMETERS, "curand_init((unsigned*)directions, offset, state)")
        return lambda state, directions, offset: start(state, directions, offset)

    @init.python
    def _(self, state, directions, offset=0):
        _set(state[0], directions, 0, offset)

    skipahead = draws("skipahead<decltype(state)>(count, state)", "unsigned count")

    @skipahead.python
    def _(self, state, count):
        record = state[0]
        _set(record, record["directions"].copy(), record["scramble"], int(record["index"]) + int(count))

    bits = draws("curand(state)")
    uniform = draws("curand_uniform(state)")
    uniform_double = draws("curand_uniform_double(state)")
    normal = draws("curand_normal(state)")

    @bits.python
    def _(self, state):
        record = state[0]
        drawn = record["x"]
        index = int(record["index"])
        lowest_zero = (~index & (index + 1)).bit_length() - 1
        record["x"] ^= record["directions"][lowest_zero]
        record["index"] = index + 1 & _MASK
        return drawn

    @uniform.python
    def _(self, state):
        return distributions.uniform(self.bits(state))

    @uniform_double.python
    def _(self, state):
        return distributions.uniform_double(self.bits(state))


class ScrambledSobol(Sobol):
    """A scrambled Sobol sequence. Its numbers are combined with a constant of the dimension (`scramble_constants`)."""

    cxx_state = "curandStateScrambledSobol32_t"

    @autolink.device_method
    def init(self, state, directions, constant, offset=0):
        """Set *state* to position *offset* of the sequence with these *directions*, scrambled by *constant*."""
        _check_directions(directions)
        start = self.cxx(
            state, [*_PARAMETERS, "unsigned constant"], "curand_init((unsigned*)directions, constant, offset, state)"
        )
        return lambda state, directions, constant, offset: start(state, directions, offset, constant)

    @init.python
    def _(self, state, directions, constant, offset=0):
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

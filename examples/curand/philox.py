# SPDX-License-Identifier: BSD-2-Clause
"""Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011)."""

from __future__ import annotations

import numpy as np
from numba.cuda import autolink, types

from . import distributions
from .generator import Generator, draws, draws_into, record

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF


class Philox(Generator):
    """A counter-based generator, with 2^64 subsequences of 2^66 numbers for each seed. Each thread uses one of them."""

    cxx_state = "curandStatePhilox4_32_10_t"
    state_type = record(
        [
            ("counter", np.uint32, 4),
            ("output", np.uint32, 4),
            ("key", np.uint32, 2),
            ("position", np.uint32),
            ("has_normal", np.int32),
            ("has_normal_double", np.int32),
            ("normal", np.float32),
            ("normal_double", np.float64),
        ]
    )

    @autolink.device_method
    def init(self, state, seed, subsequence, offset=0):
        """Set *state* to position *offset* of a *subsequence*."""
        numbers = ["unsigned long long seed", "unsigned long long subsequence", "unsigned long long offset"]
        start = self.cxx(state, numbers, "curand_init(seed, subsequence, offset, state)")
        return lambda state, seed, subsequence, offset: start(state, seed, subsequence, offset)

    @init.python
    def _(self, state, seed, subsequence, offset=0):
        record = state[0]
        state[0] = np.zeros((), self.state_type)
        record["key"] = int(seed) & _MASK, int(seed) >> 32 & _MASK
        _set_counter(record, int(subsequence) << 64)
        record["output"] = philox(record["counter"], record["key"])
        self.skipahead(state, offset)

    skipahead = draws("skipahead(count, state)", "unsigned long long count")

    @skipahead.python
    def _(self, state, count):
        record = state[0]
        position = int(record["position"]) + int(count)
        record["position"] = position % 4
        _set_counter(record, _counter(record) + position // 4)
        record["output"] = philox(record["counter"], record["key"])

    bits = draws("curand(state)")
    uniform = draws("curand_uniform(state)")
    uniform_double = draws("curand_uniform_double(state)")
    normal = draws("curand_normal(state)")
    normal_double = draws("curand_normal_double(state)")
    poisson = draws("curand_poisson(state, mean)", "double mean")
    bits4 = draws_into(4, "curand4(state)", types.uint32)
    uniform4 = draws_into(4, "curand_uniform4(state)", types.float32)
    uniform2_double = draws_into(2, "curand_uniform2_double(state)", types.float64)
    normal4 = draws_into(4, "curand_normal4(state)", types.float32)

    @bits.python
    def _(self, state):
        record = state[0]
        drawn = record["output"][record["position"]]
        record["position"] += 1
        if record["position"] == 4:
            record["position"] = 0
            _set_counter(record, _counter(record) + 1)
            record["output"] = philox(record["counter"], record["key"])
        return drawn

    @uniform.python
    def _(self, state):
        return distributions.uniform(self.bits(state))

    @uniform_double.python
    def _(self, state):
        return distributions.uniform_double(self.bits(state))

    @normal.python
    def _(self, state):
        record = state[0]
        if record["has_normal"]:
            record["has_normal"] = 0
            return record["normal"]
        first, record["normal"] = distributions.normal_pair(self.bits(state), self.bits(state))
        record["has_normal"] = 1
        return first

    @bits4.python
    def _(self, state, out):
        out[:4] = [self.bits(state) for _ in range(4)]

    @uniform4.python
    def _(self, state, out):
        out[:4] = [self.uniform(state) for _ in range(4)]

    @uniform2_double.python
    def _(self, state, out):
        x = [self.bits(state) for _ in range(4)]
        out[:2] = distributions.uniform_double_of_two(*x[:2]), distributions.uniform_double_of_two(*x[2:])

    @normal4.python
    def _(self, state, out):
        x = [self.bits(state) for _ in range(4)]
        out[:4] = *distributions.normal_pair(*x[:2]), *distributions.normal_pair(*x[2:])


def philox(counter, key):
    """Return four random 32-bit integers, from a counter of four and a key of two."""
    c, k = [int(word) for word in counter], [int(word) for word in key]
    for _ in range(10):
        first, second = _MULTIPLIERS[0] * c[0], _MULTIPLIERS[1] * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & _MASK, first >> 32 ^ c[3] ^ k[1], first & _MASK]
        k = [word + step & _MASK for word, step in zip(k, _WEYL, strict=True)]
    return tuple(c)


def _counter(record):
    return sum(int(word) << 32 * i for i, word in enumerate(record["counter"]))


def _set_counter(record, value):
    record["counter"] = [value >> 32 * i & _MASK for i in range(4)]

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
    layout = "sizeof(curandStatePhilox4_32_10_t) == 64 && alignof(curandStatePhilox4_32_10_t) == 16"
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
        self.check(state)
        numbers = {name: types.uint64 for name in ("seed", "subsequence", "offset")}
        return autolink.Extern(self.named("init"), args={"state": None, **numbers})

    @init.link
    def init(self, state, seed, subsequence, offset):
        name, number = self.named("init"), "unsigned long long"
        signature = f"void {name}({self.cxx_state}* state, {number} seed, {number} subsequence, {number} offset)"
        return self.source(name, signature, "curand_init(seed, subsequence, offset, state);")

    @init.python
    def init(self, state, seed, subsequence, offset=0):
        record = state[0]
        state[0] = np.zeros((), self.state_type)
        record["key"] = int(seed) & _MASK, int(seed) >> 32 & _MASK
        _set_counter(record, int(subsequence) << 64)
        record["output"] = philox(record["counter"], record["key"])
        self.skipahead(state, offset)

    @autolink.device_method
    def skipahead(self, state, count):
        """Skip *count* numbers."""
        self.check(state)
        return autolink.Extern(self.named("skipahead"), args={"state": None, "count": types.uint64})

    @skipahead.link
    def skipahead(self, state, count):
        name = self.named("skipahead")
        return self.source(
            name, f"void {name}({self.cxx_state}* state, unsigned long long count)", "skipahead(count, state);"
        )

    @skipahead.python
    def skipahead(self, state, count):
        record = state[0]
        position = int(record["position"]) + int(count)
        record["position"] = position % 4
        _set_counter(record, _counter(record) + position // 4)
        record["output"] = philox(record["counter"], record["key"])

    bits = draws("bits", "curand(state)", types.uint32)
    uniform = draws("uniform", "curand_uniform(state)", types.float32)
    uniform_double = draws("uniform_double", "curand_uniform_double(state)", types.float64)
    normal = draws("normal", "curand_normal(state)", types.float32)
    normal_double = draws("normal_double", "curand_normal_double(state)", types.float64)
    bits4 = draws_into("bits4", 4, "curand4(state)", types.uint32)
    uniform4 = draws_into("uniform4", 4, "curand_uniform4(state)", types.float32)
    uniform2_double = draws_into("uniform2_double", 2, "curand_uniform2_double(state)", types.float64)
    normal4 = draws_into("normal4", 4, "curand_normal4(state)", types.float32)

    @autolink.device_method
    def poisson(self, state, mean):
        """Draw a number of the Poisson distribution with this *mean*."""
        self.check(state)
        return autolink.Extern(self.named("poisson"), returns=types.uint32, args={"state": None, "mean": types.float64})

    @poisson.link
    def poisson(self, state, mean):
        name = self.named("poisson")
        return self.source(
            name, f"unsigned int {name}({self.cxx_state}* state, double mean)", "return curand_poisson(state, mean);"
        )

    @bits.python
    def bits(self, state):
        record = state[0]
        drawn = record["output"][record["position"]]
        record["position"] += 1
        if record["position"] == 4:
            record["position"] = 0
            _set_counter(record, _counter(record) + 1)
            record["output"] = philox(record["counter"], record["key"])
        return drawn

    @uniform.python
    def uniform(self, state):
        return distributions.uniform(self.bits(state))

    @uniform_double.python
    def uniform_double(self, state):
        return distributions.uniform_double(self.bits(state))

    @normal.python
    def normal(self, state):
        record = state[0]
        if record["has_normal"]:
            record["has_normal"] = 0
            return record["normal"]
        first, record["normal"] = distributions.normal_pair(self.bits(state), self.bits(state))
        record["has_normal"] = 1
        return first

    @bits4.python
    def bits4(self, state, out):
        out[:4] = [self.bits(state) for _ in range(4)]

    @uniform4.python
    def uniform4(self, state, out):
        out[:4] = [self.uniform(state) for _ in range(4)]

    @uniform2_double.python
    def uniform2_double(self, state, out):
        x = [self.bits(state) for _ in range(4)]
        out[:2] = distributions.uniform_double_of_two(*x[:2]), distributions.uniform_double_of_two(*x[2:])

    @normal4.python
    def normal4(self, state, out):
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

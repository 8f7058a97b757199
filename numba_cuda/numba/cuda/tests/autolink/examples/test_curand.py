# SPDX-License-Identifier: BSD-2-Clause
"""The package examples/curand: its generators against known answers, cuRAND's host library and statistics."""

import math

import numpy as np
import pytest
from autolink_support import build
from numba import cuda
from numba.cuda import types
from numba.cuda.autolink.testing import check_linkable
from numba.cuda.core.errors import TypingError
from repository import EXAMPLES, module

curand, generator, distributions = (module(EXAMPLES, f"curand{name}") for name in ("", ".generator", ".distributions"))

try:
    generator.headers()
    curand.direction_vectors(1)
except Exception as error:
    pytest.skip(f"needs cuRAND: {error}", allow_module_level=True)

philox, sobol, scrambled = curand.Philox(), curand.Sobol(), curand.ScrambledSobol()
SEED = 0x1234_5678_9ABC_DEF0


def drawn_in_python(gen, name, count, *init):
    state = np.zeros(1, gen.state_type)
    gen.init(state, *init)
    return np.array([getattr(gen, name)(state) for _ in range(count)])


class TestPython:
    def test_philox_is_that_of_the_host_library(self):
        host = curand.HostGenerator("philox", seed=SEED).bits(4 * (curand.host.PHILOX_SUBSEQUENCES + 5))
        for subsequence in 0, 1, 4:
            drawn = drawn_in_python(philox, "bits", 8, SEED, subsequence)
            assert (drawn[:4] == host[4 * subsequence :][:4]).all()
            assert (drawn[4:] == host[4 * (curand.host.PHILOX_SUBSEQUENCES + subsequence) :][:4]).all()

    @pytest.mark.parametrize("offset", [1, 2, 3, 4, 7, 100])
    def test_philox_skips_ahead(self, offset):
        drawn = drawn_in_python(philox, "bits", 110, SEED, 3)
        assert (drawn_in_python(philox, "bits", 5, SEED, 3, offset) == drawn[offset : offset + 5]).all()
        state = np.zeros(1, philox.state_type)
        philox.init(state, SEED, 3)
        philox.bits(state)
        philox.skipahead(state, offset)
        assert philox.bits(state) == drawn[offset + 1]

    @pytest.mark.parametrize("offset", [0, 5, 1000])
    def test_sobol_is_that_of_the_host_library(self, offset):
        count, dimensions = 1100, 4
        host = curand.HostGenerator("sobol32", dimensions=dimensions).bits(count * dimensions).reshape(dimensions, -1)
        for dimension, directions in enumerate(curand.direction_vectors(dimensions)):
            drawn = drawn_in_python(sobol, "bits", 50, directions, offset)
            assert (drawn == host[dimension, offset : offset + 50]).all()

    def test_scrambled_sobol_is_that_of_the_host_library(self):
        host = curand.HostGenerator("scrambled_sobol32", dimensions=3).bits(60).reshape(3, -1)
        vectors, constants = curand.direction_vectors(3, scrambled=True), curand.scramble_constants(3)
        for dimension in range(3):
            drawn = drawn_in_python(scrambled, "bits", 20, vectors[dimension], constants[dimension])
            assert (drawn == host[dimension]).all()


def kernel_of(gen, name):
    method = getattr(gen, name)

    def kernel(x, seed):
        state = cuda.local.array(1, gen.state_type)
        i = cuda.grid(1)
        gen.init(state, seed, i)
        for j in range(x.shape[1]):
            x[i, j] = method(state)

    return kernel


def poisson_of(mean):
    def kernel(x, seed):
        state = cuda.local.array(1, philox.state_type)
        i = cuda.grid(1)
        philox.init(state, seed, i)
        for j in range(x.shape[1]):
            x[i, j] = philox.poisson(state, mean)

    return kernel


def several_of(name, count, dtype):
    method = getattr(philox, name)

    def kernel(x, seed):
        state, out = cuda.local.array(1, philox.state_type), cuda.local.array(count, dtype)
        i = cuda.grid(1)
        philox.init(state, seed, i)
        for j in range(0, x.shape[1], count):
            method(state, out)
            for k in range(count):
                x[i, j + k] = out[k]

    return kernel


def sobol_kernel(x, directions):
    state = cuda.local.array(1, sobol.state_type)
    dimension, i = cuda.blockIdx.x, cuda.threadIdx.x
    sobol.init(state, directions[dimension], i * 10)
    for j in range(10):
        x[dimension, i * 10 + j] = sobol.bits(state)


def scrambled_kernel(x, directions, constants):
    state = cuda.local.array(1, scrambled.state_type)
    dimension, i = cuda.blockIdx.x, cuda.threadIdx.x
    scrambled.init(state, directions[dimension], constants[dimension], i * 10)
    for j in range(10):
        x[dimension, i * 10 + j] = scrambled.bits(state)


DRAWS = {
    "bits": types.uint32,
    "uniform": types.float32,
    "uniform_double": types.float64,
    "normal": types.float32,
    "normal_double": types.float64,
}


class TestLinked:
    @pytest.mark.parametrize("name", DRAWS)
    def test_the_state_stays_in_registers(self, name):
        linked = build(kernel_of(philox, name), f"void({DRAWS[name]}[:, ::1], uint64)")
        result = linked.report.builds[0].result
        assert (result.stack, result.spill_stores) == (0, 0)

    def test_they_are_linkable(self):
        from numba.cuda.np.numpy_support import from_dtype

        state = from_dtype(philox.state_type)[::1]
        check_linkable(philox.init, state, "uint64", "uint64", "int64", lto=True)
        check_linkable(philox.uniform, state, lto=True)
        check_linkable(philox.normal4, state, "float32[::1]", lto=True)
        check_linkable(sobol.bits, from_dtype(sobol.state_type)[::1], lto=True)

    def test_what_is_no_state_is_refused(self):
        def kernel(x):
            x[0] = philox.uniform(x)

        with pytest.raises(TypingError, match=r"state: got array\(float32, 1d, C\), expected a record of curandState"):
            build(kernel, "void(float32[::1])")


def kolmogorov_smirnov(drawn, distribution):
    """The largest difference between the distribution of the numbers drawn and what it should be, times the square root
    of how many they are: above 1.95 with a probability of 0.001."""
    expected = distribution(np.sort(np.ravel(drawn)).astype(np.float64))
    steps = np.arange(expected.size + 1) / expected.size
    return max((expected - steps[:-1]).max(), (steps[1:] - expected).max()) * math.sqrt(expected.size)


def uniform_distribution(x):
    return x


normal_distribution = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))


@pytest.mark.gpu
class TestOnTheGPU:
    def draw(self, kernel, dtype, blocks=16, threads=64, each=200):
        x = cuda.to_device(np.zeros((blocks * threads, each), dtype))
        cuda.jit(kernel)[blocks, threads](x, np.uint64(SEED))
        return x.copy_to_host()

    def host_numbers(self, threads, each, function="bits", dtype=np.uint32):
        rounds = -(-each // 4)
        numbers = getattr(curand.HostGenerator("philox", seed=SEED), function)(
            4 * curand.host.PHILOX_SUBSEQUENCES * rounds
        )
        return numbers.reshape(rounds, -1, 4)[:, :threads].transpose(1, 0, 2).reshape(threads, -1)[:, :each]

    def test_bits_are_those_of_the_host_library(self):
        drawn = self.draw(kernel_of(philox, "bits"), np.uint32, each=10)
        assert (drawn == self.host_numbers(len(drawn), 10)).all()

    @pytest.mark.parametrize("kernel", [kernel_of(philox, "uniform"), several_of("uniform4", 4, np.float32)])
    def test_uniform_numbers_are_those_of_the_host_library(self, kernel):
        drawn = self.draw(kernel, np.float32, each=12)
        assert (drawn == self.host_numbers(len(drawn), 12, "uniform")).all()

    @pytest.mark.parametrize(
        "name, dtype, distribution, mean, variance",
        [
            ("uniform", np.float32, uniform_distribution, 0.5, 1 / 12),
            ("uniform_double", np.float64, uniform_distribution, 0.5, 1 / 12),
            ("normal", np.float32, normal_distribution, 0, 1),
            ("normal_double", np.float64, normal_distribution, 0, 1),
        ],
    )
    def test_moments_and_distribution(self, name, dtype, distribution, mean, variance):
        drawn = self.draw(kernel_of(philox, name), dtype)
        self.check_moments(drawn, mean, variance)
        assert kolmogorov_smirnov(drawn, distribution) < 1.95
        # Neighbours, in a thread and between threads, have nothing to do with each other.
        centred = (drawn - mean).astype(np.float64)
        for products in (centred[:, 1:] * centred[:, :-1], centred[1:] * centred[:-1]):
            assert abs(products.mean()) < 4.5 * variance / math.sqrt(products.size)

    @pytest.mark.parametrize("mean", [0.5, 20.0, 300.0])
    def test_poisson(self, mean):
        self.check_moments(self.draw(poisson_of(mean), np.uint32), mean, mean)

    def check_moments(self, drawn, mean, variance):
        values = drawn.astype(np.float64)
        assert abs(values.mean() - mean) < 4.5 * math.sqrt(variance / values.size)
        fourth = ((values - mean) ** 4).mean()
        assert abs(values.var() - variance) < 4.5 * math.sqrt((fourth - variance**2) / values.size)

    def test_sobol_is_that_of_the_host_library(self):
        x = cuda.to_device(np.zeros((8, 640), np.uint32))
        cuda.jit(sobol_kernel)[8, 64](x, curand.direction_vectors(8))
        host = curand.HostGenerator("sobol32", dimensions=8).bits(8 * 640).reshape(8, -1)
        assert (x.copy_to_host() == host).all()

    def test_scrambled_sobol_is_that_of_the_host_library(self):
        x = cuda.to_device(np.zeros((8, 640), np.uint32))
        directions, constants = curand.direction_vectors(8, scrambled=True), curand.scramble_constants(8)
        cuda.jit(scrambled_kernel)[8, 64](x, directions, constants)
        host = curand.HostGenerator("scrambled_sobol32", dimensions=8).bits(8 * 640).reshape(8, -1)
        assert (x.copy_to_host() == host).all()

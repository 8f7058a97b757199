# SPDX-License-Identifier: BSD-2-Clause
"""The nonuniform FFTs of the examples: their mathematics, their kernels linked, simulated, and run on a GPU."""

import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from numba.cuda import autolink
from parameters import in_turn
from repository import EXAMPLES, SUPPORT, module


@pytest.fixture(scope="module")
def nufft():
    return module(EXAMPLES, "nufft")


@pytest.fixture(scope="module")
def direct():
    return module(EXAMPLES, "nufft_parts.direct")


@pytest.fixture(scope="module")
def image():
    return module(EXAMPLES, "nufft_parts.image")


def uniform(dimensions, points, seed=1):
    return list(np.random.default_rng(seed).uniform(-np.pi, np.pi, (dimensions, points)))


def vector(shape, dtype=np.complex128):
    rng = np.random.default_rng(2)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def relative_error(result, expected):
    return float(np.linalg.norm(np.asarray(result) - expected) / np.linalg.norm(expected))


class TestDirectSums:
    def test_are_the_definition(self, direct):
        x, y = uniform(2, 5)
        c, f = vector(5), vector((3, 4))
        k, m = np.array([-1, 0, 1]), np.array([-2, -1, 0, 1])
        phase = np.exp(-1j * (x[:, None, None] * k[:, None] + y[:, None, None] * m))
        assert direct.type1([x, y], c, (3, 4), -1) == pytest.approx((c[:, None, None] * phase).sum(axis=0))
        assert direct.type2([x, y], f, -1) == pytest.approx((f * phase).sum(axis=(1, 2)))
        assert direct.type1([x], c, (3,), 1) == pytest.approx(np.exp(1j * np.outer(k, x)) @ c)
        chosen = [np.array([2, 0]), np.array([1])]
        assert direct.type1([x, y], c, (3, 4), -1, chosen) == pytest.approx(
            direct.type1([x, y], c, (3, 4), -1)[np.ix_(*chosen)]
        )


class TestPlan:
    def test_repr_and_attributes(self, nufft):
        plan = nufft.Plan(1, (100, 31), eps=1e-6)
        assert (plan.modes, plan.sizes, plan.sign, plan.dtype) == ((100, 31), (256, 64), 1, np.complex128)
        assert repr(plan) == (
            "Plan(1, (100, 31), eps=1e-06, sign=+1, dtype=np.complex128): fine grid (256, 64), window of 7"
        )
        assert nufft.Plan(2, 7).sign == -1

    def test_refuses_arrays_that_are_not_points(self, nufft):
        plan = nufft.Plan(1, (10, 10))
        x = np.zeros(3)
        with pytest.raises(TypeError, match="set_points: got 1 coordinate arrays, expected 2"):
            plan.set_points(x)
        with pytest.raises(TypeError, match="y: got 1-dimensional int64, expected 1-dimensional float32 or float64"):
            plan.set_points(x, np.zeros(3, np.int64))
        with pytest.raises(TypeError, match="x: got 2-dimensional float64"):
            plan.set_points(np.zeros((3, 1)), x)
        with pytest.raises(ValueError, match="y: got 4 points, expected as many as of x, 3"):
            plan.set_points(x, np.zeros(4))


def test_kernels_link_to_one_function_each(nufft):
    function_sizes = module(EXAMPLES, "_run").function_sizes
    plan = nufft.Plan(2, (5000,), 1e-12, dtype=np.complex128)
    kernels = plan.kernels()
    called = []
    for _, kernel, signature in kernels:
        linked = autolink.build(kernel, signature, cc=(9, 0))
        assert list(function_sizes(linked.code)) == [linked.entry_name]
        result = linked.report.builds[0].result
        assert result.stack == 0
        assert result.shared <= 48 << 10
        called += [site.callee.name for site in linked.call_sites]
    assert called.count("FFT") == len(kernels) - 1
    assert set(called) <= {"FFT", "Memory.load", "Memory.store"}


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("modes", [pytest.param(1 << 20, marks=pytest.mark.thorough), (2048, 2048)])
@pytest.mark.parametrize("dtype", [pytest.param(np.complex64, marks=pytest.mark.thorough), np.complex128])
def test_the_widest_windows_fit_shared_memory(nufft, kind, modes, dtype):
    plan = nufft.Plan(kind, modes, 1e-13 if dtype == np.complex128 else 1e-6, dtype=dtype)
    _, kernel, signature = plan.kernels()[0 if kind == 1 else -1]
    assert autolink.build(kernel, signature, cc=(9, 0)).report.builds[0].result.shared <= 48 << 10


def test_simulated():
    command = [sys.executable, str(SUPPORT / "nufft_in_simulator.py"), str(EXAMPLES)]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "8 transforms are right\n"), done.stdout + done.stderr


def read_png(path):
    """The pixels of a PNG file of 8-bit grey levels without filters, its checksums checked."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 0, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


@pytest.mark.thorough
def test_runs_as_a_reader_runs_it(tmp_path):
    picture = tmp_path / "head.png"
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "nufft.py"), "--picture", str(picture)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compared with NumPy" in done.stdout
    if "On the GPU" in done.stdout:
        assert f"saved as {picture}" in done.stdout
        assert read_png(picture).shape == (256, 256)
    else:
        assert "linked for sm_90" in done.stdout
        assert "with the external code inlined" in done.stdout
        assert "No picture: the image needs a GPU." in done.stdout
        assert not picture.exists()


@pytest.mark.gpu
class TestOnTheGPU:
    @pytest.mark.parametrize("kind", [1, 2])
    @pytest.mark.parametrize(
        "modes, points, sign, eps",
        in_turn(
            [((1000,), 5000), ((777,), 5000), ((64, 64), 5000), ((101, 250), 20_000), ((1,), 10)],
            [(1, 1e-3), (1, 1e-6), (-1, 1e-9), (1, 1e-12)],
        ),
    )
    def test_to_the_tolerance(self, nufft, kind, sign, eps, modes, points):
        case = nufft.make_case(kind, modes, points, eps, sign=sign)
        case()
        assert case.error() <= eps
        case()  # the second run finds the grid as the first left it
        assert case.error() <= eps

    @pytest.mark.parametrize("kind", [1, 2])
    @pytest.mark.parametrize(
        "modes, points, eps", in_turn([(3001, 20_000), (100_000, 100_000), (1 << 20, 200_000)], [(1e-6,), (1e-12,)])
    )
    def test_long(self, nufft, kind, eps, modes, points):
        case = nufft.make_case(kind, modes, points, eps)
        case()
        assert case.error(most=50 if kind == 1 else 10) <= 2 * eps  # of few elements

    @pytest.mark.parametrize("kind, dtype", in_turn([(1,), (2,)], [(np.complex64,), (np.complex128,)]))
    def test_largest_square(self, nufft, kind, dtype):
        case = nufft.make_case(kind, (2048, 2048), 100_000, 1e-5, dtype)
        case()
        assert case.error(most=20) <= 2e-5

    @pytest.mark.parametrize("most", [3, pytest.param(12, marks=pytest.mark.thorough)])
    @pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
    def test_every_length(self, nufft, dtype, most):
        for size in (2**k for k in range(1, most)):
            for kind in 1, 2:
                for modes in (size,), (size, 3), (5, size):
                    case = nufft.make_case(kind, modes, 300, 1e-5, dtype)
                    case()
                    assert case.error(most=100) <= 3e-5, (kind, modes)  # of few elements

    @pytest.mark.parametrize("kind", [1, 2])
    def test_points_all_over(self, nufft, direct, kind):
        turn = 2 * np.pi
        edges = [-np.pi, np.pi, 0.0, -0.0, -1e-300, np.nextafter(np.pi, 4), turn, -turn, 3 * np.pi, -40.0, 1e4, -1e6]
        x = np.concatenate([edges, np.random.default_rng(0).uniform(-100, 100, 500)])
        for coordinates, modes in ([x], (300,)), ([x, x[::-1].copy()], (30, 41)):
            plan = nufft.Plan(kind, modes, 1e-11).set_points(*coordinates)
            data = vector(x.size if kind == 1 else modes)
            if kind == 1:
                expected = direct.type1(coordinates, data, modes, plan.sign)
            else:
                expected = direct.type2(coordinates, data, plan.sign)
            assert relative_error(plan.execute(data), expected) <= 1e-11

    @pytest.mark.parametrize("kind", [1, 2])
    @pytest.mark.parametrize("modes", [(1000,), (100, 100)])
    def test_points_all_in_one_place(self, nufft, direct, kind, modes):
        rng = np.random.default_rng(0)
        coordinates = [1 + 1e-3 * rng.standard_normal(100_000) for _ in modes]
        plan = nufft.Plan(kind, modes, 1e-9).set_points(*coordinates)
        data = vector(100_000 if kind == 1 else modes)
        result = plan.execute(data)
        if kind == 1:
            chosen = [rng.choice(n, 10, replace=False) for n in modes]
            expected = direct.type1(coordinates, data, modes, plan.sign, chosen)
            scale = np.linalg.norm(result) * (expected.size / result.size) ** 0.5
            assert np.linalg.norm(result[np.ix_(*chosen)] - expected) <= 3e-9 * scale
        else:
            expected = direct.type2([x[:500] for x in coordinates], data, plan.sign)
            assert np.linalg.norm(result[:500] - expected) <= 1e-9 * np.linalg.norm(data) * 500**0.5

    def test_arrays_on_the_device(self, nufft, direct):
        from numba import cuda

        x, y = uniform(2, 1000)
        c, f = vector(1000), vector((20, 30))
        d_x, d_y = cuda.to_device(x), cuda.to_device(y.astype(np.float32))
        modes = nufft.nufft2d1(d_x, d_y, cuda.to_device(c), (20, 30), eps=1e-8)
        assert relative_error(modes.copy_to_host(), direct.type1([x, y.astype(np.float32)], c, (20, 30), 1)) <= 1e-8
        values = nufft.nufft1d2(d_x, cuda.to_device(f[0]), eps=1e-8)
        assert relative_error(values.copy_to_host(), direct.type2([x], f[0], -1)) <= 1e-8
        plan = nufft.Plan(2, (20, 30)).set_points(d_x, d_y)
        out = cuda.device_array(1000, np.complex128)
        assert plan.execute(cuda.to_device(f), out=out) is out
        assert relative_error(out.copy_to_host(), direct.type2([x, y.astype(np.float32)], f, -1)) <= 1e-6
        with pytest.raises(ValueError, match=r"out: got complex64 of shape \(1000,\), expected complex128 of shape"):
            plan.execute(f, out=cuda.device_array(1000, np.complex64))
        with pytest.raises(ValueError, match=r"data: got complex128 of shape \(30, 20\), expected complex128 of shape"):
            plan.execute(np.zeros((30, 20)))
        strided = cuda.to_device(np.zeros((20, 60), complex))[:, ::2]
        with pytest.raises(ValueError, match=r"data: got an array with strides .*, expected a contiguous one"):
            plan.execute(strided)

    def test_picture(self, image, tmp_path):
        assert image.make_picture(tmp_path / "head.png", size=128)
        pixels = read_png(tmp_path / "head.png")
        assert pixels.shape == (128, 128)
        expected = 255 * np.clip(image.phantom(128), 0, 1)[::-1]
        assert np.corrcoef(pixels.ravel(), expected.ravel())[0, 1] > 0.99

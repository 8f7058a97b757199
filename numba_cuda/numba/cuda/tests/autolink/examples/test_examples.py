# SPDX-License-Identifier: BSD-2-Clause
"""The examples, run as a reader runs them, and the FFT library that one of them brings, at every size it has."""

import ctypes
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from parameters import in_turn
from repository import EXAMPLES, SUPPORT, module

# Those that take long; .ci/run runs the thorough tests of this file too, in its step of the documentation.
_LONG = "fft", "cub_block_sum", "cub_unique", "cub_by_name", "nufft_window", "finished_graph", "torch_operator"
LONG = [pytest.param(name, marks=pytest.mark.thorough) for name in _LONG]


@pytest.fixture(scope="module")
def fft_example():
    return module(EXAMPLES, "fft")


@pytest.fixture(scope="module")
def run_example():
    return module(EXAMPLES, "_run")


class TestRunAsAScript:
    def run(self, name, **environment):
        return subprocess.run(
            [sys.executable, str(EXAMPLES / name)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=600,
        )

    @pytest.mark.parametrize("name", ["own_cu_file", *LONG])
    def test_succeeds(self, name):
        done = self.run(f"{name}.py")
        if done.returncode == 2 and "This example needs PyTorch" in done.stdout:
            pytest.skip("needs PyTorch, where there is a GPU")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "compared with NumPy" in done.stdout
        if "On the GPU" not in done.stdout:
            assert "linked for sm_90" in done.stdout
            assert "with the external code inlined" in done.stdout

    @pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
    def test_a_driver_without_a_device(self, tmp_path):
        flags = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(tmp_path / "libcuda.so.1")]
        subprocess.run(["g++", str(SUPPORT / "driver_without_device.cpp"), *flags], check=True)
        done = self.run("own_cu_file.py", LD_LIBRARY_PATH=str(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("linked for sm_90") == done.stdout.count("In the emulator, compared with NumPy") == 1

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "name, library", [("glm_vectors.py", "GLM"), ("boost_math.py", "Boost.Math")], ids=["glm", "boost_math"]
    )
    def test_libraries_whose_headers_are_fetched(self, name, library):
        done = self.run(name)
        if done.returncode == 2 and f"This example needs {library}. Get the headers" in done.stdout:
            pytest.skip(done.stdout.strip())
        assert done.returncode == 0, done.stdout + done.stderr
        assert "On the GPU" in done.stdout or "gives a cubin" in done.stdout

    @pytest.mark.thorough
    @pytest.mark.parametrize("name", ["curand_monte_carlo.py", "curand_by_name.py"])
    def test_curand(self, name):
        """cuRAND's wheel is too large to be a requirement of all tests (77 MB): nox has a corner with it."""
        done = self.run(name)
        if done.returncode == 2 and "This example needs cuRAND: cuRAND's headers were not found" in done.stdout:
            pytest.skip(done.stdout.strip())
        assert done.returncode == 0, done.stdout + done.stderr
        if "On the GPU" in done.stdout or name == "curand_monte_carlo.py":
            assert "All within five standard deviations" in done.stdout
        assert "On the GPU" in done.stdout or "with the external code inlined" in done.stdout

    @pytest.mark.thorough
    def test_nvshmem(self):
        """All calls are of one translation unit, whose state is a variable that NVSHMEM finds by its name."""
        done = self.run("nvshmem_ring.py")
        if done.returncode == 2 and "This example needs NVSHMEM" in done.stdout:
            pytest.skip(done.stdout.strip())
        assert done.returncode == 0, done.stdout + done.stderr
        if "On the GPU" in done.stdout:
            assert "the sum on GPU 0" in done.stdout
            return
        example = module(EXAMPLES, "nvshmem_ring")
        linked = example.link()  # from the cache
        assert [planned.input.options.unit for planned in linked.inputs] == ["nvshmem"] * 4
        assert (linked.launch_facts.setup, linked.launch_facts.teardown) == ((example.attach,), (example.detach,))
        assert b"nvshmemi_device_state_d" in linked.code

    @pytest.mark.parametrize("name", ["nvmath_fft.py", "nvmath_gemm.py"])
    def test_nvmath(self, name, driver_stub):
        if importlib.util.find_spec("nvmath") is None:
            pytest.skip("needs nvmath-python")
        done = self.run(name, **driver_stub)
        assert done.returncode == 0, done.stdout + done.stderr
        if "On the GPU" not in done.stdout:
            assert done.stdout.count("with the external code inlined") == done.stdout.count("gives a cubin") > 0

    def test_names_what_is_missing_without_nvmath(self, tmp_path):
        (tmp_path / "nvmath.py").write_text("raise ImportError('not here')")
        done = self.run("nvmath_fft.py", PYTHONPATH=str(tmp_path))
        assert done.returncode == 2
        assert "needs nvmath-python and the NVIDIA driver: pip install nvmath-python" in done.stdout

    def test_a_wrong_result_is_a_failure(self, tmp_path):
        script = tmp_path / "wrong.py"
        script.write_text(
            f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n"
            "import fft, _run\n"
            "fft.SIZES = [8]; fft.FFT.__call__ = lambda self, thread_data, shared_mem: None\n"
            "_run.run(fft.launch, fft.link)\n"
        )
        done = self.run(script, NUMBA_ENABLE_CUDASIM="1")
        assert done.returncode == 1, done.stdout + done.stderr
        assert "WRONG" in done.stdout


class TestWithNumbaCudaMLIR:
    NAMES = (
        *("boost_math", "curand_by_name", "curand_monte_carlo", "glm_vectors", "nvmath_fft", "nvmath_gemm"),
        *("nvshmem_ring", "own_cu_file", pytest.param("nufft", marks=pytest.mark.thorough), *LONG),
    )

    def run(self, name, **environment):
        if importlib.util.find_spec("numba_cuda_mlir") is None:
            pytest.skip("numba-cuda-mlir is not installed")
        command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--frontend", "numba-cuda-mlir"]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600)
        if done.returncode == 2 and "This example needs" in done.stdout:
            pytest.skip(done.stdout.strip())
        return done

    @pytest.mark.parametrize("name", NAMES)
    def test_is_linked(self, name, driver_stub):
        if cuda.is_available():
            pytest.skip("there is a GPU, on which another test runs it")
        done = self.run(name, **driver_stub if name.startswith("nvmath") else {})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "linked for sm_90" in done.stdout and "gives a cubin" in done.stdout

    @pytest.mark.gpu
    @pytest.mark.parametrize("name", NAMES)
    def test_is_right(self, name):
        done = self.run(name)
        assert done.returncode == 0, done.stdout + done.stderr
        is_emulated = os.environ.get("NUMBA_CUDA_AUTOLINK_EMULATE") == "1"
        assert "On the GPU" in done.stdout or (is_emulated and "In the emulator" in done.stdout)

    def test_each_example_is_here(self):
        names = {getattr(each, "values", (each,))[0] for each in self.NAMES}
        assert {path.stem for path in EXAMPLES.glob("[!_]*.py")} == names


SIZES = [2**k for k in range(1, 13)]
PRECISIONS = [np.float32, np.float64]
DIRECTIONS = ["forward", "inverse"]


def elements_for(size):
    return [n for n in (2, 4, 8, 16) if n <= size <= 1024 * n]


@pytest.fixture(scope="module", params=PRECISIONS)
def blocks_on_the_cpu(request, fft_example, tmp_path_factory, thorough):
    """fft/block_fft.cuh compiled for the CPU, and the transforms that it was compiled for."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    ffts = [
        fft_example.FFT(size, request.param, direction, elements, rows)
        for size in (SIZES if thorough else (2, 64, 4096))
        for elements in elements_for(size)
        for rows in {1, min(3, 1024 * elements // size)}
        for direction in (DIRECTIONS if thorough else DIRECTIONS[request.param is np.float64 :][:1])
    ]
    folder = tmp_path_factory.mktemp("fft")
    source = f'#include "{SUPPORT / "block_fft_on_cpu.cpp"}"\n' + "".join(
        f"EXPORT({fft.symbol}, {fft.real}, {fft.size}, {fft.elements_per_thread}, {fft.ffts_per_block},"
        f" {str(fft.direction == 'inverse').lower()})\n"
        for fft in ffts
    )
    (folder / "all.cpp").write_text(source)
    flags = ["-std=c++17", "-O1", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-fPIC", "-shared"]
    subprocess.run(["g++", *flags, f"-I{EXAMPLES / 'fft'}", "all.cpp", "-o", "all.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so")), ffts


def test_our_fft_is_right_for_every_size_direction_and_split(blocks_on_the_cpu, fft_example, run_example):
    library, ffts = blocks_on_the_cpu
    rng = np.random.default_rng(1)
    wrong = []
    for fft in ffts:
        shape = fft.ffts_per_block, fft.size
        x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(fft.value_type)
        wide = x.astype(np.clongdouble)
        expected = np.fft.fft(wide) if fft.direction == "forward" else np.fft.ifft(wide, norm="forward")
        tolerance = fft_example.TOLERANCE[str(fft.value_type)]
        for last_thread_first in False, True:
            rows = x.copy()
            shared = library[fft.symbol](ctypes.c_void_p(rows.ctypes.data), last_thread_first)
            error = run_example.relative_error(rows, expected)
            if shared != fft.shared_memory_size or not error <= tolerance:
                wrong.append((fft, last_thread_first, shared, error))
    assert not wrong


class TestOurFFT:
    def test_attributes_that_kernels_use(self, fft_example):
        fft = fft_example.FFT(size=128, elements_per_thread=8, ffts_per_block=4)
        assert (fft.storage_size, fft.stride, fft.block_dim) == (8, 16, (16, 4, 1))
        assert fft.value_type == np.complex64
        assert fft.shared_memory_size == fft.shared_size * 8

    def test_refuses_data_of_another_type_at_the_call(self, fft_example):
        fft = fft_example.FFT(128)
        shared = fft.shared_size

        def kernel(x):
            thread_data = cuda.local.array(16, np.complex128)
            fft(thread_data, cuda.shared.array(shared, np.complex64))

        with pytest.raises(TypingError, match=r"thread_data: got array\(complex128, 1d, C\), expected"):
            autolink.build(kernel, "void(complex64[:, ::1])", cc=(9, 0))


def build_fft(fft_example, fft):
    return autolink.build(fft_example.make_kernel(fft), f"void({fft.value_type}[:, ::1])", cc=(9, 0))


class TestOurFFTLinked:
    @pytest.mark.parametrize("size, precision", [(2, np.float32), (128, np.float64), (4096, np.float32)])
    def test_into_one_function(self, fft_example, run_example, size, precision):
        fft = fft_example.FFT(size, precision, DIRECTIONS[size % 3 % 2])
        kernel = build_fft(fft_example, fft)
        assert list(run_example.function_sizes(kernel.code)) == [kernel.entry_name]
        assert [site.callee.name for site in kernel.call_sites] == ["Memory.load", "FFT", "Memory.store"]

    def test_two_of_them_in_one_kernel(self, fft_example, run_example):
        kernel = round_trip(fft_example.FFT(64), fft_example.FFT(64, direction="inverse"))
        linked = autolink.build(kernel, "void(complex64[:, ::1])", cc=(9, 0))
        assert len(linked.inputs) == 2
        assert list(run_example.function_sizes(linked.code)) == [linked.entry_name]


def round_trip(forward, inverse):
    """A kernel that transforms rows there and back, in static shared memory."""

    @cuda.jit
    def there_and_back(x):
        row = cuda.blockIdx.x * forward.ffts_per_block + cuda.threadIdx.y
        thread_data = cuda.local.array(forward.storage_size, forward.value_type)
        shared_mem = cuda.shared.array(forward.shared_size, forward.value_type)
        for i in range(forward.storage_size):
            thread_data[i] = x[row, cuda.threadIdx.x + i * forward.stride]
        forward(thread_data, shared_mem)
        inverse(thread_data, shared_mem)
        for i in range(forward.storage_size):
            x[row, cuda.threadIdx.x + i * forward.stride] = thread_data[i]

    return there_and_back


LAUNCHABLE = 48 << 10  # bytes of dynamic shared memory that a kernel gets without asking the driver for more


@pytest.mark.gpu
class TestOnTheGPU:
    @pytest.mark.parametrize(
        "size, precision, direction", in_turn([(n,) for n in SIZES], [*itertools.product(PRECISIONS, DIRECTIONS)])
    )
    def test_our_fft(self, fft_example, size, precision, direction):
        most = [min(3, 1024 * elements // size) for elements in elements_for(size)]
        splits = [(None, None), (None, 1), *zip(elements_for(size), most, strict=True)]
        errors = {}
        for elements, rows in splits:
            fft = fft_example.FFT(size, precision, direction, elements, rows)
            if fft.shared_memory_size > LAUNCHABLE:
                fft = fft_example.FFT(size, precision, direction, elements, 1)
            errors[fft] = fft_example.error_of(fft, rows=1000)
        tolerance = fft_example.TOLERANCE[str(fft.value_type)]
        assert {fft: error for fft, error in errors.items() if not error <= tolerance} == {}

    @pytest.mark.parametrize("lto", [True, False])
    def test_our_fft_there_and_back(self, fft_example, run_example, lto):
        forward, inverse = fft_example.FFT(256), fft_example.FFT(256, direction="inverse")
        rng = np.random.default_rng(0)
        rows = 7 * forward.ffts_per_block
        x = (rng.standard_normal((rows, 256)) + 1j * rng.standard_normal((rows, 256))).astype(np.complex64)
        device = cuda.to_device(x)
        kernel = cuda.jit(round_trip(forward, inverse).py_func, lto=lto)
        kernel[7, forward.block_dim](device)
        assert run_example.relative_error(device.copy_to_host() / 256, x) < 1e-6

    @pytest.mark.parametrize(
        "dtype, threads",
        in_turn([(n,) for n in ("int8", "uint16", "int32", "uint64", "float32", "float64")], [(32,), (100,), (512,)]),
    )
    def test_cub_block_sum_and_scan(self, dtype, threads):
        assert module(EXAMPLES, "cub_block_sum").check(dtype, threads)

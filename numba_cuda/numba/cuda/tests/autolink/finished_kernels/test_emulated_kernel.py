# SPDX-License-Identifier: BSD-2-Clause
"""Kernels on the CPU with the launch of finished kernels: ``linked.emulate`` and ``load(path, emulate=True)``."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink, cg, types
from numba.cuda.np.numpy_support import from_dtype

import numba_cuda_autolink
from numba_cuda_autolink import ArgumentError, EmulatedKernel, EmulationError, FinishedKernelError, LaunchError

RECORD = np.dtype([("a", "u1"), ("b", "f8")], align=True)


def emulated(kernel, signature, **options):
    return autolink.build(kernel, signature, cc="9.0", **options).emulate


def axpy(r, a, x):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = a * x[i] + r[i]


class TestLinked:
    def test_runs_the_external_code(self):
        hypot = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std").hypot

        def kernel(x, y, r):
            r[cuda.threadIdx.x] = hypot(x[cuda.threadIdx.x], y[cuda.threadIdx.x])

        x, y, r = np.float32([3, 5]), np.float32([4, 12]), np.zeros(2, np.float32)
        emulated(kernel, "void(float32[::1], float32[::1], float32[::1])")[1, 2](x, y, r)
        assert r.tolist() == [5, 13]

    def test_takes_what_a_gpu_takes(self):
        def kernel(out, strided, record, pair, number, nothing):
            out[0] = strided[1, 1] + record.b + pair[0] + pair[1][0] + number.real
            if nothing is None:
                out[1] = number.imag

        record = from_dtype(RECORD)
        pair = types.Tuple((types.int64, types.Array(types.float64, 1, "C")))
        array = types.Array(types.float64, 2, "A")
        out, strided = np.zeros(2), np.arange(16.0).reshape(4, 4)[::2, ::-2]
        given = np.zeros(1, RECORD)
        given["b"] = 100
        arguments = out, strided, given, (1000, np.array([10000.0])), 2 + 3j, None
        launch = emulated(kernel, (types.float64[::1], array, record, pair, types.complex128, types.none))
        launch[1, 1](*arguments)
        assert out.tolist() == [strided[1, 1] + 100 + 1000 + 10000 + 2, 3]

    def test_arguments_are_checked(self):
        kernel = emulated(axpy, "void(float32[::1], float32, float32[::1])")
        with pytest.raises(ArgumentError, match="got: array\\(float64, 1d, C\\)"):
            kernel[1, 1](np.zeros(1), 1.0, np.zeros(1, np.float32))
        with pytest.raises(ArgumentError, match="takes 3 arguments, got 1"):
            kernel[1, 1](np.zeros(1, np.float32))
        with pytest.raises(ArgumentError, match="by position"):
            kernel[1, 1](r=np.zeros(1, np.float32))
        with pytest.raises(LaunchError, match="block of"):
            kernel[1, (64, 64)](np.zeros(1, np.float32), 1.0, np.zeros(1, np.float32))

    def test_an_access_beside_an_array_names_it(self):
        def kernel(values):
            values[cuda.threadIdx.x + 3] = 1

        with pytest.raises(EmulationError, match="values") as error:
            emulated(kernel, "void(int64[::1])", lineinfo=True)[1, 4](np.zeros(4, np.int64))
        assert error.value.thread == (1, 0, 0)

    def test_arrays_that_overlap(self):
        x = np.arange(8.0)
        emulated(axpy, "void(float64[::1], float64, float64[::1])")[1, 8](x[4:], 10.0, x[:4])
        assert x[4:].tolist() == [4, 15, 26, 37]

    def test_shared_memory_and_a_cooperative_grid(self):
        def kernel(x):
            shared = cuda.shared.array(0, np.int32)
            shared[cuda.threadIdx.x] = x[cuda.grid(1)]
            cg.this_grid().sync()
            x[cuda.grid(1)] = shared[cuda.blockDim.x - 1 - cuda.threadIdx.x]

        x = np.arange(64, dtype=np.int32)
        emulated(kernel, "void(int32[::1])")[2, 32, 0, 128](x)
        assert x.tolist() == [*range(31, -1, -1), *range(63, 31, -1)]

    def test_printing(self, capfd):
        def kernel():
            print(cuda.threadIdx.x, 0.5)

        emulated(kernel, "void()")[1, 2]()
        sys.stdout.flush()
        assert capfd.readouterr().out.split() == ["0", "0.500000", "1", "0.500000"]

    def test_a_pickle_has_the_ptx_alone(self):
        signature = "void(float32[::1], float32, float32[::1])"
        r, x = np.ones(2, np.float32), np.ones(2, np.float32)
        for output in "ptx", "cubin":
            built = autolink.build(axpy, signature, cc="9.0", output=output)
            built.emulate[1, 2](r, 1.0, x)
            copied = pickle.loads(pickle.dumps(built))
            if output == "ptx":
                copied.emulate[1, 2](r, 1.0, x)
            else:
                with pytest.raises(FinishedKernelError, match="output='ptx'"):
                    _ = copied.emulate
        assert r.tolist() == [4, 4]

    def test_all_checks(self):
        def kernel(x):
            shared = cuda.shared.array(32, np.int32)
            if x[0] > 0:
                shared[cuda.threadIdx.x] = 1
            x[cuda.threadIdx.x] = shared[cuda.threadIdx.x]

        with pytest.raises(EmulationError):
            emulated(kernel, "void(int32[::1])").with_checks()[1, 32](np.zeros(32, np.int32))


class TestLoaded:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "axpy.kernels"
        kernels = [
            autolink.build(axpy, f"void({t}[::1], {t}, {t}[::1])", cc="9.0", output=output)
            for t, output in [("float32", "ptx"), ("float32", "cubin"), ("float64", "ptx"), ("int32", "cubin")]
        ]
        autolink.save(path, kernels)
        return path

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_the_arguments_choose(self, path, dtype):
        r, x = np.ones(4, dtype), np.arange(4).astype(dtype)
        with numba_cuda_autolink.load(path, emulate=True) as library:
            assert isinstance(library.axpy, EmulatedKernel)
            library.axpy[1, 4](r, 10.0, x)
        assert r.tolist() == [1, 11, 21, 31]

    def test_a_cubin_alone_is_refused(self, tmp_path):
        path = tmp_path / "cubin.kernels"
        autolink.build(axpy, "void(int32[::1], int32, int32[::1])", cc="9.0").save(path)
        with pytest.raises(LaunchError, match="has no PTX, and the emulator runs nothing else") as error:
            numba_cuda_autolink.load(path, emulate=True).axpy[1, 1](np.zeros(1, np.int32), 1, np.zeros(1, np.int32))
        assert "it has: sm_90" in str(error.value) and "output='ptx'" in str(error.value)
        assert error.value.__context__ is None, "no error of ours stands before it"

    def test_neither_numba_nor_cuda_is_imported(self, tmp_path):
        path = tmp_path / "axpy.kernels"
        autolink.build(axpy, "void(float32[::1], float32, float32[::1])", cc="9.0", output="ptx").save(path)
        code = f"""if True:
            import sys, numpy as np, numba_cuda_autolink
            r = np.ones(4, np.float32)
            numba_cuda_autolink.load({str(path)!r}, emulate=True).axpy[1, 4](r, 2.0, r.copy())
            print(r.tolist(), [name for name in ("numba", "cuda.bindings", "cuda.core") if name in sys.modules])
        """
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.stdout, done.stderr) == ("[3.0, 3.0, 3.0, 3.0] []\n", "")

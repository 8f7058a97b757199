# SPDX-License-Identifier: BSD-2-Clause
"""Finished kernels on two GPUs: code is loaded on each, and arrays of the other one are refused."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink

import numba_cuda_autolink
from numba_cuda_autolink import ArgumentError

pytestmark = pytest.mark.gpu


def axpy(r, a, x, y):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = a * x[i] + y[i]


AXPY = "void({0}[::1], {0}, {0}[::1], {0}[::1])"
EXPECTED = 2 * np.arange(100, dtype="f4") + 1


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of a kernel with one signature, ``one``, and of one with two, ``two``."""
    if len(cuda.gpus) < 2:
        pytest.skip(f"needs two GPUs, and there is {len(cuda.gpus)}")
    path = tmp_path_factory.mktemp("devices") / "a.kernels"
    ccs = sorted({tuple(gpu.compute_capability) for gpu in cuda.gpus})
    built = autolink.build(axpy, AXPY.format("float32"), cc=ccs, entry_name="one")
    for dtype in ("float32", "float64"):
        built += autolink.build(axpy, AXPY.format(dtype), cc=ccs, entry_name="two")
    autolink.save(path, built)
    return path


@pytest.fixture(params=["one", "two"])
def kernel(path, request):
    with numba_cuda_autolink.load(path) as library:
        yield library[request.param]


def of_numba_cuda(device):
    with cuda.gpus[device]:
        arrays = np.zeros(100, "f4"), np.arange(100, dtype="f4"), np.ones(100, "f4")
        return [cuda.to_device(array) for array in arrays]


def of_cupy(device):
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(device):
        arrays = [cupy.zeros(100, "f4"), cupy.arange(100, dtype="f4"), cupy.ones(100, "f4")]
        cupy.cuda.get_current_stream().synchronize()
        return arrays


def of_torch(device):
    torch = pytest.importorskip("torch")
    where = {"device": f"cuda:{device}", "dtype": torch.float32}
    arrays = [torch.zeros(100, **where), torch.arange(100, **where), torch.ones(100, **where)]
    torch.cuda.synchronize(device)
    return arrays


class Foreign:
    """An array that only shows its interface, so that the driver is asked where it is."""

    def __init__(self, array):
        self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__


def of_another_library(device):
    return [Foreign(array) for array in of_numba_cuda(device)]


def on_host(array):
    array = getattr(array, "array", array)
    if hasattr(array, "copy_to_host"):
        return array.copy_to_host()
    return array.get() if hasattr(array, "get") else array.cpu().numpy()


LIBRARIES = [of_numba_cuda, of_cupy, of_torch, of_another_library]


@pytest.mark.parametrize("arrays", LIBRARIES)
def test_one_launch_runs_on_the_current_device_and_refuses_arrays_of_the_other_one(kernel, arrays):
    launch = kernel[2, 64]
    made = [arrays(0), arrays(1)]
    for device in (0, 1, 1, 0, 1):
        with cuda.gpus[device]:
            r, x, y = made[device]
            launch(r, 0.0, x, y)
            for position, number in ((1, 0), (3, 1)):
                arguments = [r, 2.0, x, y]
                arguments[position - 1] = made[1 - device][number]
                with pytest.raises(ArgumentError, match=f"argument {position}, '{'rx'[number]}', ") as caught:
                    launch(*arguments)
                assert f"on device {1 - device}" in str(caught.value)
                assert f"copy it to device {device}, or launch on its device" in str(caught.value)
            cuda.synchronize()
            assert (on_host(r) == 1).all()
            launch(r, 2.0, x, y)
            cuda.synchronize()
            assert (on_host(r) == EXPECTED).all()


def test_a_thread_for_each_device_with_a_loaded_and_a_bound_kernel(kernel):
    bound = autolink.bind(cuda.jit(axpy), AXPY.format("float32"))[2, 64]
    launch, wrong = kernel[2, 64], []

    def work(device):
        try:
            with cuda.gpus[device]:
                r, x, y = of_numba_cuda(device)
                for k in range(300):
                    (launch, bound)[k % 2](r, float(k), x, y)
                cuda.synchronize()
                if not (r.copy_to_host() == 299 * np.arange(100, dtype="f4") + 1).all():
                    wrong.append(device)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

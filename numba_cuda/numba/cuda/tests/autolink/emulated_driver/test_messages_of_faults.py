# SPDX-License-Identifier: BSD-2-Clause
"""What a fault of a launched kernel prints: the variables of the kernel, and what to do, on both front ends."""

from __future__ import annotations

import pytest
from emulator_support import run_emulated
from front_ends import MODULES, front_end_named

SCRIPT = """
import sys
import numpy as np
from {package} import cuda

@cuda.jit(device=True)
def buffered(y, i):
    buffer = cuda.shared.array(16, np.float32)
    buffer[i % 16] = y[i]
    cuda.syncthreads()
    return buffer[i + y.size]

@cuda.jit
def of_kernel(x, y):
    first = cuda.shared.array(32, np.float32)
    second = cuda.shared.array(16, np.float32)
    i = cuda.threadIdx.x
    first[i] = y[i]
    second[i % 16] = y[i]
    cuda.syncthreads()
    x[i] = first[31 - i] + second[i + x.size]

@cuda.jit
def of_device_function(x, y):
    tile = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    tile[i] = y[i]
    cuda.syncthreads()
    x[i] = tile[31 - i] + buffered(y, i)

@cuda.jit
def of_a_tuple(x, y):
    x[0] = y[1][cuda.threadIdx.x + 64]

@cuda.jit
def of_local_memory(x, y):
    table = cuda.local.array(8, np.float32)
    for k in range(8):
        table[k] = y[k]
    x[0] = table[cuda.blockDim.x + y.size]

x, y, z = (np.zeros(64, np.float32) for _ in range(3))
launches = (of_kernel, y), (of_device_function, y), (of_a_tuple, (y, z)), (of_local_memory, y)
for kernel, y in launches:
    print("===", file=sys.stderr)
    try:
        kernel[1, 32](x, y)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
"""
RAISING = """
import numpy as np
from numba import cuda

@cuda.jit(debug=True, opt=False)
def kernel(x):
    assert x[cuda.threadIdx.x] < 3, "too large"

kernel[1, 4](np.arange(4.0))
"""

TOO_MUCH = """
import numpy as np
from numba import cuda

@cuda.jit
def kernel(x):
    s = cuda.shared.array(100000, np.float32)
    s[cuda.threadIdx.x] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    x[cuda.threadIdx.x] = s[cuda.threadIdx.x + 1]

kernel[1, 8](np.ones(8, np.float32))
"""

OF_PTX = """
import numpy as np
from numba import cuda as numba_cuda
from numba.cuda import autolink
from {package} import cuda

class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("scale", returns=x)

    def __numba_cuda_link__(self, x):
        head = ".version 8.0\\n.target sm_80\\n.address_size 64\\n"
        return numba_cuda.PTXSource((head + ".visible .func (.param .b32 r) scale(.param .b32 x) {{ bad; }}").encode())

scale = Scale()

@cuda.jit
def kernel(x):
    x[0] = scale(x[0])

kernel[1, 1](np.ones(8, np.float32))
"""


def run(script, text):
    script.write_text(text)
    return run_emulated("-W", "ignore", script).stderr


@pytest.mark.parametrize("front_end", MODULES)
def test_a_fault_names_the_variables_of_the_kernel_and_says_what_to_do(front_end, tmp_path):
    package = front_end_named(front_end).cuda.__name__.removesuffix(".cuda")
    _, *texts = run(tmp_path / "faults.py", SCRIPT.format(package=package)).split("===\n")
    assert texts[0].split("\n  address: ")[1].split("\n")[0].endswith(" of 64 of second")
    # Where another function has arrays too, and is not in the chain of calls, the variable is not known.
    names = {"numba-cuda": " of 64 of buffer", "numba-cuda-mlir": " of 64 of a shared array"}
    assert texts[1].split("\n  address: ")[1].split("\n")[0].endswith(names[front_end])
    assert "0 bytes after the end of y[1] at " in texts[2]
    assert ", local memory\n" in texts[3]
    for text in texts:
        assert text.count("\n  what to do: access elements only where the index is in the array") == 1
        assert "smem" not in text and "device memory" not in text and "static_shared_memory" not in text


@pytest.mark.parametrize("front_end", MODULES)
def test_ptx_that_no_gpu_takes_is_refused_as_by_a_build(front_end, tmp_path):
    package = front_end_named(front_end).cuda.__name__.removesuffix(".cuda")
    text = run(tmp_path / "wrong_ptx.py", OF_PTX.format(package=package))
    assert "LinkError: Not a name of any known instruction: 'bad'\n  called at: " in text


def test_an_assertion_of_a_kernel_is_at_its_own_line(tmp_path):
    script = tmp_path / "raising.py"
    text = run(script, RAISING)
    assert (
        "\nAssertionError: too large\n"
        f"  at: {script}:7\n"
        '      assert x[cuda.threadIdx.x] < 3, "too large"\n'
        "      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        f"  launched at: {script}:9\n"
    ) in text
    assert "\n  thread: (3, 0, 0) of block (0, 0, 0) of kernel kernel\n" in text


def test_too_much_static_shared_memory_names_the_arrays(tmp_path):
    script = tmp_path / "shared.py"
    text = run(script, TOO_MUCH)
    assert "kernel needs 400000 bytes of static shared memory, and has at most 49152\n  launched at: " in text
    assert "\n  variables: s of 400000 bytes\n  what to do: use dynamic shared memory" in text

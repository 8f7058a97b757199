"""A kernel that calls C++. Arguments: "wild" writes past the end of an array, "assert" fails an assertion, and "debug"
compiles for a debugger."""

import sys

import numpy as np
from numba import cuda
from numba.cuda import autolink

SOURCE = """// Write a value into an array.
extern "C" __device__ int scatter(float *data, long long at, double value)
{
    if (at == 0)
        printf("scatter: the first value is %g\\n", value);
    assert(at >= 0);
    data[at] = value;
    return at;
}
"""


class Scatter(autolink.DeviceCallable):
    def __numba_cuda_call__(self, data, at, value):
        return autolink.Extern("scatter", returns="int32")

    def __numba_cuda_link__(self, data, at, value):
        return autolink.CUDASource(SOURCE, name="scatter.cu")


scatter = Scatter()
MODE = sys.argv[1] if len(sys.argv) > 1 else ""
OFFSET = {"wild": 1 << 28, "assert": -1000}.get(MODE, 0)
OPTIONS = {"debug": True, "opt": False} if MODE == "debug" else {"lineinfo": True}


@cuda.jit(**OPTIONS)
def kernel(data, offset):
    i = cuda.grid(1)
    if i < data.size:
        scatter(data, i + offset, data[i] * 2)


if __name__ == "__main__":
    data = cuda.to_device(np.arange(64, dtype=np.float32))
    kernel[1, 64](data, OFFSET)
    cuda.synchronize()
    print("sum", data.copy_to_host().sum())

"""A kernel that calls C++ with a race: each thread reads what its neighbour writes."""

import numpy as np
from numba import cuda
from numba.cuda import autolink

SOURCE = """
extern "C" __device__ void add_neighbour(float *values, int i, long long count)
{
    float neighbour = values[(i + 1) % count];
    values[i] += neighbour;
}
"""
COUNT = 64


class AddNeighbour(autolink.DeviceCallable):
    def __numba_cuda_call__(self, values, i, count):
        return autolink.Extern("add_neighbour", returns="void")

    def __numba_cuda_link__(self, values, i, count):
        return autolink.CUDASource(SOURCE, name="neighbour.cu")


add_neighbour = AddNeighbour()


@cuda.jit(lineinfo=True)
def kernel(data):
    i = cuda.threadIdx.x
    values = cuda.shared.array(COUNT, "float32")
    values[i] = data[i]
    cuda.syncthreads()
    add_neighbour(values, i, COUNT)
    cuda.syncthreads()
    data[i] = values[i]


if __name__ == "__main__":
    data = cuda.to_device(np.arange(COUNT, dtype=np.float32))
    kernel[1, COUNT](data)
    print(data.copy_to_host()[:4])

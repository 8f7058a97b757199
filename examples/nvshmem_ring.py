# SPDX-License-Identifier: BSD-2-Clause
"""A sum over GPUs, around a ring: kernels put their data into the memory of the next GPU with NVSHMEM.

NVSHMEM's device functions come from its headers. They have state, which NVSHMEM's host library sets in each module that
is loaded: so there is one translation unit in a kernel (`unit=`), and a setup callback. The kernel calls `shmem`, and
knows nothing of that.

    pip install nvidia-nvshmem-cu13 nvshmem4py-cu13 cupy-cuda13x
    python examples/nvshmem_ring.py

There is one process for each GPU. With one GPU, the ring leads from it to itself. Without a GPU the kernel is linked.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys

import numpy as np
from _frontend import cuda
from _run import compare, show
from cuda.pathfinder import find_nvidia_header_directory
from numba.cuda import autolink

INCLUDE = find_nvidia_header_directory("nvshmem")
if INCLUDE is None:
    print("This example needs NVSHMEM: pip install nvidia-nvshmem-cu13 nvshmem4py-cu13 cupy-cuda13x")
    sys.exit(2)

BLOCKS, THREADS, CHUNK = 16, 256, 1024
# What NVSHMEM calls the types that it puts.
NAMES = {"float32": "float", "float64": "double", "int32": "int32", "int64": "int64"}
HEADERS = """
#define __NVSHMEM_NUMBA_SUPPORT__  // the unit has NVSHMEM's state, and needs no library of it
#include <nvshmem.h>
#include <nvshmemx.h>
"""


def attach(module):
    """Set NVSHMEM's state in a module that was loaded."""
    import nvshmem.core

    nvshmem.core.library_init(nvshmem.core.NvshmemKernelObject.from_obj(module))


def detach(module):
    """Forget a module before it is unloaded, unless NVSHMEM has ended."""
    import nvshmem.core

    if is_running:
        nvshmem.core.library_finalize(nvshmem.core.NvshmemKernelObject.from_obj(module))


is_running = False


def source(code):
    return autolink.CUDASource(
        HEADERS + code, include_paths=[str(INCLUDE)], unit="nvshmem", setup_callback=attach, teardown_callback=detach
    )


class Shmem(autolink.DeviceCallable):
    """NVSHMEM for kernels. A processing element (PE) is a process with a GPU."""

    @autolink.device_method
    def my_pe(self):
        """Return the number of this PE."""
        return autolink.Extern("shmem_my_pe", returns="int32")

    @my_pe.link
    def _(self):
        return source('extern "C" __device__ int shmem_my_pe() { return nvshmem_my_pe(); }\n')

    @autolink.device_method
    def n_pes(self):
        """Return how many PEs there are."""
        return autolink.Extern("shmem_n_pes", returns="int32")

    @n_pes.link
    def _(self):
        return source('extern "C" __device__ int shmem_n_pes() { return nvshmem_n_pes(); }\n')

    @autolink.device_method
    def put(self, target, data, count, signals, index, pe):
        """Copy *data* to the *target* of another PE with all threads of the block, and then set its signal."""
        if target.dtype != data.dtype or str(data.dtype) not in NAMES:
            raise TypeError(f"target and data: got {target} and {data}, expected arrays of one of {list(NAMES)}")
        args = {"target": None, "data": None, "count": "int64", "signals": None, "index": "int64", "pe": "int32"}
        return autolink.Extern(f"shmem_put_{data.dtype}", args=args)

    @put.link
    def _(self, target, data, count, signals, index, pe):
        T = autolink.cxx_type(data.dtype)
        return source(f"""
            extern "C" __device__ void shmem_put_{data.dtype}(
                {T}* target, const {T}* data, long long count, unsigned long long* signals, long long index, int pe) {{
                nvshmemx_{NAMES[str(data.dtype)]}_put_signal_block(
                    target, data, count, reinterpret_cast<uint64_t*>(signals + index), 1, NVSHMEM_SIGNAL_SET, pe);
            }}
            """)

    @autolink.device_method
    def wait(self, signals, index):
        """Wait with all threads of the block until a signal of this PE is set."""
        return autolink.Extern("shmem_wait", args={"signals": None, "index": "int64"})

    @wait.link
    def _(self, signals, index):
        return source("""
            extern "C" __device__ void shmem_wait(unsigned long long* signals, long long index) {
                if (threadIdx.x == 0)
                    nvshmem_signal_wait_until(reinterpret_cast<uint64_t*>(signals + index), NVSHMEM_CMP_EQ, 1);
                __syncthreads();
            }
            """)


shmem = Shmem()


@cuda.jit
def ring_sum(total, own, received, signals):
    """Add up the *own* arrays of all PEs. Each block has a chunk, which goes around the ring, through *received* and
    *signals* in symmetric memory."""
    block = cuda.blockIdx.x
    right = (shmem.my_pe() + 1) % shmem.n_pes()
    for step in range(received.shape[0]):
        data = own[block] if step == 0 else received[step - 1, block]
        shmem.put(received[step, block], data, data.size, signals[step], block, right)
        shmem.wait(signals[step], block)
        for i in range(cuda.threadIdx.x, data.size, cuda.blockDim.x):
            total[block, i] += received[step, block, i]
    # Data may still be on its way to others when a block ends: the host waits for all PEs.


SIGNATURE = "void(float32[:,::1], float32[:,::1], float32[:,:,::1], uint64[:,::1])"


def link():
    return autolink.build(ring_sum, SIGNATURE, cc=(9, 0))


def values_of(pe):
    return np.random.default_rng(pe).random((BLOCKS, CHUNK), dtype=np.float32)


def work(pe, count, unique_id, results):
    """Be one processing element."""
    global is_running
    import nvshmem.core
    from cuda.core import Device
    from nvshmem.bindings import uniqueid, uniqueid_dtype

    cuda.select_device(pe)
    device = Device(pe)
    device.set_current()
    found = uniqueid.from_data(np.frombuffer(unique_id, uniqueid_dtype).copy())
    nvshmem.core.init(device=device, uid=found, rank=pe, nranks=count, initializer_method="uid")
    is_running = True
    stream = device.create_stream()
    received = nvshmem.core.array((count, BLOCKS, CHUNK), "float32")
    signals = nvshmem.core.array((count, BLOCKS), "uint64")
    received[:], signals[:] = 0, 0
    own, total = cuda.to_device(values_of(pe)), cuda.to_device(np.zeros((BLOCKS, CHUNK), np.float32))
    cuda.synchronize()
    nvshmem.core.barrier_all(stream)  # all signals are 0 before the first is set
    stream.sync()
    ring_sum[BLOCKS, THREADS](total, own, received, signals)
    cuda.synchronize()
    nvshmem.core.barrier_all(stream)
    stream.sync()
    results.put((pe, total.copy_to_host()))
    nvshmem.core.free_array(received)
    nvshmem.core.free_array(signals)
    is_running = False
    nvshmem.core.finalize()


def launch(count):
    os.environ.setdefault("NVSHMEM_REMOTE_TRANSPORT", "none")  # all GPUs are in this machine
    os.environ.setdefault("NVSHMEM_SYMMETRIC_SIZE", str(64 << 20))
    try:
        import cupy  # noqa: F401  (NVSHMEM makes its arrays)
        import nvshmem.core
        from nvshmem.bindings import uniqueid_dtype
    except ImportError as error:
        print(f"This example needs NVSHMEM's host library: pip install nvshmem4py-cu13 cupy-cuda13x ({error})")
        sys.exit(2)
    # Whoever makes the ID serves the others at the start, so this process outlives them.
    unique_id = ctypes.string_at(nvshmem.core.get_unique_id().ptr, uniqueid_dtype.itemsize)
    start = multiprocessing.get_context("spawn")
    results = start.Queue()
    workers = [start.Process(target=work, args=(pe, count, unique_id, results)) for pe in range(count)]
    for worker in workers:
        worker.start()
    totals = dict(results.get(timeout=300) for _ in workers)
    for worker in workers:
        worker.join()
    expected = sum(map(values_of, range(count)))
    return all([compare(f"the sum on GPU {pe} of {count}", totals[pe], expected, 1e-6) for pe in sorted(totals)])


def main():
    if cuda.is_available():
        print("On the GPU, compared with NumPy:")
        return 0 if launch(len(cuda.gpus)) else 1
    print("No GPU was found, so the kernel is linked for sm_90:")
    show("a sum around a ring", link())
    return 0


if __name__ == "__main__":
    sys.exit(main())

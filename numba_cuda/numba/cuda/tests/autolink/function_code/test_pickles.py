# SPDX-License-Identifier: BSD-2-Clause
"""Kernels and dispatchers with external code in other processes."""

from __future__ import annotations

import pytest
from kernel_cache_support import run_script

PICKLED_KERNEL = """
import pickle, sys
from numba.cuda import dispatcher
from numba.cuda.autolink.compilation import context as target
from numba.cuda.cudadrv import nvvm
from numba.cuda.cudadrv.external_code.link import checked_link
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
class WithCallbacks(Add):
    def __init__(self, amount, on_load):
        self.amount, self.on_load = amount, on_load
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("add", self.amount), setup_callback=self.on_load)
if sys.argv[1] == "write":
    add = WithCallbacks(3, lambda module: "loaded")
    def function(x): x[0] = add(x[1])
    with target.without_device((9, 0, "a")):
        kernel = dispatcher._Kernel(function, (types.int32[::1],), lto=True)
        kernel._codelibrary.get_cubin()
    kernel = pickle.loads(pickle.dumps(kernel))
    with open(sys.argv[2], "wb") as file:
        pickle.dump(kernel, file)
else:
    nvrtc_processes.run_in_child = nvvm.compile_ir = checked_link.link_here = None
    with open(sys.argv[2], "rb") as file:
        kernel = pickle.load(file)
library = kernel._codelibrary
with target.without_device((9, 0, "a")):
    cubin = bytes(library.get_cubin().code)
    print(library._entry_name.encode() in cubin, len(cubin), [setup(None) for setup in library._setup_functions])
    print([str(site.call) for site in library.function_code.call_sites], "define" in kernel.inspect_llvm())
"""


@pytest.mark.thorough
def test_a_kernel_can_be_pickled_to_another_process(tmp_path):
    printed = run_script(tmp_path, PICKLED_KERNEL, "write", str(tmp_path / "kernel.pickle"))
    assert "['loaded']" in printed and printed.startswith("True")
    assert run_script(tmp_path, PICKLED_KERNEL, "read", str(tmp_path / "kernel.pickle")) == printed


SPAWN = """
import multiprocessing
def build(kernel):
    linked = autolink.build(kernel, "void(int32[::1])", cc=(9, 0))
    return [str(each) for each in linked.inputs], len(linked.code)
add = Add(3)
declared = cuda.declare_device("declared", "int32(int32)", abi="c", link=cuda.CUSource(code("declared", 2)))
named = cuda.declare_device("named", "int32(int32)", abi="c")
@cuda.jit(device=True)
def below(x): return add(x)
@cuda.jit(link=[cuda.CUSource(code("named", 7))])
def kernel(x): x[0] = below(x[1]) + declared(x[2]) + named(x[3])
if __name__ == "__main__":
    here = build(kernel)
    assert len(here[0]) == 3
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(build, (kernel,))
    assert there[1] == here[1], (here, there)
    print(len(there[0]))
"""


def test_a_dispatcher_can_be_sent_to_a_spawned_process(tmp_path):
    assert run_script(tmp_path, SPAWN) == "3\n"


CLOUDPICKLED = """
import pickle, sys
from numba.cuda import cloudpickle
if sys.argv[1] == "write":
    class Local(Add): pass
    def make():
        add = Local(3)
        declared = cuda.declare_device("declared", "int32(int32)", abi="c", link=cuda.CUSource(code("declared", 2)))
        @cuda.jit
        def kernel(x): x[0] = add(x[1]) + declared(x[2])
        return kernel
    with open(sys.argv[2], "wb") as file:
        file.write(cloudpickle.dumps(make()))
with open(sys.argv[2], "rb") as file:
    kernel = pickle.load(file)
print(len(autolink.build(kernel, "void(int32[::1])", cc=(9, 0)).inputs))
"""


@pytest.mark.thorough
def test_a_dispatcher_can_be_sent_by_cloudpickle(tmp_path):
    assert run_script(tmp_path, CLOUDPICKLED, "write", str(tmp_path / "kernel.pickle")) == "2\n"
    assert run_script(tmp_path, CLOUDPICKLED, "read", str(tmp_path / "kernel.pickle")) == "2\n"


SPAWN_AND_LAUNCH = """
import multiprocessing
def launch(kernel):
    x = cuda.to_device(np.array([0, 10, 20, 30], dtype=np.int32))
    kernel[1, 1](x)
    return int(x.copy_to_host()[0])
def launch_compiled(kernel):
    from numba.cuda.cudadrv import driver, nvvm
    from numba.cuda.cudadrv.external_code.link import checked_link
    from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
    nvrtc_processes.run_in_child = nvvm.compile_ir = checked_link.link_here = None
    x = cuda.to_device(np.array([0, 10, 20, 30], dtype=np.int32))
    kernel.launch((x,), (1, 1, 1), (1, 1, 1), driver._to_core_stream(0))
    return int(x.copy_to_host()[0])
add = Add(3)
declared = cuda.declare_device("declared", "int32(int32)", abi="c", link=cuda.CUSource(code("declared", 2)))
@cuda.jit
def kernel(x): x[0] = add(x[1]) + declared(x[2])
if __name__ == "__main__":
    print(launch(kernel))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(launch, (kernel,)))
        print(pool.apply(launch_compiled, (next(iter(kernel.overloads.values())),)))
"""


@pytest.mark.gpu
def test_a_spawned_process_launches_what_it_is_sent(tmp_path):
    assert run_script(tmp_path, SPAWN_AND_LAUNCH).split() == ["35", "35", "35"]

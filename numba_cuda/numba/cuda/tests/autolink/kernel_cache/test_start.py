# SPDX-License-Identifier: BSD-2-Clause
"""What a new process does, and above all does not do, for kernels that are in the cache."""

from __future__ import annotations

import json

import pytest
from kernel_cache_support import run_script

# The kernels of a program, by name: with external code, with a callback, and with an object whose answer depends
# on what setting the compiler up imports.
SCRIPT = """
import json, sys
from numba.cuda.autolink.compilation.context import without_device
from numba.cuda.descriptor import cuda_target

context = cuda_target.target_context
refreshes = []
refresh = context.refresh
context.refresh = lambda: (refreshes.append(1), refresh())

class Prepared(Add):
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("add", self.amount), setup_callback=said.append)
class Late(Add):
    def __numba_cuda_link__(self, x):
        from numba.cuda import fp16_is_imported
        return super().__numba_cuda_link__(x)
class LateModule:
    def __getattr__(self, name):
        if name == "fp16_is_imported" and "numba.cuda.fp16" in sys.modules:
            return True
        raise AttributeError(name)
cuda.__getattr__ = LateModule().__getattr__

add, prepared, late = Add(3), Prepared(4), Late(5)
@cuda.jit(cache=True)
def linked(x): x[0] = add(x[1])
@cuda.jit(cache=True)
def with_callback(x): x[0] = prepared(x[1])
@cuda.jit(cache=True)
def depends(x): x[0] = late(x[1])
@cuda.jit(cache=True)
def names_fp16(x): x[0] = int(cuda.fp16.hsqrt(np.float16(x[1])))

done = {}
for name in sys.argv[1:]:
    kernel = globals()[name]
    refreshes.clear()
    with without_device((9, 0, "a")):
        compiled = kernel.compile((types.int32[::1],))
        compiled.bind()
    done[name] = bool(kernel.stats.cache_hits), bool(refreshes)
libraries = open("/proc/self/maps").read() if sys.platform == "linux" else ""
print(json.dumps([done, list(sys.modules), "libnvvm" in libraries]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A program whose kernels are in the cache."""
    folder = tmp_path_factory.mktemp("start")
    done, modules, _ = run(folder, "names_fp16", "linked", "with_callback", "depends")
    assert not any(was_cached for was_cached, _ in done.values())
    assert "numba.cuda.fp16" in modules
    return folder


def run(folder, *kernels):
    return json.loads(run_script(folder, SCRIPT, *kernels, CACHE=str(folder)))


def test_a_kernel_that_is_found_sets_no_compiler_up(folder):
    done, modules, libnvvm_is_loaded = run(folder, "linked", "with_callback")
    assert done == {name: [True, False] for name in ("linked", "with_callback")}
    compilers = {"numba.cuda.fp16", "numba.cuda.cudaimpl", "numba.cuda.np.arrayobj"}
    ours = {
        "autolink.builds.ahead_of_time",
        "autolink.frontends.numba_cuda.compiler_passes",
        "autolink.builds.compiled_kernels",
    }
    of_linking = {"link.checked_link", "explain"}
    unneeded = compilers | {f"numba.cuda.{name}" for name in ours}
    unneeded |= {f"numba.cuda.cudadrv.external_code.{name}" for name in of_linking}
    assert not unneeded & set(modules)
    assert not libnvvm_is_loaded


def test_what_setting_the_compiler_up_changes_is_found_in_either_order(folder):
    """What a hook answers, and what a name of numba.cuda means."""
    done, modules, _ = run(folder, "depends", "names_fp16")
    assert done == {"depends": [True, True], "names_fp16": [True, True]}
    assert "numba.cuda.fp16" in modules
    assert run(folder, "names_fp16")[0] == {"names_fp16": [True, True]}

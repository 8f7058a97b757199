# SPDX-License-Identifier: BSD-2-Clause
"""What differs from numba-cuda because numba-cuda-mlir is so without this project, as docs/second_front_end.md says."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from front_ends import front_end_named
from numba import cuda

SCRIPT = """
import collections
import enum
import json
from pathlib import Path
import numpy as np
import numba_cuda_mlir
from numba_cuda_mlir import caching, cuda, tools
from numba_cuda_mlir.extending import intrinsic
from numba_cuda_mlir.numba_cuda import types

@intrinsic
def requests(context, x):
    def codegen(context, builder, signature, arguments):
        return context.get_function(None, signature)(builder, arguments)
    return types.float32(types.float32), codegen

@intrinsic
def compiles(context, x):
    def codegen(context, builder, signature, arguments):
        return context.compile_internal(builder, lambda x: x, signature, arguments)
    return types.float32(types.float32), codegen

FLOATS, facts = "void(float32[::1], float32[::1])", {}

def fails(called, *args, **options):
    try:
        called(*args, **options)
        return ""
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

facts["cuda.compile"] = fails(cuda.compile, lambda x: x + 1, "int32(int32)", device=True, cc=(9, 0))
tools._cached_cc = (9, 0)
facts["cuda.compile_all"] = fails(cuda.compile_all, lambda x: x + 1, "int32(int32)", device=True, cc=(9, 0))

@cuda.jit(device=True)
def one(x):
    return x + 1

@cuda.jit(device=True)
def two(x):
    return x * 2

@cuda.jit
def loops(r, x):
    for f in both:
        r[0] = f(x[0])

both = (one, two)
facts["a loop over a tuple of functions"] = fails(loops.compile, FLOATS)

@cuda.jit(device=True, inline="never")
def not_inlined(x):
    return x + 3

@cuda.jit
def calls(r, x):
    r[0] = one(x[0]) + not_inlined(x[0])

compiled = calls.compile(FLOATS)
module = compiled.metadata["mlir_module_str"]
facts["functions that are called"] = [name for name in ("one", "not_inlined") if name in module]
stored = caching.MLIRCacheImpl.reduce(None, compiled)
facts["what the cache stores of callbacks"] = [name for name in stored if "callback" in name or "cooperative" in name]
facts["what shows the loaded code"] = [name for name in dir(calls._c) if not name.startswith("__")]

runtime = Path(numba_cuda_mlir.__file__).parent / "memory_management"
facts["a runtime that can be linked"] = [path.name for path in runtime.glob("nrt.cu*")]

record = np.dtype([("a", "i4"), ("b", "f8")], align=True)

@cuda.jit
def records(r, x):
    local = cuda.local.array(2, record)
    local[1].a = 3
    r[0] = local[1].a

facts["local.array of records"] = fails(records.compile, FLOATS)

class Color(enum.IntEnum):
    RED = 1

Pair = collections.namedtuple("Pair", "a b")

@cuda.jit
def stores(r, x):
    r[0] = Color.RED

@cuda.jit
def makes(r, x):
    r[0] = Pair(x[0], x[1]).a

facts["an enumerator that is stored"] = fails(stores.compile, FLOATS)
facts["a named tuple that is made"] = fails(makes.compile, FLOATS)

class Own(types.Type):
    def __init__(self):
        super().__init__(name="Own")

@cuda.jit
def takes(r, own):
    r[0] = 1

facts["an argument of a type without data"] = fails(takes.compile, (types.float32[::1], Own()))

@cuda.jit
def nothing(r, n):
    r[0] = 1

compiled = nothing.compile((types.float32[::1], types.none))
launched = b".text." + compiled.metadata["func_name"].encode() + bytes(1)
facts["the name that is launched"] = launched in compiled.metadata["cubin"]
compiled = nothing.compile(FLOATS, abi_info={"abi_name": "mine"})
facts["the name that was asked for"] = compiled.metadata["func_name"] == "mine"
@cuda.jit
def by_request(r, x):
    r[0] = requests(x[0])

@cuda.jit
def by_compiling(r, x):
    r[0] = compiles(x[0])

facts["an intrinsic that requests a function"] = fails(by_request.compile, FLOATS)
facts["an intrinsic that compiles a function"] = fails(by_compiling.compile, FLOATS)
facts["version"] = numba_cuda_mlir.__version__
facts["the simulator"] = fails(__import__, "numba_cuda_mlir.simulator")
facts["Numba"] = "numba" in __import__("sys").modules
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts():
    front_end_named("numba-cuda-mlir")
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK": "0"}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_this_project(facts):
    if not cuda.is_available():
        assert "CudaSupportError" in facts["cuda.compile"]
    assert "NotImplementedError" in facts["cuda.compile_all"]
    assert facts["functions that are called"] == ["not_inlined"]
    assert facts["what the cache stores of callbacks"] == []
    assert facts["a runtime that can be linked"] == []
    assert facts["what shows the loaded code"] == []
    assert "getiter" in facts["a loop over a tuple of functions"]
    assert "invalid memref element type" in facts["local.array of records"]
    assert facts["an enumerator that is stored"] or facts["version"].startswith("0.5.")
    assert facts["a named tuple that is made"]
    assert "KeyError" in facts["an argument of a type without data"]
    assert not facts["the name that is launched"], "a kernel with a parameter that is None can be launched"
    assert not facts["the name that was asked for"], "kernels have a name that can be chosen"
    assert "has no attribute 'get_function'" in facts["an intrinsic that requests a function"]
    assert "has no attribute 'compile_internal'" in facts["an intrinsic that compiles a function"]
    assert "ModuleNotFoundError" in facts["the simulator"]
    assert facts["Numba"] is False

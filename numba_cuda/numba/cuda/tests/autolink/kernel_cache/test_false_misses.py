# SPDX-License-Identifier: BSD-2-Clause
"""What changes no code is no reason to build a kernel again: times, folders, the order of things."""

from __future__ import annotations

import os
import shutil

import pytest
from kernel_cache_support import Program

PARTS = """
from numba.cuda.extending import overload, typeof_impl
from helpers import amount
HERE = os.path.dirname(os.path.abspath(__file__))
class Keyed(Add):
    def __numba_cuda_link_key__(self, x):
        return {"amount", self.amount}
    def __numba_cuda_link__(self, x):
        source = '#include "amount.cuh"\\nextern "C" __device__ int add(int x) { return x + AMOUNT; }'
        return autolink.CUDASource(source, include_paths=[HERE])
add = Keyed(amount)
def more(x): pass
def declare(amount):
    @overload(more, target="cuda")
    def ol_more(x): return lambda x: x + amount
declare(amount)
linked = cuda.declare_device("linked", "int32(int32)", abi="c", link=os.path.join(HERE, "linked.cu"))
named = cuda.declare_device("named", "int32(int32)", abi="c")
"""
KERNELS = """
from numba import cuda
from parts import *
@cuda.jit(cache=True, link=[os.path.join(HERE, "named.cu")])
def one(x):
    x[0] = add(x[1]) + more(x[1]) + linked(x[1]) + named(x[1])
@cuda.jit(cache=True)
def two(x):
    x[0] = add(x[1]) - linked(x[1])
"""
FILES = {
    "helpers.py": "amount = 3\n",
    "amount.cuh": "#define AMOUNT 4\n",
    "linked.cu": '#include "amount.cuh"\nextern "C" __device__ int linked(int x) { return x * AMOUNT; }\n',
    "named.cu": '#include "amount.cuh"\nextern "C" __device__ int named(int x) { return x - AMOUNT; }\n',
}


@pytest.fixture(scope="module")
def built(tmp_path_factory, servers):
    """A program whose kernels are in its cache."""
    folder = tmp_path_factory.mktemp("built") / "program"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    program = Program(folder, servers).write(PARTS, KERNELS)
    assert [run.status for run in program.runs("one", "two")] == ["built", "built"]
    return program


def from_an_image(files):
    for path in files:
        os.utime(path, (0, 0))


def installed_again(files):
    for path in files:
        text = path.read_text()
        path.unlink()
        path.write_text(text)


WAYS = {
    "files of an image": (from_an_image, "", ("one", "two")),
    "files installed again, in another folder": (
        installed_again,
        "os.chdir('/')\n",
        ("two", "one"),
    ),
    "one kernel alone": (from_an_image, "", ("two",)),
}


@pytest.mark.parametrize("moved", [False, True], ids=["the same folder", "another folder"])
@pytest.mark.parametrize("change, before, names", WAYS.values(), ids=WAYS)
def test_it_is_loaded(built, servers, tmp_path, moved, change, before, names):
    program = built
    if moved:
        program = Program(tmp_path / "other", servers)
        shutil.copytree(built.folder, program.folder, ignore=shutil.ignore_patterns("cache", "numba", "__pycache__"))
    change([path for path in program.folder.iterdir() if path.is_file()])
    cache = f"os.environ['NUMBA_CUDA_AUTOLINK_CACHE_DIR'] = {str(built.folder / 'cache')!r}\n"
    runs = program.runs(*names, before=cache + before)
    assert [run.status for run in runs] == ["loaded" for _ in names], runs[0].log


def test_a_relative_path_in_link_is_not_in_the_key(servers, tmp_path):
    runs = []
    for folder in tmp_path / "one", tmp_path / "two":
        folder.mkdir()
        for name in "amount.cuh", "named.cu":
            (folder / name).write_text(FILES[name])
        kernels = KERNELS[: KERNELS.rindex("@")].replace('os.path.join(HERE, "named.cu")', '"named.cu"')
        program = Program(folder, servers).write(
            "add = Add(3)\nnamed = cuda.declare_device('named', 'int32(int32)', abi='c')",
            kernels.replace(" + more(x[1]) + linked(x[1])", ""),
        )
        shared = f"os.environ['NUMBA_CUDA_AUTOLINK_CACHE_DIR'] = {str(tmp_path / 'cache')!r}\n"
        runs += program.runs("one", before=f"os.chdir({str(folder)!r})\n{shared}")
    assert [run.status for run in runs] == ["built", "loaded"], runs[1].log


def test_an_attribute_is_not_the_global_of_its_name(servers, tmp_path):
    """As in a script whose kernel uses ``threadIdx.x``, and whose array on the GPU is ``x``."""
    program = Program(tmp_path, servers).write(
        "add = Add(3)",
        """
        import threading
        from numba import cuda
        from parts import *
        x = threading.Lock()
        @cuda.jit(cache=True)
        def kernel(data):
            data[0] = add(data[1]) + cuda.threadIdx.x
        """,
    )
    runs = [program.run(), program.run()]
    assert [run.status for run in runs] == ["built", "loaded"], runs[1].log

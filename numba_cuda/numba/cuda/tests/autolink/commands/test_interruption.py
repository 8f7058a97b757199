# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C ends a command at once, while compilers run in it and in its child processes."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# It compiles for longer than the test waits: four million types. The header has it compiled in another process.
KERNELS = """
from numba import cuda
from numba.cuda import autolink

SLOW = '''
#include <cuda_fp16.h>
template <int N, int P> struct T {
    struct t { typename T<N - 1, 2 * P>::t x; typename T<N - 1, 2 * P + 1>::t y; };
};
template <int P> struct T<0, P> { struct t { int v; }; };
extern "C" __device__ int NAME(int x) { return x + sizeof(typename T<17, 1>::t); }
'''

class Slow(autolink.DeviceCallable):
    def __init__(self, name):
        self.name = name
    def __numba_cuda_call__(self, x):
        return autolink.Extern(self.name, returns=x)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(SLOW.replace("NAME", self.name), name=f"{self.name}.cu")

one, two = Slow("one"), Slow("two")

@cuda.jit
def kernel(x):
    x[0] = one(x[0]) + two(x[0])
"""


def children_of(number):
    """Return the processes that a process has started to compile in: other programs may run while it starts."""
    tasks = Path(f"/proc/{number}/task")
    children = [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    return [int(child) for child in children if b"child_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def runs(number):
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_interrupted_build_ends_with_its_children(tmp_path):
    (tmp_path / "slow.py").write_text(KERNELS)
    command = ["build", "slow.py:kernel", "--sig", "void(int32[::1])", "--cc", "9.0", "-o", "slow.cubin"]
    process = subprocess.Popen(
        [sys.executable, "-m", "numba.cuda.autolink", *command],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_CUDA_AUTOLINK_JOBS": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The tests may run in the background of a shell, where SIGINT is ignored.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        children = []
        while process.poll() is None and not children:  # until one compiles
            time.sleep(0.05)
            with contextlib.suppress(OSError):  # a thread that ends meanwhile
                children = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        printed = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, *printed) == (130, "", "numba-cuda-autolink: interrupted\n")
    assert children
    for child in children:
        for _ in range(100):
            if runs(child):
                time.sleep(0.05)
        assert not runs(child)
    assert not (tmp_path / "slow.cubin").exists()


@pytest.mark.thorough
def test_an_interrupted_prebuild_ends_with_its_workers_and_leaves_nothing(tmp_path):
    """While they compile, and hold locks."""
    (tmp_path / "slow.py").write_text(KERNELS)
    listed = [{"kernel": "slow:kernel", "signature": f"void({t}[::1])", "cc": "9.0"} for t in ("int32", "int64")]
    (tmp_path / "jobs.json").write_text(json.dumps({"format": 1, "path": [str(tmp_path)], "jobs": listed}))
    temporary, cache = tmp_path / "temporary", tmp_path / "cache"
    temporary.mkdir()
    own = {"TMPDIR": str(temporary), "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(cache), "NUMBA_CUDA_AUTOLINK_JOBS": "2"}
    process = subprocess.Popen(
        [sys.executable, "-m", "numba.cuda.autolink", "prebuild", "jobs.json"],
        cwd=tmp_path,
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while process.poll() is None and not list(cache.glob("locks/*")):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        printed = process.communicate(timeout=120)
        with pytest.raises(ProcessLookupError):
            for _ in range(200):
                os.killpg(process.pid, 0)
                time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, *printed) == (130, "", "numba-cuda-autolink: interrupted\n")
    left = [*cache.glob("locks/*"), *cache.glob("tmp/*"), *temporary.iterdir()]
    assert left == []

# SPDX-License-Identifier: BSD-2-Clause
"""Scripts that build many kernels: without a guard, and interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

# Each kernel is a closure, and calls an object of a class of __main__ that shares its program with others.
_KERNELS = """
import json, os, sys
from numba.cuda import autolink

class Scale(autolink.DeviceCallable):
    def __init__(self, factor):
        self.factor = factor
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"scale_{self.factor}", returns=x)
    def __numba_cuda_link_key__(self, x):
        return self.factor
    def __numba_cuda_link__(self, x):
        with open(os.environ["GENERATED"], "a") as log:
            print(self.factor, file=log)
        name = f"scale_{self.factor}"
        return autolink.CUDASource(f'extern "C" __device__ float {name}(float x) {{ return {self.factor} * x; }}')

def scaling(scale, number):
    def kernel(x):
        x[0] = scale(x[0]) + number
    return kernel

scales = [Scale(factor) for factor in range(2, 2 + min(10, int(os.environ["KERNELS"]) // 2))]
jobs = [
    (scaling(scales[number % len(scales)], number), "void(float32[::1])", (9, 0))
    for number in range(int(os.environ["KERNELS"]))
]
"""

_BUILD = "built = autolink.build_many(jobs)"
_PRINT = """
if __name__ == "__main__":
    print("\\n" + json.dumps([each.code.hex() for each in built]))
"""


@pytest.fixture
def start(tmp_path):
    """Starts a script of the kernels above and *code*, in a process group of its own."""

    def started(code, kernels):
        script = tmp_path / "script.py"
        script.write_text(_KERNELS + textwrap.dedent(code) + _PRINT)
        cache = str(tmp_path / "cache")
        own = {"NUMBA_CUDA_AUTOLINK_CACHE_DIR": cache, "GENERATED": str(tmp_path / "generated")}
        env = {**os.environ, **own, "KERNELS": str(kernels), "NUMBA_CUDA_AUTOLINK_JOBS": "2"}
        out = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, str(script)], env=env, stdout=out, stderr=out, text=True, start_new_session=True
        )

    return started


@pytest.mark.counted
def test_functions_closures_and_classes_of_a_script_are_jobs(start, tmp_path):
    """They need no guard: the script is not run again."""
    process = start(_BUILD, kernels=6)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    codes = json.loads(out.strip().splitlines()[-1])
    assert len(codes) == len(set(codes)) == 6
    assert set((tmp_path / "generated").read_text().split()) == {"2", "3", "4"}


def wait_for_the_end_of_all(process):
    """Wait until no process of the group of *process* is left: `multiprocessing` has one that cleans up last."""
    with pytest.raises(ProcessLookupError):
        for _ in range(600):
            os.killpg(process.pid, 0)
            time.sleep(0.05)


@pytest.mark.thorough
@pytest.mark.counted
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_script_that_is_ended_leaves_no_process_and_is_continued(number, start, tmp_path):
    process = start(_BUILD, kernels=400)
    generated = tmp_path / "generated"
    while not generated.exists() or len(generated.read_text().split()) < 10:
        assert process.poll() is None
        time.sleep(0.05)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, err = process.communicate(timeout=120)  # which ends when no process has the pipes open any more
    assert process.returncode != 0 and err.count("KeyboardInterrupt") == (number == signal.SIGINT), err
    wait_for_the_end_of_all(process)
    if number == signal.SIGINT:
        assert not list((tmp_path / "cache").glob("locks/*")) and not list((tmp_path / "cache").glob("tmp/*"))
    process = start(_BUILD, kernels=20)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert set(map(int, generated.read_text().split())) == set(range(2, 12))


def workers(group):
    """The worker processes in the process group *group*."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            is_member = int((folder / "stat").read_text().rpartition(")")[2].split()[2]) == group
            if is_member and b"spawn_main" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.thorough
@pytest.mark.parametrize("delay", [0, 0.3, 0.6])
def test_workers_that_are_interrupted_while_they_start_print_nothing(start, delay):
    process = start(_BUILD, kernels=400)
    while len(workers(process.pid)) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(delay)  # they import
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0 and err.count("KeyboardInterrupt") == 1, err
    wait_for_the_end_of_all(process)

# SPDX-License-Identifier: BSD-2-Clause
"""Tests marked ``gpu`` launch kernels; where there is no GPU they are skipped, and say why."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

_MODE = "NUMBA_CUDA_AUTOLINK_CACHE"

# The tests leave no trace in the user's cache, and find none there. Set before anything reads it.
_cache_directory = tempfile.TemporaryDirectory(prefix="numba-cuda-autolink-tests-")
os.environ.setdefault("NUMBA_CUDA_AUTOLINK_CACHE_DIR", _cache_directory.name)


@pytest.fixture(autouse=True)
def counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test marked ``counted`` counts what is asked for or built, which verify mode asks for and builds again."""
    if not request.node.get_closest_marker("counted") or os.environ.get(_MODE) != "verify":
        yield
        return
    from numba.cuda.cudadrv.external_code.cache.store import reset_store

    monkeypatch.setenv(_MODE, "1")
    reset_store()
    yield
    monkeypatch.undo()
    reset_store()


@pytest.fixture(scope="session")
def driver_stub(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables for a process that wants to load the NVIDIA driver: where there is none, with a library of
    its name that says so of every call."""
    try:
        ctypes.CDLL("libcuda.so.1")
        return {}
    except OSError:
        pass
    if sys.platform != "linux" or shutil.which("gcc") is None:
        pytest.skip("there is no NVIDIA driver, and no gcc to make a stand-in for it")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "cuda.c").write_text(
        """
        #include <string.h>
        static int no_device(void) { return 100; }
        int cuInit(unsigned flags) { return 100; }
        int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
        int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long flags, int *status) {
            *function = strcmp(name, "cuDriverGetVersion") ? (void *)no_device : (void *)cuDriverGetVersion;
            if (status) *status = 0;
            return 0;
        }
        """
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "cuda.c", "-o", "libcuda.so.1"], cwd=folder, check=True)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]))
    return {"LD_LIBRARY_PATH": path}


def why_no_gpu() -> str | None:
    from numba import cuda

    if cuda.config.ENABLE_CUDASIM:
        return "runs on a GPU, not in the simulator"
    if not cuda.is_available():
        return (
            f"needs a GPU, and numba-cuda finds none: {str(cuda.cuda_error() or 'no device').strip().splitlines()[0]}"
        )
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = why_no_gpu() if marked else None
    if reason is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))

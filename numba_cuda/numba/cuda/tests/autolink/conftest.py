# SPDX-License-Identifier: BSD-2-Clause
"""Which tests run, and where they leave what they build.

Tests marked ``gpu`` launch kernels. Where there is no GPU, ``--emulate`` runs them, and them alone, in the emulator;
without it only those marked ``gpu(emulated=True)`` run there. `emulated_tests` lists those that cannot. Tests marked
``thorough`` repeat what another test does with more inputs: they run with ``--thorough``, which ``nox`` and the weekly
workflow pass.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator

import pytest
from emulated_tests import why_not_emulated

_MODE = "NUMBA_CUDA_AUTOLINK_CACHE"
_EMULATE = "NUMBA_CUDA_AUTOLINK_EMULATE"

# Tests neither read nor write the user's cache. Set before anything reads the variable.
_cache_directory = tempfile.TemporaryDirectory(prefix="numba-cuda-autolink-tests-")
os.environ.setdefault("NUMBA_CUDA_AUTOLINK_CACHE_DIR", _cache_directory.name)
# Errors name the pip that the shell finds, if it is that of this environment.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
# Numba colours its errors where colorama is installed, and tests compare texts.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough", action="store_true", help="also run the long trials: every type, every size, all random draws"
    )
    parser.addoption(
        "--emulate", action="store_true", help="run the tests that launch kernels, and run them on the CPU"
    )
    parser.addoption(
        "--draws", type=int, help="how many random programs or calls are drawn: by default few, with --thorough many"
    )
    parser.addoption("--damaged", type=int, help="how many damaged inputs test_damage links: 6, with --thorough 20,000")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of worker processes for ``-n auto``: none for one file or test, otherwise at most four."""
    if len(config.args) == 1 and (config.args[0].endswith(".py") or "::" in config.args[0]):
        return 0
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--emulate"):
        os.environ[_EMULATE] = "1"  # before numba.cuda is imported


@pytest.fixture(autouse=True)
def emulated_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that launches kernels has a device in the emulator where there is no GPU."""
    if not request.node.get_closest_marker("gpu") or why_no_gpu() is None:
        yield
        return
    from numba.cuda import autolink

    monkeypatch.setenv(_EMULATE, "1")  # for processes that it starts
    with autolink.emulated():
        yield


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Leave what is there before a module's tests, Numba above all, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether a test with many trials makes all of them."""
    return bool(request.config.getoption("--thorough"))


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
def servers() -> Iterator[list[subprocess.Popen[str]]]:
    """The processes that run the programs of `kernel_cache_support`."""
    from kernel_cache_support import start_servers  # imports numba.cuda, which may be emulated

    yield from start_servers()


@pytest.fixture(scope="session")
def driver_stub(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables for a process that loads the NVIDIA driver. Without a driver they lead to a library of its
    name whose calls report that there is no device."""
    try:
        ctypes.CDLL("libcuda.so.1")
        return {}
    except OSError:
        pass
    if sys.platform != "linux" or shutil.which("gcc") is None:
        pytest.skip("there is no NVIDIA driver, and no gcc to build a stand-in for it")
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
    """Return why tests cannot launch kernels here; ``None`` if they can."""
    from numba import cuda

    if cuda.config.ENABLE_CUDASIM:
        return "runs on a GPU, not in the simulator"
    if not cuda.is_available():
        return (
            f"needs a GPU, and numba-cuda finds none: {str(cuda.cuda_error() or 'no device').strip().splitlines()[0]}"
        )
    return None


def _why_no_emulation() -> str | None:
    """Return why this process cannot have an emulated device: without ``--emulate``, importing Numba loads NVIDIA's
    driver, where there is one."""
    from numba_cuda_autolink.emulated_driver import activation

    return None if activation._loaded is not None or not activation._is_loaded() else "it has loaded NVIDIA's driver"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--thorough"):
        long = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]
    marked = [item for item in items if item.get_closest_marker("gpu")]
    emulate = config.getoption("--emulate")
    if emulate:
        config.hook.pytest_deselected(items=[item for item in items if item not in set(marked)])
        items[:] = marked
    elif not marked or why_no_gpu() is None:
        return
    for item in marked:
        runs = emulate or (
            _why_no_emulation() is None and any(mark.kwargs.get("emulated") for mark in item.iter_markers("gpu"))
        )
        reason = why_not_emulated(item.nodeid) if runs else f"{why_no_gpu()}; --emulate runs it on the CPU"
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))

# SPDX-License-Identifier: BSD-2-Clause
"""What ``doctor`` tries in a process of its own, which a damaged library may end.

This module runs as a script, whose arguments are the names of the trials to run: the key of a function in `TRIALS`, and
its argument if it has one. It prints a line of JSON when a trial begins, and one with its result.
"""

# ruff: noqa: E402

from __future__ import annotations

import sys

_AT_START = frozenset(sys.modules)  # before Python searches the folder of a program

import faulthandler
import importlib
import json
import os
import re
import traceback
import warnings
from collections.abc import Callable
from typing import Any

NOT_FOUND, NOT_LOADED, NOT_USABLE = "not found", "cannot be loaded", "cannot be used"
_UNREADABLE = "Environment variable '"  # how Numba's warnings about variables begin
_unreadable: list[str] = []


def _import(module: str) -> str:
    """Import *module*. Return the error if that fails, or an empty text."""
    try:
        importlib.import_module(module)
    except Exception as error:
        if os.environ.get("NUMBA_CUDA_AUTOLINK_TRACEBACK") == "full":
            traceback.print_exc()
        return _describe(error)
    return ""


def _describe(error: BaseException) -> str:
    """Return an error in one line. NumPy's text begins with an empty one, and its cause says what is wrong."""
    while not f"{error}".partition("\n")[0] and error.__cause__:
        error = error.__cause__
    return f"{type(error).__name__}: {f'{error}'.strip()}".partition("\n")[0]


def _find(find: Callable[..., Any], name: str) -> str:
    try:
        found = find(name)
        return str(getattr(found, "abs_path", found) or NOT_FOUND)
    except Exception as error:  # each library and platform raises another one
        return NOT_FOUND if "NotFound" in type(error).__name__ else f"{NOT_LOADED}: {error}"


def _find_library(name: str) -> str:
    from cuda import pathfinder

    return _find(pathfinder.load_nvidia_dynamic_lib, name)


def _find_headers(name: str) -> str:
    from cuda import pathfinder

    return _find(pathfinder.locate_nvidia_header_directory, name)


def _find_libdevice() -> str:
    from cuda import pathfinder

    from numba_cuda_autolink.library_files import find_fault

    path = _find(pathfinder.locate_bitcode_lib, "device")
    fault = find_fault(path) if os.path.isabs(path) else ""
    return f"{NOT_LOADED}: {path} {fault}" if fault else path


def _version(name: str) -> list[int] | None:
    """Return ``[major, minor]`` of a library or of headers, or ``None`` if they were not found."""
    if name.endswith(" headers"):
        return _headers_version(name.removesuffix(" headers"))
    if name == "driver":
        return _driver_version()
    module, function = {"nvrtc": ("nvrtc", "nvrtcVersion"), "nvJitLink": ("nvjitlink", "version")}[name]
    try:
        *_, major, minor = getattr(importlib.import_module(f"cuda.bindings.{module}"), function)()
    except Exception:
        return None
    return [major, minor]


def _find_wrong_driver() -> list[str] | None:
    """Return the file that is taken for the driver and is not, and why; ``None`` if there is none."""
    from numba_cuda_autolink.driver_library import find_wrong_driver

    found = find_wrong_driver()
    return None if found is None else list(found)


def _driver_version() -> list[int] | None:
    try:
        from cuda.bindings import driver

        error, version = driver.cuDriverGetVersion()
    except Exception:
        return None
    return None if int(error) else [version // 1000, version % 1000 // 10]


def _headers_version(name: str) -> list[int] | None:
    from numba.cuda.cudadrv.external_code.platform.cuda_libraries import headers_version

    found = headers_version(_find_headers(name))
    return None if found is None else list(found)


def _describe_state() -> dict[str, str]:
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        return {"simulator": "on (NUMBA_ENABLE_CUDASIM): nothing is compiled or linked"}
    from numba import cuda
    from numba.cuda.autolink import cache
    from numba.cuda.autolink.frontends.numba_cuda import activation as numba_cuda

    try:
        gpus = list(cuda.gpus) if cuda.is_available() else []
        capabilities = [".".join(map(str, gpu.compute_capability)) for gpu in gpus]
        names = [os.fsdecode(gpu.name) for gpu in gpus]
        named = [f"{name}, compute capability {cc}" for name, cc in zip(names, capabilities, strict=True)]
    except Exception as error:  # a library that is not the driver lacks functions
        named = [f"{NOT_USABLE}: {_describe(error)}"]
    return {
        "autolink": "active" if numba_cuda.active() else "not active",
        "GPU": ", ".join(named) or "none, or no driver",
        "cache": str(cache.info()).splitlines()[0].removeprefix("cache in "),
    }


def _keep(warning: Warning | str, *args: Any, **named: Any) -> None:
    """Keep what Numba warns of a variable that it cannot read, and print nothing."""
    if (text := str(warning)).startswith(_UNREADABLE):
        _unreadable.append(text)


def _read_settings() -> list[list[str]]:
    """Return the variables that Numba and numba-cuda warned of, with their values and the reason."""
    found = {}
    for text in _unreadable:
        if match := re.match(rf"{_UNREADABLE}(\w+)' is defined but its associated value '(.*?)' could not", text):
            found[match[1]] = [*match.groups(), text.strip().splitlines()[-1]]
    return list(found.values())


def _check_cache() -> list[list[str]]:
    """Return what is wrong with the cache and its settings, each with what to do."""
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        return []
    from numba.cuda.cudadrv.external_code.cache.settings import REMOTE, REMOTE_KEY, RemoteSettings, read_keys
    from numba.cuda.cudadrv.external_code.cache.store import current_store

    found = []
    try:
        if os.environ.get(REMOTE, "").strip():
            RemoteSettings.from_environment(os.environ)
        else:
            read_keys(os.environ)
    except (ValueError, OSError) as error:
        what = "the shared cache cannot be used" if os.environ.get(REMOTE) else f"{REMOTE_KEY} cannot be used"
        found.append([f"{what}: {error}", f"correct the setting, or unset {REMOTE}, {REMOTE_KEY}"])
    store = current_store()
    if store.settings.on_disk and (why := store.disk.why_unusable()):
        fix = "let NUMBA_CUDA_AUTOLINK_CACHE_DIR name a folder with room that only you can write to"
        found.append([f"the cache {store.settings.directory} cannot be used: {why}", fix])
    return found


def _build_kernel() -> str:
    """Build a kernel that calls C++ by name and libdevice, without a cache. Return the error, or an empty text."""
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM or os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        return ""
    os.environ["NUMBA_CUDA_AUTOLINK_CACHE"] = "0"
    import math

    from numba import cuda
    from numba.cuda import autolink
    from numba.cuda.cudadrv.external_code.cache import store

    store.reset_store()
    std = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")

    def kernel(x):
        x[0] = std.hypot(x[1], math.sin(x[2]))

    try:
        cc = cuda.get_current_device().compute_capability if cuda.is_available() else (9, 0)
    except Exception:  # which the state tells
        cc = (9, 0)
    try:
        autolink.build(kernel, "void(float32[::1])", cc=cc)
    except Exception as error:
        if os.environ.get("NUMBA_CUDA_AUTOLINK_TRACEBACK") == "full":
            traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""


def _list_modules() -> list[str]:
    """Return the modules of Python that the trials have imported."""
    return sorted(sys.stdlib_module_names.intersection(sys.modules) - _AT_START)


TRIALS: dict[str, Callable[..., Any]] = {
    "library": _find_library,
    "libdevice": _find_libdevice,
    "headers": _find_headers,
    "version": _version,
    "driver": _find_wrong_driver,
    "import": _import,
    "state": _describe_state,
    "settings": _read_settings,
    "cache": _check_cache,
    "build": _build_kernel,
    "modules": _list_modules,
}


def main() -> None:
    """Run the trials that the arguments name; after an import that fails, no other but the last one."""
    del sys.path[0]  # the folder of this script
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # others may print
    faulthandler.enable()
    warnings.simplefilter("always")
    warnings.showwarning = _keep  # type: ignore[assignment]
    is_broken = False
    for name in sys.argv[1:]:
        if is_broken and name != "modules":
            continue
        kind, _, what = name.partition(" ")
        print(json.dumps([name]), file=output, flush=True)
        try:
            result = TRIALS[kind](what) if what else TRIALS[kind]()
        except Exception as error:
            result = {"failed": f"{type(error).__name__}: {error}"}
        is_broken |= kind == "import" and bool(result)
        print(json.dumps([name, result]), file=output, flush=True)


if __name__ == "__main__":
    main()

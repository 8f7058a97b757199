# SPDX-License-Identifier: BSD-2-Clause
"""The disk cache of kernels with external code: what ``@cuda.jit(cache=True)`` does for them.

numba-cuda's own cache keeps on keeping plain kernels, in its own files. A kernel that brings external code, or that
reaches an object that may, is kept in a file of its own, next to numba-cuda's: when it is loaded, the objects that it
reaches are found again, and nothing is taken that was made of anything else than what is there now.
"""

from __future__ import annotations

import functools
import importlib.metadata
import io
import os
from collections.abc import Mapping
from typing import Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code import toolkit
from numba.cuda.cudadrv.external_code.cache import store as cache_store
from numba.cuda.cudadrv.external_code.cache.key import CacheKey
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings
from numba.cuda.cudadrv.external_code.target import Target
from numba.cuda.dispatcher import CUDACache
from numba.cuda.memory_management.nrt import NRT_LIBRARY

import numba_cuda

from .files import SCHEMA, KernelFiles, KernelKey, log, warn_once
from .fingerprint import fingerprint
from .reachable import Reached
from .record import NotCacheableError, Record, RecordPickler, RecordUnpickler, is_host_file


class KernelCache(CUDACache):
    """numba-cuda's cache of one function's kernels, and the kernels with external code beside it.

    Parameters
    ----------
    py_func:
        The kernel's Python function.
    options:
        Those of ``cuda.jit``.
    """

    def __init__(self, py_func: Any, options: Mapping[str, Any]):
        super().__init__(py_func)
        # The list given to ``link=`` grows by what numba-cuda adds when it compiles.
        self._link = tuple(item for item in options.get("link") or () if not _is_hosts_own(item))
        self._options = {name: options[name] for name in options if name not in ("link", "extensions")}
        stamp = self._impl.locator.get_source_stamp()
        self._files = KernelFiles(self._cache_path, self._impl.filename_base, stamp)
        self._before: tuple[Any, Reached | None] | None = None
        self._to_verify: Any = None

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        reached = self._reach()
        # What is saved later is saved as what was there before the kernel was compiled, which may change objects
        # (they remember what they generated), as it will be there when another process looks for it.
        self._before = (sig, reached)
        self._to_verify = None
        if reached is None:
            return None
        settings = cache_store.store().settings
        kernel = None
        if not _is_off(settings):
            kernel = self._load(self._kernel_key(sig, target_context.codegen(), reached), reached, target_context)
        if kernel is not None and settings.verify:
            self._to_verify = kernel
            return None
        if kernel is not None or reached.external_code:
            return kernel
        return super()._load_overload(sig, target_context)

    def _reach(self) -> Reached | None:
        try:
            return Reached(self._py_func, self._link)
        except Exception as error:  # of code that an object runs when it is looked at: kernels run all the same
            log(f"{self._name} is not cached: {type(error).__name__}: {error}")
            return None

    def _load(self, key: KernelKey, reached: Reached, target_context: Any) -> Any:
        data = self._files.load(key)
        if data is None:
            return None
        try:
            kernel, library_class, library, record = RecordUnpickler(io.BytesIO(data), reached).load()
            change = record.change(library.get("entries", ()))
        except Exception as error:  # whatever a hook raises, or a class that is no longer there
            change = f"{type(error).__name__}: {error}"
        if change is not None:
            log(f"{self._name} is compiled anew: {change}")
            return None
        log(f"{key.parts} from {self._cache_path}")
        return self._impl.rebuild(target_context, {**kernel, "codelibrary": library_class._rebuild(**library)})

    def _save_overload(self, sig: Any, kernel: Any) -> None:
        if not self._enabled or not self._impl.check_cachable(kernel):
            return
        before, self._before = self._before, None
        reached = before[1] if before is not None and before[0] == sig else self._reach()
        if reached is None:
            return
        library = kernel._codelibrary
        if not reached.external_code and not getattr(library, "brings_external_code", False):
            super()._save_overload(sig, kernel)
            return
        if _is_off(cache_store.store().settings):
            return
        states = library._reduce_states()
        try:
            data = _pickled(kernel, states, reached)
        except Exception as error:  # whatever a hook or an object's own pickling raises
            what = "" if isinstance(error, NotCacheableError) else f"{type(error).__name__}: "
            log(f"{self._name} is not cached: {what}{error}")
            return
        key = self._kernel_key(sig, kernel.codegen, reached)
        if self._to_verify is not None:
            _verify(key.parts, self._to_verify._codelibrary, library)
        try:
            self._impl.locator.ensure_cache_path()
            self._files.save(key, data)
        except OSError as error:
            warn_once(self._cache_path, f"{self._name} is not cached: {error}")

    def flush(self) -> None:
        """Forget all kernels of the function."""
        super().flush()
        self._files.flush()

    def _kernel_key(self, sig: Any, codegen: Any, reached: Reached) -> KernelKey:
        parts = {
            "signature": str(sig),
            "toolkit and compute capability": repr(codegen.magic_tuple()),
            **_versions(),
            **{f"option {name}": _shown(option) for name, option in self._options.items()},
            "launch configuration": repr(self._launch_config_key),
            **reached.parts,
        }
        return KernelKey(sig, CacheKey("kernel", self._py_func.__qualname__, tuple(parts.items())))


def _pickled(kernel: Any, states: dict[str, Any], reached: Reached) -> bytes:
    """*kernel*, whose library has the *states*, with the record of its external code."""
    entries = states.get("entries", ())
    target = states.get("target") or Target((0, 0))
    file = io.BytesIO()
    pickler = RecordPickler(file, reached, entries)
    kernel_states = {name: value for name, value in kernel._reduce_states().items() if name != "codelibrary"}
    library_class = kernel._codelibrary._reduce_class()
    record = Record.of(entries, target, kernel.py_func.__code__.co_filename)
    if getattr(kernel._codelibrary, "changed_since_linked", False):
        raise NotCacheableError("a file that it links was edited meanwhile")
    pickler.dump((kernel_states, library_class, states, record))
    return file.getvalue()


def _verify(key: CacheKey, cached: Any, built: Any) -> None:
    """Refuse a library that differs from the cached one."""
    for cc, cubin in cached._cubin_cache.items():
        rebuilt = bytes(built.get_cubin(cc).code)
        cache_store.store().verify(key, bytes(cubin.code), "disk", functools.partial(bytes, rebuilt))


def _is_off(settings: CacheSettings) -> bool:
    """Whether nothing is to be cached on disk, which is not the same as having no place for a cache."""
    return not settings.on_disk and settings.directory != ""


def _is_hosts_own(item: Any) -> bool:
    return item is NRT_LIBRARY or (isinstance(item, (str, os.PathLike)) and is_host_file(item))


@functools.cache
def _versions() -> dict[str, str]:
    """Everything that makes code, by name."""
    try:
        own = importlib.metadata.version("numba-cuda-autolink")
    except importlib.metadata.PackageNotFoundError:
        own = "not installed"
    return {
        "numba-cuda-autolink": f"{own} {SCHEMA}",
        "numba-cuda": str(vars(numba_cuda)["__version__"]),
        "numba-cuda's runtime": repr(bool(getattr(config, "CUDA_ENABLE_NRT", False))),
        "NVRTC": toolkit.nvrtc_build(),
        "NVVM": toolkit.nvvm_build(),
        "nvJitLink": toolkit.nvjitlink_build(),
    }


def _shown(option: Any) -> str:
    return repr(option) if option is None or type(option) in (bool, int, str) else fingerprint(option).hex()

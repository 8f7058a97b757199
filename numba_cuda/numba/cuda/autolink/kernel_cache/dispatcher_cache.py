# SPDX-License-Identifier: BSD-2-Clause
"""The disk cache of kernels with external code: what ``@cuda.jit(cache=True)`` does for them.

numba-cuda's own cache keeps plain kernels, in its own files, as ever. A kernel that brings external code, or that
reaches an object that may, is an entry of the one store. When it is loaded, the objects that it reaches are found
again, and it is used only if everything that it was made of is unchanged.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from typing import Any

from numba.cuda.cudadrv.external_code.cache.key import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.diagnostics.log import logger
from numba.cuda.dispatcher import CUDACache
from numba.cuda.memory_management.nrt import NRT_LIBRARY
from numba.cuda.utils import numba_target_override

from ..frontends.numba_cuda.code_library import LinkingCodeLibrary
from .kernel_key import KernelFunction
from .reachable import Reached
from .references import NotCacheableError, is_numba_cuda_file
from .registered import registered
from .stored_kernel import dump_kernel, load_kernel


class KernelCache(CUDACache):
    """numba-cuda's cache of the kernels of *py_func*, which keeps those with external code in the one store. *options*
    are those of ``cuda.jit``."""

    def __init__(self, py_func: Any, options: Mapping[str, Any]):
        super().__init__(py_func)
        # The list given to ``link=`` grows by what numba-cuda adds when it compiles.
        self._link = tuple(item for item in options.get("link") or () if not _is_added_by_numba_cuda(item))
        self._options = {name: options[name] for name in options if name not in ("link", "extensions")}
        place = os.path.join(self._cache_path, self._impl.filename_base)
        self._function = KernelFunction(py_func, place, self._impl.locator.get_source_stamp())
        # The signature looked for last, and what was reached then. To compile may change objects, which remember what
        # they generated. What is saved is as it was before, as it will be where another process looks for it.
        self._lookup: tuple[Any, Reached | None] | None = None
        self._to_verify: Any = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for the argument types *sig*, or ``None`` if it is not cached.

        numba-cuda sets its compiler up before it looks, which takes longer than all the rest. Here a kernel that is
        found needs no compiler. Setting it up imports modules and registers types, which what a kernel reaches and
        what hooks answer may depend on. So a kernel that is not found is looked for again afterwards.
        """
        with numba_target_override(), self._guard_against_spurious_io_errors():
            kernel = self._load_overload(sig, target_context)
            if kernel is None and self._enabled and self._to_verify is None:
                known = len(sys.modules)
                target_context.refresh()
                if len(sys.modules) != known:
                    kernel = self._load_overload(sig, target_context)
            return kernel

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        reached = self._reach()
        self._lookup = sig, reached
        self._to_verify = None
        if reached is None:
            return None
        settings = current_store().settings
        kernel = self._load(sig, reached, target_context) if settings.on_disk else None
        if kernel is not None and settings.verify:
            self._to_verify = kernel
            return None
        if kernel is not None or reached.external_code:
            return kernel
        return super()._load_overload(sig, target_context)

    def _reach(self) -> Reached | None:
        try:
            return Reached(self._py_func, self._link, registered())
        except Exception as error:  # raised by an object that is looked at: the kernel runs all the same
            self._log_not_cached(error)
            return None

    def _load(self, sig: Any, reached: Reached, target_context: Any) -> Any:
        data = current_store().get(self._key(sig, target_context.codegen(), reached), memory=False)
        if data is None:
            return None
        try:
            stored = load_kernel(data, reached)
            change = stored.change(sig)
        except Exception as error:  # raised by a hook, or by a class that no longer exists
            change = f"{type(error).__name__}: {error}"
        if change is not None:
            logger.info("kernel %r is rebuilt: %s", self._function.name, change)
            return None
        return self._impl.rebuild(target_context, stored.states())

    def _save_overload(self, sig: Any, kernel: Any) -> None:
        if not self._enabled or not self._impl.check_cachable(kernel):
            return
        lookup, self._lookup = self._lookup, None
        reached = lookup[1] if lookup is not None and lookup[0] == sig else self._reach()
        if reached is None:
            return
        library = kernel._codelibrary
        if not reached.external_code and not (isinstance(library, LinkingCodeLibrary) and library.brings_external_code):
            super()._save_overload(sig, kernel)
            return
        if not current_store().settings.on_disk:
            return
        try:
            data = dump_kernel(kernel, sig, reached)
        except Exception as error:  # that it cannot be, or raised by a hook or by an object's own pickling
            self._log_not_cached(error)
            return
        key = self._key(sig, kernel.codegen, reached)
        if self._to_verify is not None:
            for cc, cubin in self._to_verify._codelibrary._cubin_cache.items():
                built = functools.partial(bytes, library.get_cubin(cc).code)
                current_store().verify(key, bytes(cubin.code), "disk", built)
        current_store().put(key, data, memory=False)

    def flush(self) -> None:
        """Remove all kernels of the function. Raises `OSError` if one cannot be removed."""
        super().flush()
        disk = current_store().disk
        for entry in disk.entries():
            if self._function.owns(entry):
                disk.remove(entry.digest)

    def _key(self, sig: Any, codegen: Any, reached: Reached) -> CacheKey:
        others = {"launch configuration": repr(self._launch_config_key), **reached.parts}
        return self._function.key(sig, codegen.magic_tuple(), self._options, others)

    def _log_not_cached(self, error: Exception) -> None:
        reason = str(error) if isinstance(error, NotCacheableError) else f"{type(error).__name__}: {error}"
        logger.info("kernel %r is not cached: %s", self._function.name, reason)


def _is_added_by_numba_cuda(item: Any) -> bool:
    return item is NRT_LIBRARY or (isinstance(item, (str, os.PathLike)) and is_numba_cuda_file(item))

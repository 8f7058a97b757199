# SPDX-License-Identifier: BSD-2-Clause
"""The disk cache of kernels with external code: what ``@cuda.jit(cache=True)`` does for them.

numba-cuda's own cache keeps plain kernels, as ever. It neither loads nor saves a kernel that names an object with a
hook, or whose compile met one: such a kernel is an entry of the one store.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import numba.cuda
from numba.cuda.cudadrv.external_code.cache.changes import OWN_FILE
from numba.cuda.cudadrv.external_code.cache.entry import FILE, CacheKey, Facts, LineDigests, digests_of_lines
from numba.cuda.cudadrv.external_code.cache.settings import logger
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.plan.python_cells import (
    as_in_notebook,
    lines_of_cell,
    notebook_of,
    place_of_kernel,
    text_name,
)
from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction, PythonKernel
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability
from numba.cuda.dispatcher import CUDACache
from numba.cuda.memory_management.nrt import NRT_LIBRARY
from numba.cuda.utils import numba_target_override

from numba_cuda_autolink.files import read_regular_file

from ..compilation.context import current_state, tool_versions
from ..frontends.numba_cuda.code_library import LinkingCodeLibrary
from ..function_code.calls import options_of_kernel
from ..protocol.kernel_signatures import arguments_text
from ..protocol.loaded_modules import UnknownValueError, program_files
from .kernel_values import KernelValues, names_external_code, registered, values_of_kernel, why_unpredictable
from .stored_kernel import KernelChangedError, dump_kernel, load_kernel

# Increased when what is pickled or recorded of a kernel changes.
_SCHEMA = "14"
_MOST_VARIANTS = 4  # of one kernel, by what its objects return for its calls
_FUNCTION = "the function"
_MOST_TEXT = 1 << 18  # bytes of a program's modules, to show which lines changed
_NUMBA_CUDA = os.path.dirname(os.path.abspath(numba.cuda.__file__)) + os.sep


class _Lookup:
    """What a kernel is made of at the time it is looked for. To compile it may change objects, which remember what they
    generated: it is saved as another process will look for it."""

    def __init__(self, cache: KernelCache, signature: Any, codegen: Any):
        self.signature = signature
        self.imported = set(sys.modules)
        users = registered()
        self.values: KernelValues = values_of_kernel(
            cache._py_func, cache._options, cache._link, [signature, *users], has_lines=cache.has_lines
        )
        if (why := why_unpredictable(users)) is not None:
            raise UnknownValueError(why)
        self.files = program_files(self.values.modules)
        # As they are now: what is told of the kernel must not depend on what becomes of the modules meanwhile.
        self.paths = {name: _path_of(name) for name in self.files}
        parts: dict[str, str | bytes] = {
            _FUNCTION: cache._place,
            "argument types": str(signature),
            "toolkit and compute capability": repr(codegen.magic_tuple()),
            "launch configuration": repr(cache._launch_config_key),
            "schema": _SCHEMA,
            **{f"version of {name}": version for name, version in tool_versions().items()},
            **{f"option {name}": str(option) for name, option in cache._options.items()},
            **{f"module {name}": digest for name, digest in self.files.items()},
            **{f"value {label}": text for label, text in self.values.shown.items()},
            "values": self.values.digest,
        }
        facts = functools.partial(_facts, cache, self, ComputeCapability.parse(codegen.magic_tuple()[1]))
        name, lines = cache._py_func.__qualname__, functools.partial(_lines, cache, self)
        capability = parts["toolkit and compute capability"]
        subject = "kernel", place_of_kernel(cache._py_func.__code__.co_filename), name, str(signature), str(capability)
        self.keys = [
            CacheKey(
                "kernel",
                name,
                (*parts.items(), ("variant", str(number))),
                facts=facts,
                lines=lines,
                subject=subject,
            )
            for number in range(_MOST_VARIANTS)
        ]
        self.key = self.keys[0]  # of what is found, or saved


def _lines(cache: KernelCache, lookup: _Lookup) -> LineDigests:
    """Return digests of the lines of the kernel and of the files of the modules that it depends on."""
    function, left = PythonFunction.of(cache._py_func), _MOST_TEXT
    kernel = as_in_notebook(PythonKernel(cache._py_func.__qualname__, "", (function,)))
    found = [*kernel.functions[0].lines(function.name), *lines_of_cell(function.path)]
    for name, digest in lookup.files.items():
        content = b""
        with contextlib.suppress(OSError, ValueError):
            content = read_regular_file(lookup.paths[name])
        left -= len(content)
        if left > 0 and hashlib.sha256(content).hexdigest() == digest:
            label = OWN_FILE if name == cache._py_func.__module__ else f"{FILE}{_file_of(name, lookup.paths[name])}"
            found.append((label, digests_of_lines(content.decode("utf-8", "replace"))))
    return tuple(found)


def _path_of(module: str) -> str:
    """Return the path of the file of a *module*; empty if it is in none, as ``__main__`` of a notebook."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return path if isinstance(path, str) else ""


def _file_of(module: str, path: str) -> str:
    """Return the name of the file of a *module*, with the folders that its package has: ``package/helpers.py``."""
    parts = (path or module).split(os.sep)
    return os.sep.join(parts[-(module.count(".") + (2 if parts[-1].startswith("__init__.") else 1)) :])


def _facts(cache: KernelCache, lookup: _Lookup, capability: ComputeCapability) -> Facts:
    """Return what users know of the kernel that is looked for."""
    function = PythonFunction.of(cache._py_func)
    arguments = lookup.signature if isinstance(lookup.signature, tuple) else lookup.signature.args
    options = options_of_kernel(cache._options)
    name, types = cache._py_func.__qualname__, arguments_text(arguments)
    kernel = as_in_notebook(PythonKernel(name, types, (function,), options=options))
    modules = dict(lookup.files)
    own_file = modules.pop(cache._py_func.__module__, "")
    known = {f"{cache._py_func.__name__}.{label.partition(' ')[2]}" for label, _ in function.values}
    values = [(label, text.rpartition(" ")[0]) for label, text in lookup.values.shown.items() if label not in known]
    return (
        ("", "architecture", capability.as_launched.arch),
        *kernel.facts(with_lines=cache.has_lines and notebook_of(function.path) is not None),
        *(("", f"value {label}", text) for label, text in values),
        *((_file_of(name, lookup.paths[name]), "file", digest) for name, digest in modules.items()),
        ("", OWN_FILE, own_file),
        *(("", name, version) for name, version in tool_versions().items()),
    )


class KernelCache(CUDACache):
    """numba-cuda's cache of the kernels of *py_func*, which keeps those with external code in the one store."""

    def __init__(self, py_func: Any, options: Mapping[str, Any]):
        super().__init__(py_func)
        # The list given to ``link=`` grows by what numba-cuda adds when it compiles.
        self._link = tuple(item for item in options.get("link") or () if not _is_added_by_numba_cuda(item))
        self._options = {name: options[name] for name in options if name not in ("link", "extensions")}
        code = py_func.__code__
        self._place = f"{py_func.__qualname__} at {text_name(code.co_filename)}:{code.co_firstlineno}"
        self._lookup: _Lookup | None = None
        self._to_verify: dict[str, Any] | None = None

    @property
    def compiles_apart(self) -> bool:
        """Whether its device functions are compiled for it alone. One that was compiled before has the values that its
        globals had then."""
        return self._enabled and (self._is_ours() or bool(registered()))

    @property
    def has_lines(self) -> bool:
        """Whether what is compiled names the file and its lines: it is of no use in another folder."""
        return bool(self._options.get("debug") or self._options.get("lineinfo") or current_state().has_lines)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        key = super()._index_key(sig, codegen)
        return (*key, os.path.abspath(self._py_func.__code__.co_filename)) if self.has_lines else key

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for the argument types *sig*, or ``None`` if it is not cached.

        numba-cuda sets its compiler up before it looks, which takes longer than all the rest. A kernel with external
        code needs no compiler. Setting it up imports modules and registers types, which what a kernel reaches and what
        hooks answer may depend on. So a kernel that is not found is looked for again afterwards.
        """
        self._lookup = self._to_verify = None
        if not self._enabled:
            return None
        if not self._is_ours():
            kernel = super().load_overload(sig, target_context)
            if kernel is not None:
                return kernel
        with numba_target_override():
            kernel = self._find(sig, target_context)
            if kernel is None and self._to_verify is None:
                known = len(sys.modules)
                target_context.refresh()
                if len(sys.modules) != known:
                    kernel = self._find(sig, target_context)
            return kernel

    def _is_ours(self) -> bool:
        return bool(self._link) or names_external_code(self._py_func)

    def _find(self, sig: Any, target_context: Any) -> Any:
        try:
            self._lookup = _Lookup(self, sig, target_context.codegen())
        except Exception as error:  # raised by an object that is looked at: the kernel runs all the same
            self._lookup = None
            if self._is_ours():
                self._log_not_cached(error)
            return None
        if (states := self._load_variant(self._lookup)) is None:
            return None
        if current_store().settings.verify:
            self._to_verify = states
            return None
        return self._impl.rebuild(target_context, states)

    def _load_variant(self, lookup: _Lookup) -> dict[str, Any] | None:
        """Return the stored kernel whose objects return for its calls what they return here, or ``None``. Note the key
        that it has, or is to be saved under."""
        reason = ""
        for key in lookup.keys if current_store().settings.on_disk else ():
            lookup.key = key
            if (data := current_store().get(key, memory=False)) is None:
                break
            try:
                return load_kernel(data, lookup.values)
            except Exception as error:  # it changed, or raised by a hook, or by a class that no longer exists
                reason = str(error) if isinstance(error, KernelChangedError) else f"{type(error).__name__}: {error}"
        if reason:
            logger.info("kernel %r is rebuilt: %s", self._py_func.__qualname__, reason)
        return None

    def _save_overload(self, sig: Any, kernel: Any) -> None:
        if not self._enabled:
            return
        lookup, self._lookup = self._lookup, None
        library = kernel._codelibrary
        brings_code = isinstance(library, LinkingCodeLibrary) and library.brings_external_code
        if not brings_code and not self._is_ours():
            super()._save_overload(sig, kernel)
            return
        if lookup is None or lookup.signature != sig or not current_store().settings.on_disk:
            return
        try:
            if not self.compiles_apart:
                raise UnknownValueError("no name in it leads to the external code that it links")
            data = dump_kernel(kernel, lookup.values, lookup.imported)
        except Exception as error:  # that it cannot be, or raised by a hook or by an object's own pickling
            self._log_not_cached(error)
            return
        if self._to_verify is not None:
            libraries = self._to_verify["codelibrary"], library
            stored, built = ("\n".join(each.llvm_strs).encode() for each in libraries)
            current_store().verify(lookup.key, stored, "disk", lambda: built)
            return  # it is there
        current_store().put(lookup.key, data, memory=False)

    def flush(self) -> None:
        """Remove all kernels of the function. Raises `OSError` if one cannot be removed."""
        super().flush()
        disk = current_store().disk
        own = dict(CacheKey("kernel", self._py_func.__qualname__, ((_FUNCTION, self._place),)).table)
        for entry in disk.entries():
            if entry.kind == "kernel" and (_FUNCTION, own[_FUNCTION]) in entry.parts:
                disk.remove(entry.digest)

    def _log_not_cached(self, error: Exception) -> None:
        is_known = isinstance(error, UnknownValueError)
        reason = str(error) if is_known else f"{type(error).__name__}: {error}"
        name, path = self._py_func.__qualname__, place_of_kernel(self._py_func.__code__.co_filename)
        current_store().note_not_cached("kernel", name, reason, (("", "path", path), ("", "kernel", name)))


def _is_added_by_numba_cuda(item: Any) -> bool:
    is_path = isinstance(item, (str, os.PathLike))
    return item is NRT_LIBRARY or (is_path and os.path.abspath(item).startswith(_NUMBA_CUDA))

# SPDX-License-Identifier: BSD-2-Clause
"""Programs and changes: whatever changes, a cached kernel is the one that an empty cache gives.

A program is made of features. Each adds definitions to the module ``parts``, files, and one expression to the kernel.
In the texts of a feature ``$n`` is its own number, and ``$v`` its variant: a change moves features to another variant.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_cache_support import Program, Run

SIGNATURE = "void(int32[::1])"
_EARLIER = "the earlier version:"

# Each program has one call to external code, without which the kernel would be numba-cuda's own to cache.
_PARTS = """
import collections, ctypes, dataclasses, enum, fractions, functools, itertools, math, operator, os, pathlib, re, sys
import types as pytypes
import numpy as np
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.extending import intrinsic, overload, overload_attribute, overload_method, register_jitable
HERE = os.path.dirname(os.path.abspath(__file__))
def code(symbol, amount):
    return f'extern "C" __device__ int {symbol}(int x) {{ return x + {amount}; }}\\n'
class Base(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("base", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("base", 7))
base = Base()
options = {}
"""
_KERNELS = """
from numba import cuda
from parts import *
MODULES
@cuda.jit(cache=True, **options)
def kernel(out):
    x = out[1]
    out[0] = base(x)
STATEMENTS
"""
# Builds the program as it is, and changes it. The modules are imported again.
_CHANGE_IN_PROCESS = """
importlib.invalidate_caches()
earlier = importlib.import_module("kernels")
ran.clear()
_, status, made = kernel_of(earlier.kernel, {signature!r}, (9, 0, "a"))
print({earlier!r}, status, hashlib.sha256(made).hexdigest(), file=sys.stderr)
for name, module in list(sys.modules.items()):
    if str(getattr(module, "__file__", "")).startswith({folder!r}):
        del sys.modules[name]
exec({write!r}, dict(vars()))
importlib.invalidate_caches()
"""
# Makes these files the files of the program. All have one time, as in an image: contents count.
_WRITE = """
import os, pathlib
folder, files = pathlib.Path({folder!r}), {files!r}
for path in folder.rglob("*"):
    if path.is_file() and str(path.relative_to(folder)) not in files:
        path.unlink()
for name, text in files.items():
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
        os.utime(path, (1e9, 1e9))
"""


@dataclass(frozen=True, eq=False)
class Feature:
    """One thing that a kernel depends on: *expression* computes an int32 from the int32 ``x`` in the kernel, from what
    *parts* and *files* define; *modules* are import statements of the kernel's module. Numba goes on using in a process
    what *is_registered* first in it."""

    name: str
    expression: str
    parts: str = ""
    variants: tuple[str, ...] = ("1", "2")
    files: Mapping[str, str] = field(default_factory=dict)
    modules: str = ""
    is_registered: bool = False

    def text(self, template: str, variant: int) -> str:
        """Return *template* with the feature's number and its *variant* filled in."""
        number = zlib.crc32(self.name.encode()) % 1_000_000
        return template.replace("$v", self.variants[variant]).replace("$n", str(number))


@dataclass(frozen=True)
class Change:
    """A program with these features, whose variants change from *before* to *after*."""

    features: tuple[Feature, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def __repr__(self) -> str:
        shown = zip(self.features, self.before, self.after, strict=True)
        return "; ".join(f.name if b == a else f"{f.name} ({f.variants[b]} -> {f.variants[a]})" for f, b, a in shown)

    def files(self, variants: tuple[int, ...]) -> dict[str, str]:
        """Return the files of the program with *variants*: texts by name."""
        parts, modules, statements, others = _PARTS, "", "", {}
        for place, (feature, variant) in enumerate(zip(self.features, variants, strict=True), 2):
            parts += feature.text(feature.parts, variant) + "\n"
            modules += feature.text(feature.modules, variant)
            statements += feature.text(f"    out[{place}] = {feature.expression}\n", variant)
            for name, text in feature.files.items():
                others[feature.text(name, variant)] = feature.text(text, variant)
        kernels = _KERNELS.replace("MODULES", modules).replace("STATEMENTS", statements)
        return {"parts.py": parts, "kernels.py": kernels, **others}


class Trial:
    """Builds programs in one folder, and compares what a warm cache gives with what an empty one does."""

    def __init__(self, folder: Path, servers: list[Any]):
        self._folder, self._caches = folder / "program", folder / "caches"
        self._program = Program(self._folder, servers)

    def faults(self, change: Change, *, in_one_process: bool) -> Iterator[str]:
        """Yield what is wrong after *change*, in words."""
        for folder in self._caches, self._folder:
            shutil.rmtree(folder, ignore_errors=True)
        before, after = (self._writing(change.files(each)) for each in (change.before, change.after))
        exec(before, {})
        if in_one_process:
            changing = _CHANGE_IN_PROCESS.format(
                signature=SIGNATURE, folder=str(self._folder), write=after, earlier=_EARLIER
            )
            found = self._run("warm", changing)
            earlier = next(line for line in found.log.splitlines() if line.startswith(_EARLIER)).rsplit(" ", 1)[1]
        else:
            first = self._run("warm")
            earlier = first.cubin
            if "kernel 'kernel' is not cached: " not in first.log and (again := self._run("warm")).status != "loaded":
                yield f"a new process without a change: the kernel was rebuilt\n{again.log}"
            exec(after, {})
            found = self._run("warm")
        exec(after, {})
        fresh = self._run("fresh")
        later = self._run("warm")  # what the process after the change saved
        if fresh.cubin == earlier:
            yield "the change makes no difference"
        for name, run in ("it", found), ("a later process", later):
            if (run.cubin, run.cooperative) != (fresh.cubin, fresh.cooperative):
                yield f"the kernel of {name} is stale ({run.status})\n{run.log}"

    def _writing(self, files: Mapping[str, str]) -> str:
        return _WRITE.format(folder=str(self._folder), files=dict(files))

    def _run(self, cache: str, before: str = "") -> Run:
        folder = str(self._caches / cache)
        cache_in = f"os.environ['NUMBA_CUDA_AUTOLINK_CACHE_DIR'] = config.CACHE_DIR = {folder!r}\n"
        (run,) = self._program.runs("kernel", signature=SIGNATURE, before=cache_in + before)
        return run  # type: ignore[no-any-return]

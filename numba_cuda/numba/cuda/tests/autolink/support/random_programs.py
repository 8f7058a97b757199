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
"""
_KERNEL = """
@cuda.jit(cache=True, **options)
def NAME(out):
    x = out[1]
    out[0] = base(x)
STATEMENTS
"""
# Builds the program as it is, and changes it. The modules are imported again.
_CHANGE_IN_PROCESS = """
importlib.invalidate_caches()
earlier = importlib.import_module("kernels")
for name in {names!r}:
    ran.clear()
    _, status, made = kernel_of(getattr(earlier, name), {signature!r}, (9, 0, "a"))
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
    is_cached: bool = True  # whether all kernels are that are compiled after it

    def text(self, template: str, variant: int) -> str:
        """Return *template* with the feature's number and its *variant* filled in."""
        number = zlib.crc32(self.name.encode()) % 1_000_000
        return template.replace("$v", self.variants[variant]).replace("$n", str(number))


@dataclass(frozen=True)
class Change:
    """A program with these features, whose variants change from *before* to *after*; *places* has the number of each
    feature's kernel."""

    features: tuple[Feature, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels."""
        return [f"kernel{place}" for place in range(max(self.places) + 1)]

    def __repr__(self) -> str:
        shown = zip(self.places, self.features, self.before, self.after, strict=True)
        return "; ".join(
            f"{place}: {f.name}" + ("" if b == a else f" ({f.variants[b]} -> {f.variants[a]})")
            for place, f, b, a in shown
        )

    def files(self, variants: tuple[int, ...]) -> dict[str, str]:
        """Return the files of the program with *variants*: texts by name."""
        parts, modules, others = _PARTS, "", {}
        statements = [""] * len(self.kernels)
        for number, (feature, variant) in enumerate(zip(self.features, variants, strict=True)):
            parts += feature.text(feature.parts, variant) + "\n"
            modules += feature.text(feature.modules, variant)
            statements[self.places[number]] += feature.text(f"    out[{number + 2}] = {feature.expression}\n", variant)
            for name, text in feature.files.items():
                others[feature.text(name, variant)] = feature.text(text, variant)
        kernels = _KERNELS.replace("MODULES", modules)
        for name, own in zip(self.kernels, statements, strict=True):
            kernels += _KERNEL.replace("NAME", name).replace("STATEMENTS", own)
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
        names = change.kernels
        exec(before, {})
        if in_one_process:
            changing = _CHANGE_IN_PROCESS.format(
                names=names, signature=SIGNATURE, folder=str(self._folder), write=after, earlier=_EARLIER
            )
            found = self._run(names, "warm", changing)
            lines = [line for line in found[0].log.splitlines() if line.startswith(_EARLIER)]
            earlier = [line.rsplit(" ", 1)[1] for line in lines]
        else:
            first = self._run(names, "warm")
            earlier = [run.cubin for run in first]
            is_cached = all(feature.is_cached for feature in change.features)
            for name, run in zip(names, self._run(names, "warm"), strict=True):
                if is_cached and run.status != "loaded":
                    yield f"a new process without a change: {name} was rebuilt\n{run.log}"
            exec(after, {})
            found = self._run(names, "warm")
        exec(after, {})
        fresh = self._run(names, "fresh")
        later = self._run(names, "warm")  # what the process after the change saved
        for name, before_, after_, *runs in zip(names, earlier, fresh, found, later, strict=True):
            if after_.cubin == before_:
                yield f"the change makes no difference to {name}"
            for which, run in zip(("it", "a later process"), runs, strict=True):
                if (run.cubin, run.cooperative) != (after_.cubin, after_.cooperative):
                    yield f"{name} of {which} is stale ({run.status})\n{run.log}"

    def _writing(self, files: Mapping[str, str]) -> str:
        return _WRITE.format(folder=str(self._folder), files=dict(files))

    def _run(self, names: list[str], cache: str, before: str = "") -> list[Run]:
        folder = str(self._caches / cache)
        cache_in = f"os.environ['NUMBA_CUDA_AUTOLINK_CACHE_DIR'] = config.CACHE_DIR = {folder!r}\n"
        return self._program.runs(*names, signature=SIGNATURE, before=cache_in + before)  # type: ignore[no-any-return]

# SPDX-License-Identifier: BSD-2-Clause
"""Programs and changes drawn at random: whatever changes, a cached kernel is the one that an empty cache gives.

A program is made of features. Each adds definitions to the module ``parts``, files, options of the kernel, and one
expression to the kernel itself. It has two or more variants, which differ in one thing that the compiled code depends
on. A change moves some features of a program to another variant.

In the texts of a feature, ``$n`` is its own number, by which a program tells its features apart, and ``$v`` is the
variant.
"""

from __future__ import annotations

import difflib
import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hypothesis import strategies
from kernel_cache_support import Program, Run

NO_FILES: Mapping[str, str] = MappingProxyType({})

# A file with this before its text is a symbolic link to that path.
LINK_TO = "link to "

IMPORTS = """
import array, collections, copy, ctypes, dataclasses, datetime, decimal, enum, fractions, functools, itertools, math
import operator, os, pathlib, random, re, types as pytypes
import numpy as np
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.extending import intrinsic, overload, overload_attribute, overload_method, register_jitable
HERE = os.path.dirname(os.path.abspath(__file__))
def code(symbol, amount):
    return f'extern "C" __device__ int {symbol}(int x) {{ return x + {amount}; }}\\n'
"""

# Each program has one call to external code, without which the kernel would be numba-cuda's own to cache.
PARTS = f"""{IMPORTS}
class Base(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("base", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("base", 7))
base = Base()
options = {{}}
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

_CACHE_IN = """
os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = config.CACHE_DIR = {cache!r}
"""

# Builds the program as it is, and changes it. The modules are imported again.
_CHANGE_IN_PROCESS = """
importlib.invalidate_caches()
earlier = importlib.import_module("kernels")
ran.clear()
print("the earlier version:", kernel_of(earlier.kernel, {signature!r}, (9, 0, "a"))[1], file=sys.stderr)
for name, module in list(sys.modules.items()):
    if str(getattr(module, "__file__", "")).startswith({folder!r}):
        del sys.modules[name]
exec({write!r}, dict(vars()))
importlib.invalidate_caches()
"""

# Makes these files the files of the program. One that stays as it is is not touched.
_WRITE = """
import os, pathlib
folder, files = pathlib.Path({folder!r}), {files!r}
for path in folder.rglob("*"):
    if path.is_symlink() or (path.is_file() and str(path.relative_to(folder)) not in files):
        path.unlink()
for name, text in files.items():
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith({link!r}):
        path.symlink_to(text.removeprefix({link!r}))
    elif not path.exists() or path.read_text() != text:
        path.write_text(text)
        os.utime(path, {times!r})
"""

SIGNATURE = "void(int32[::1])"


@dataclass(frozen=True, eq=False)
class Feature:
    """One thing that a kernel depends on.

    Attributes
    ----------
    name:
        What it is, in words.
    variants:
        The texts that ``$v`` stands for.
    expression:
        Python code in the kernel that computes an int32 from the int32 ``x``.
    parts:
        What the module ``parts`` defines.
    files:
        Other files. Python files that the kernel's module is to import are named in *modules*.
    modules:
        Import statements of the kernel's module.
    is_cached:
        Whether kernels that have it can be cached; ``None`` where that depends on how old its files are.
    is_registered:
        Whether it is registered with Numba, which goes on using what was registered first in a process.
    """

    name: str
    variants: tuple[str, ...]
    expression: str
    parts: str = ""
    files: Mapping[str, str] = field(default_factory=lambda: NO_FILES)
    modules: str = ""
    is_cached: bool | None = True
    is_registered: bool = False

    def text(self, template: str, number: int, variant: int) -> str:
        """Return *template* with the feature's *number* and its *variant* filled in."""
        return template.replace("$v", self.variants[variant]).replace("$n", str(number))


@dataclass(frozen=True)
class Draw:
    """A program and a change of it.

    Attributes
    ----------
    features:
        The program's features, in order.
    before, after:
        The variant of each.
    has_times:
        Whether files get the times at which they are written. Otherwise all have the same one, as in an image.
    """

    features: tuple[Feature, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    has_times: bool = True

    def __repr__(self) -> str:
        shown = zip(self.features, self.before, self.after, strict=True)
        features = ", ".join(
            f.name if b == a else f"{f.name} ({f.variants[b]} -> {f.variants[a]})" for f, b, a in shown
        )
        return features if self.has_times else f"{features}; all files have one time"

    @property
    def changed(self) -> tuple[Feature, ...]:
        """The features that change."""
        each = zip(self.features, self.before, self.after, strict=True)
        return tuple(feature for feature, before, after in each if before != after)

    @property
    def is_cached(self) -> bool | None:
        """Whether its kernel can be cached; ``None`` if that depends on how old its files are."""
        each = [feature.is_cached for feature in self.features]
        return False if False in each else None if None in each else True

    @property
    def needs_new_process(self) -> bool:
        """Whether the change has no effect in the same process."""
        return any(feature.is_registered for feature in self.changed)

    def files(self, variants: tuple[int, ...]) -> dict[str, str]:
        """Return the files of the program with *variants*: texts by name."""
        parts, modules, statements, others = PARTS, "", "", {}
        for number, (feature, variant) in enumerate(zip(self.features, variants, strict=True)):
            parts += feature.text(feature.parts, number, variant)
            modules += feature.text(feature.modules, number, variant)
            statements += feature.text(f"    out[{number + 2}] = {feature.expression}\n", number, variant)
            for name, text in feature.files.items():
                others[feature.text(name, number, variant)] = feature.text(text, number, variant)
        kernels = _KERNELS.replace("MODULES", modules).replace("STATEMENTS", statements)
        return {"parts.py": parts, "kernels.py": kernels, **others}

    def report(self) -> str:
        """Return both versions of each file as text."""
        before, after = self.files(self.before), self.files(self.after)
        lines = [f"the change: {self}"]
        for name in sorted({*before, *after}):
            old, new = before.get(name, ""), after.get(name, "")
            lines += [f"---- {name}, before", old]
            lines += ["---- the change of it", *difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="")]
        return "\n".join(lines)


def draws(features: tuple[Feature, ...]) -> strategies.SearchStrategy[Draw]:
    """Programs of up to six *features* in any order, of which one or two change.

    One number decides which they are, so that all are drawn equally often: Hypothesis prefers simple values. It makes a
    program that fails smaller.
    """

    @strategies.composite
    def one(draw: Any) -> Draw:
        chance = random.Random(draw(strategies.integers(0, 2**64 - 1)))
        chosen = chance.sample(range(len(features)), 6)
        counts = [len(features[number].variants) for number in chosen]
        before = [chance.randrange(count) for count in counts]
        after = [(old + chance.randrange(1, count)) % count for old, count in zip(before, counts, strict=True)]
        changed = 2 if draw(strategies.booleans()) else 1
        after[changed:] = before[changed:]
        size = changed + draw(strategies.integers(0, 4))
        order = sorted(range(size), key=[chance.random() for _ in chosen].__getitem__)
        return Draw(
            tuple(features[chosen[place]] for place in order),
            tuple(before[place] for place in order),
            tuple(after[place] for place in order),
            chance.random() < 0.5,
        )

    return one()


@dataclass(frozen=True)
class Built:
    """A program that was built with a cache of its own.

    Attributes
    ----------
    files:
        The program.
    run:
        What its build gave.
    cache:
        The folder of the cache.
    """

    files: Mapping[str, str]
    run: Run
    cache: Path

    @property
    def is_saved(self) -> bool:
        """Whether the kernel is in the cache."""
        return "kernel 'kernel' is not cached: " not in self.run.log


class Trial:
    """Builds programs in one folder, and compares what a warm cache gives with what an empty one does.

    Attributes
    ----------
    saved, unsaved:
        How many programs were saved in the cache, and how many were not.
    changed:
        How many changes made another kernel.
    """

    def __init__(self, folder: Path, servers: list[Any], before: str = ""):
        self.saved = self.unsaved = self.changed = 0
        self._program = Program(folder / "program", servers)
        self._caches = folder / "caches"
        self._before = before

    def faults(self, draw: Draw) -> Iterator[str]:
        """Yield what is wrong with the change of *draw* and the reverse change, in words.

        The change is made between two processes, the reverse change in one process.
        """
        shutil.rmtree(self._caches, ignore_errors=True)
        self._has_times = draw.has_times
        before = self._build("before", draw.files(draw.before))
        after = self._build("after", draw.files(draw.after))
        self.changed += not _same(before.run, after.run)
        for each in before, after:
            self.saved += each.is_saved
            self.unsaved += not each.is_saved
            if draw.is_cached not in (None, each.is_saved):
                reason = [line for line in each.run.log.splitlines() if "kernel 'kernel' is not cached: " in line]
                yield f"the kernel {'is' if each.is_saved else 'is not'} cached {reason}"
        self._write(after.files)
        found = self._run(self._copy(before.cache, "two processes"))
        if not _same(found, after.run):
            yield f"a new process after the change: the kernel is stale ({found.status})"
        self._write(after.files)
        found = self._run(self._copy(after.cache, "one process"), self._change(before.files))
        if not draw.needs_new_process and not _same(found, before.run):
            yield f"the same process after the reverse change: the kernel is stale ({found.status})"
        if after.is_saved and "the earlier version: loaded\n" not in found.log:
            yield f"a new process without a change: the kernel was rebuilt\n{found.log}"

    def _build(self, name: str, files: Mapping[str, str]) -> Built:
        """Build a program with an empty cache."""
        self._write(files)
        return Built(files, self._run(self._caches / name), self._caches / name)

    def _write(self, files: Mapping[str, str]) -> None:
        shutil.rmtree(self._program.folder, ignore_errors=True)
        exec(self._writing(files), {})

    def _writing(self, files: Mapping[str, str]) -> str:
        times = None if self._has_times else (1e9, 1e9)
        return _WRITE.format(folder=str(self._program.folder), files=dict(files), link=LINK_TO, times=times)

    def _change(self, files: Mapping[str, str]) -> str:
        return _CHANGE_IN_PROCESS.format(
            signature=SIGNATURE, folder=str(self._program.folder), write=self._writing(files)
        )

    def _run(self, cache: Path, change: str = "") -> Run:
        before = _CACHE_IN.format(cache=str(cache)) + self._before + change
        return self._program.run(signature=SIGNATURE, before=before)

    def _copy(self, cache: Path, name: str) -> Path:
        return Path(shutil.copytree(cache, self._caches / name))


def _same(found: Run, expected: Run) -> bool:
    return (found.cubin, found.cooperative) == (expected.cubin, expected.cooperative)

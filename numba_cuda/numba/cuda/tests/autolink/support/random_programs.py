# SPDX-License-Identifier: BSD-2-Clause
"""Programs and changes drawn at random: whatever changes, a cached kernel is the one that an empty cache gives.

A program is made of features. Each adds definitions to the module ``parts``, files, options of the kernel, and one
expression to the kernel itself. It has two or more variants, which differ in one thing that the compiled code depends
on. A change moves some features of a program to another variant.

In the texts of a feature, ``$n`` is its own number, by which a program tells its features apart, and ``$v`` is the
variant. The number is in the name of each file of a feature, and in that of its C function.
"""

from __future__ import annotations

import difflib
import random
import shutil
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hypothesis import strategies
from kernel_cache_support import Program, Run, start_servers

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

# Lets NVRTC and nvJitLink be quick, then builds and loads a program, so that each run finds all modules imported.
_WARM_UP = """
import pathlib
sys.path.insert(0, {support!r})
import quick_tools
if {quick!r}:
    quick_tools.install(pathlib.Path({results!r}), pathlib.Path({program!r}), ran)
state = list(sys.path), sys.stderr, codegen.JITCUDACodegen.magic_tuple, set(sys.modules)
with tempfile.TemporaryDirectory() as folder:
    for name, text in {files!r}.items():
        pathlib.Path(folder, name).write_text(text)
    for _ in range(2):
        found = answer(dict(folder=folder, names=["kernel"], signature={signature!r}, cc=(9, 0, "a"), before=""))
        for name in set(sys.modules) - state[-1]:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
                del sys.modules[name]
sys.path[:], sys.stderr, codegen.JITCUDACodegen.magic_tuple, _ = state
sys.path.remove({support!r})
reset_store()
gc.collect()
gc.freeze()
gc.disable()
assert "loaded" in str(found), found
"""

_CACHE_IN = """
os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = config.CACHE_DIR = {cache!r}
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
_EARLIER = "the earlier version:"


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

    @property
    def number(self) -> int:
        """Its own number, which is the same in all programs."""
        return zlib.crc32(self.name.encode()) % 1_000_000

    def text(self, template: str, variant: int) -> str:
        """Return *template* with the feature's number and its *variant* filled in."""
        return template.replace("$v", self.variants[variant]).replace("$n", str(self.number))


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
    in_one_process:
        Whether it changes while a process runs. Otherwise it changes between two processes.
    is_repeated:
        Whether it is built in another process first, so that it is loaded before it changes.
    """

    features: tuple[Feature, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    has_times: bool = True
    in_one_process: bool = False
    is_repeated: bool = False

    def __repr__(self) -> str:
        shown = zip(self.features, self.before, self.after, strict=True)
        features = ", ".join(
            f.name if b == a else f"{f.name} ({f.variants[b]} -> {f.variants[a]})" for f, b, a in shown
        )
        ways = {
            "all files have one time": not self.has_times,
            "it changes while a process runs": self.in_one_process,
            "it is loaded before it changes": self.is_repeated,
        }
        return "; ".join([features, *(way for way, is_so in ways.items() if is_so)])

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

    def files(self, variants: tuple[int, ...]) -> dict[str, str]:
        """Return the files of the program with *variants*: texts by name."""
        parts, modules, statements, others = PARTS, "", "", {}
        for place, (feature, variant) in enumerate(zip(self.features, variants, strict=True), 2):
            parts += feature.text(feature.parts, variant) + "\n"
            modules += feature.text(feature.modules, variant)
            statements += feature.text(f"    out[{place}] = {feature.expression}\n", variant)
            for name, text in feature.files.items():
                others[feature.text(name, variant)] = feature.text(text, variant)
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
    """Programs of up to four *features* in any order, of which one or two change.

    One number decides which they are, so that all are drawn equally often: Hypothesis prefers simple values. It makes a
    program that fails smaller.
    """

    @strategies.composite
    def one(draw: Any) -> Draw:
        chance = random.Random(draw(strategies.integers(0, 2**64 - 1)))
        chosen = chance.sample(range(len(features)), 4)
        counts = [len(features[number].variants) for number in chosen]
        before = [chance.randrange(count) for count in counts]
        after = [(old + chance.randrange(1, count)) % count for old, count in zip(before, counts, strict=True)]
        changed = 2 if draw(strategies.booleans()) else 1
        after[changed:] = before[changed:]
        size = changed + draw(strategies.integers(0, 2))
        order = sorted(range(size), key=[chance.random() for _ in chosen].__getitem__)
        in_one_process = not any(features[number].is_registered for number in chosen[:changed])
        return Draw(
            tuple(features[chosen[place]] for place in order),
            tuple(before[place] for place in order),
            tuple(after[place] for place in order),
            has_times=chance.random() < 0.5,
            in_one_process=in_one_process and chance.random() < 0.5,
            is_repeated=chance.random() < 0.25,
        )

    return one()


@dataclass(frozen=True)
class Workplace:
    """A folder for programs and their caches, and the processes that run them."""

    folder: Path
    servers: list[Any]

    @property
    def program(self) -> Path:
        """The folder of the program that is built now."""
        return self.folder / "program"

    @classmethod
    def opened(cls, folder: Path, warm_up: Draw, *, quick: bool = True) -> Iterator[Workplace]:
        """Yield one in *folder*, whose processes have built *warm_up*. If it is not *quick*, NVRTC and nvJitLink run as
        they do for users."""
        (folder / "nvrtc").mkdir()
        first = _WARM_UP.format(
            support=str(Path(__file__).parent),
            quick=quick,
            results=str(folder / "nvrtc"),
            program=str(folder / "program"),
            files=warm_up.files(warm_up.before),
            signature=SIGNATURE,
        )
        for servers in start_servers(first):
            yield cls(folder, servers)


class Trial:
    """Builds programs in one folder, and compares what a warm cache gives with what an empty one does.

    Attributes
    ----------
    saved, unsaved:
        How many programs were saved in the cache, and how many were not.
    changed:
        How many changes made another kernel.
    """

    def __init__(self, workplace: Workplace, before: str = ""):
        self.saved = self.unsaved = self.changed = 0
        self._folder = workplace.program
        self._program = Program(workplace.program, workplace.servers)
        self._caches = workplace.folder / "caches"
        self._before = before

    def faults(self, draw: Draw) -> Iterator[str]:
        """Yield what is wrong with the change of *draw*, in words."""
        shutil.rmtree(self._caches, ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        before, after = (_Writing(self._folder, draw.files(each), draw.has_times) for each in (draw.before, draw.after))
        before.run()
        if draw.is_repeated or not draw.in_one_process:
            first = self._run("warm")
            yield from self._fault_of_saving(draw, first)
            earlier = first.cubin
        if draw.in_one_process:
            found = self._run("warm", after)
            _, status, earlier = next(line for line in found.log.splitlines() if line.startswith(_EARLIER)).rsplit(
                " ", 2
            )
        else:
            status = self._run("warm").status if draw.is_repeated else ""
            after.run()
            found = self._run("warm")
        if draw.is_repeated and _is_saved(first) and status != "loaded":
            yield f"a new process without a change: the kernel was rebuilt\n{found.log}"
        shutil.rmtree(self._folder)
        after.run()
        fresh = self._run("fresh")
        yield from self._fault_of_saving(draw, fresh)
        self.changed += fresh.cubin != earlier
        if (found.cubin, found.cooperative) != (fresh.cubin, fresh.cooperative):
            yield f"the kernel is stale ({found.status})\n{found.log}"

    def _fault_of_saving(self, draw: Draw, run: Run) -> Iterator[str]:
        is_saved = _is_saved(run)
        self.saved += is_saved
        self.unsaved += not is_saved
        if draw.is_cached not in (None, is_saved):
            reason = [line for line in run.log.splitlines() if "is not cached: " in line]
            yield f"the kernel {'is' if is_saved else 'is not'} cached {reason}"

    def _run(self, cache: str, change: _Writing | None = None) -> Run:
        before = _CACHE_IN.format(cache=str(self._caches / cache)) + self._before
        if change is not None:
            before += _CHANGE_IN_PROCESS.format(
                signature=SIGNATURE, folder=str(self._folder), write=change.code, earlier=_EARLIER
            )
        (run,) = self._program.runs("kernel", signature=SIGNATURE, before=before)
        return run  # type: ignore[no-any-return]


class _Writing:
    """Makes *files* the files of the program in *folder*."""

    def __init__(self, folder: Path, files: Mapping[str, str], has_times: bool):
        self.code = _WRITE.format(
            folder=str(folder), files=dict(files), link=LINK_TO, times=None if has_times else (1e9, 1e9)
        )

    def run(self) -> None:
        exec(self.code, {})


def _is_saved(run: Run) -> bool:
    return "kernel 'kernel' is not cached: " not in run.log

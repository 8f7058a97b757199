# SPDX-License-Identifier: BSD-2-Clause
"""Sizes, times and names as people read them."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from numba.cuda.cudadrv.external_code.diagnostics.timeline import REFUSED

from numba_cuda_autolink.mangled_names import readable, without_result
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.source_locations import cell_name

from ..function_code.object_names import file_of_item

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.link.linker_input import CompiledCode

    from ..function_code.build_record import CallRecord
    from ..function_code.call_graph import Frame
    from .records import CallReport, CodeReport, FunctionReport, OccupancyReport, ResultReport

_UNIT = re.compile(r"cxx_[0-9a-f]+\.cu")  # of calls of one library
# What calls by name and functions of Python that C++ calls are named in the code: by their content.
_PYTHON_CLASS = re.compile(r"\bnca_python_\d+_(\w+?)_\1_[0-9a-f]{16}\w*")
_OTHER_CLASS = re.compile(r"\bnca_functor_[0-9a-f]+\b")
_BY_CONTENT = re.compile(r"\b(?:cxx_)?([A-Za-z_]\w*?)_[0-9a-f]{16}(?:_functor|_\d+)?\b")
# Options, and values. Each library of `cxx` has the last option.
_ELSEWHERE, _NOT_SET = ("include_paths", "device_as_default_execution_space"), ("False", "None")
_AROUND = 12  # characters of a text around what differs
OF_KERNELS = ("lto", "debug", "lineinfo", "fastmath", "max_registers")  # recorded whether they are set or not
_TOO_MUCH = {  # by what limits blocks to none
    "registers": "too many registers",
    "shared memory": "too much shared memory",
    "warps": "too many warps",
    "launch bounds": "more threads than the launch bounds",
}
CODE_OF = "code of "  # functions of a library without a file
RESTORED = "from the disk cache of cuda.jit(cache=True); the rest describes how it was built"


def size(number: int) -> str:
    """Return a size in bytes as ``74 bytes`` or ``1.8 KiB``."""
    if number < 1024:
        return number_of(number, "byte")
    power = min((number.bit_length() - 1) // 10, 3)
    return f"{number / 1024**power:.1f} {('KiB', 'MiB', 'GiB')[power - 1]}"


def time(seconds: float) -> str:
    """Return a time as ``62 µs``, ``19 ms`` or ``1.2 s``."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def origin(name: str, seconds: float | None) -> str:
    """Return ``built in 19 ms``, ``from memory in 20 µs`` or ``from disk in 1 ms``; of what the link did not need, as
    its result was there, without the time."""
    return f"{came_from(name)} in {time(seconds)}" if seconds else came_from(name)


def origins(numbers: Iterable[tuple[str, int]]) -> str:
    """Return how many came from where, as ``3 built, 1 from disk``. A build tries whether C++ takes what it guesses."""
    return ", ".join(
        f"{number_of(number, 'try')} that C++ refused" if name == REFUSED else f"{number} {came_from(name)}"
        for name, number in numbers
    )


def came_from(name: str) -> str:
    """Return ``from disk`` for a level of the cache; ``built`` and the like as they are."""
    return f"from {name}" if name in ("memory", "disk", "image", "remote") else name


def code(described: CompiledCode | CodeReport | ResultReport) -> str:
    """Return what code is as ``LTO-IR, 2.9 KiB, sha256 8f43...``."""
    return f"{described.kind}, {size(described.size)}, sha256 {described.sha256[:12]}"


def digest(described: CodeReport, among: Iterable[str] = ("content", "sha256")) -> str:
    """Return what distinguishes code from other code, the first digest *among* these fields that is known: the
    ``content`` of the functions that are called, else the ``sha256`` of its text."""
    name = next(each for each in among if getattr(described, each))
    return f"{name} {getattr(described, name)[:12]}"


def stack(result: ResultReport) -> str | None:
    """Return the stack per thread as ``2.0 KiB``; ``None`` where no resources are known. Of a kernel whose machine code
    can be read, the toolkit notes the size unless there is recursion."""
    if result.stack is not None:
        return size(result.stack)
    return None if result.registers is None else "not known (recursion)"


def occupancy(found: OccupancyReport) -> str:
    """Return an occupancy as ``62%, limited by registers``, or why blocks of this size cannot be launched."""
    return (
        f"{found.share:.0%}, limited by {found.limit}" if found.blocks else f"cannot launch, {_TOO_MUCH[found.limit]}"
    )


def occupancy_range(found: Sequence[OccupancyReport]) -> str:
    """Return the shares of the sizes that can be launched as ``100%`` or ``50% to 62%``; empty without these."""
    shares = sorted(each.share for each in found if each.blocks)
    return " to ".join(dict.fromkeys(f"{share:.0%}" for share in (*shares[:1], *shares[-1:])))


def occupancy_summary(found: Sequence[OccupancyReport]) -> str:
    """Return the shares as `occupancy_range` has them, with the sizes that cannot be launched; empty where nothing is
    known."""
    none = [str(each.threads) for each in found if not each.blocks]
    left = f"{listed(none)} threads cannot launch" if none else ""
    return ", ".join(each for each in (occupancy_range(found), left) if each)


def options(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the options of a source that are set, as ``use_fast_math=True, std=c++20``; without what is said
    elsewhere, and what libraries of C++ have without being asked."""
    return ", ".join(f"{name}={value}" for name, value in pairs if name not in _ELSEWHERE and value not in _NOT_SET)


def kernel_options(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the options of a kernel that are not the defaults, as ``fastmath=True, launch_bounds=128``; without what
    is said elsewhere."""
    return ", ".join(
        f"{name}={value}" for name, value in pairs if name != "lto" and not (name in OF_KERNELS and value in _NOT_SET)
    )


def function(qualname: str) -> str:
    """Return a function's name without those of the functions that enclose it."""
    return qualname.rpartition("<locals>.")[2]


def symbol(name: str) -> str:
    """Return the name of a symbol as its source spells it, without its result, and without the digests in the names
    that calls by name write."""
    text = _OTHER_CLASS.sub("functor", _PYTHON_CLASS.sub(r"\1", without_result(readable(name))))
    return _BY_CONTENT.sub(r"\1", text)


def inlined(calls: Sequence[CallReport]) -> str | None:
    """Return how many of *calls* were inlined as ``11 of 12`` or ``1 of 2, 1 not known``; ``None`` where that is known
    of none."""
    known = [call.inlined for call in calls if call.inlined is not None]
    unknown = f", {len(calls) - len(known)} not known" if len(known) < len(calls) else ""
    return f"{sum(known)} of {len(calls)}{unknown}" if known else None


def chain(frames: Iterable[Frame]) -> str:
    """Return the functions from the kernel to a call as ``kernel:12 → helper:7``."""
    return " → ".join(f"{function(frame.function)}:{frame.line or '?'}" for frame in frames)


def compiled(done: CompiledCode) -> str:
    """Return what a source was compiled to: ``LTO-IR, 2.9 KiB: built in 19 ms``."""
    return f"{done.kind}, {size(done.size)}: {origin(done.origin, done.seconds)}"


def titles(codes: Sequence[CodeReport], calls: Iterable[CallRecord]) -> list[str]:
    """Return the names of linked *codes*, no two of them equal: those that have one name are told apart by the object
    whose call returned them, ``Power.cu of Power(n=2)``, by the types that it was called with, ``Power.cu (float32)``,
    by both, or else by a number. C++ that calls of one library share is named after the file of the library,
    ``waves.cu, 10 functions``, and that of a library without a file after its functions."""
    by_site = {call.site: call for call in calls}
    files = {site: file_of_item(call.object) for site, call in by_site.items()}
    names = [
        _of_library(code, files) if is_of_library(code) else file(function(code.name)) + code.detail for code in codes
    ]
    same = defaultdict[str, list[int]](list)
    for number, code in enumerate(codes):
        if code.brought_by:
            same[names[number]].append(number)
    for some in same.values():
        brought = [codes[number].brought_by[0] for number in some]
        found = [by_site.get(site) for site in brought]
        objects = [site if call is None else call.name for site, call in zip(brought, found, strict=True)]
        types = ["" if call is None else call.arguments for call in found]
        both = [f" of {each}{given}" for each, given in zip(objects, types, strict=True)]
        ways = [f" of {each}" for each in objects], [f" {each}" for each in types], both
        chosen = next((way for way in ways if len({*way}) == len(way)), ways[0])
        for number, text in zip(some, chosen, strict=True) if len(some) > 1 else ():
            names[number] += text
    shared, seen = Counter(names), Counter[str]()
    for number, name in enumerate(names):
        seen[name] += 1
        if shared[name] > 1:
            names[number] += f" #{seen[name]}"
    return names


def unit(name: str) -> str:
    """Return ``, as NAME`` for the name that a translation unit was given; nothing for that of calls of one library."""
    return "" if _UNIT.fullmatch(name) else f", as {name}"


def is_of_library(code: CodeReport) -> bool:
    """Whether it is C++ that calls of one library share."""
    return _UNIT.fullmatch(code.name) is not None


def _of_library(code: CodeReport, files: Mapping[str, str | None]) -> str:
    functions = list(dict.fromkeys(part.name.partition("(")[0] for part in code.parts))
    if not functions:
        return code.name
    paths = {files.get(site) for site in code.brought_by}
    path = paths.pop() if len(paths) == 1 else None
    if path is None:
        return f"{CODE_OF}{listed(functions, 3)}"
    return f"{path}, {functions[0] if len(functions) == 1 else number_of(len(functions), 'function')}"


def file(path: str | None) -> str:
    """Return a file's name without its folder, or the name of a notebook's cell."""
    return cell_name(path) or os.path.basename(path) if path else "?"


def left(call: CallReport) -> str:
    """Return what a *call* that was not inlined leaves in the result, as ``helper(float) and series(float) called``;
    empty if that is only the function that it names, or is not known. Where only the number of ``CALL`` instructions is
    known, that is ``1 CALL left for 2 calls``."""
    if call.left is not None:
        number, calls = call.left
        left = f"{number_of(number, 'CALL')} left for {calls} calls"
        return f"{listed(call.called)}: {left}" if call.called else left
    is_own = [name.partition("(")[0] for name in call.called] == [call.name]
    return "" if is_own or not call.called else f"{listed(call.called)} called"


def in_result(function: FunctionReport) -> str:
    """Return what a *function* of the result is as ``2.1 KiB, 1 CALL, 24 registers, stack 8 bytes``; of spills and the
    stack what there is."""
    found = {
        "{}": size(function.size),
        "{} ": number_of(function.calls, "CALL") if function.calls is not None else None,
        "{} registers": function.registers,
        "stack {}": size(function.stack) if function.stack else None,
        "{} spilled": size(spilled) if (spilled := function.spill_stores or function.spill_loads) else None,
    }
    return ", ".join(text.format(value).strip() for text, value in found.items() if value is not None)


def times(some: Sequence[object]) -> str:
    """Return how many there are, as a factor; nothing of one."""
    return f" \N{MULTIPLICATION SIGN}{len(some)}" if len(some) > 1 else ""


def places(calls: Iterable[CallReport]) -> str:
    """Return the lines of *calls* as ``kernels.py:7, 12 and 15``; of many, the others are a number."""
    found: dict[str, dict[str, None]] = {}
    for call in calls:
        found.setdefault(file(call.filename), {})[str(call.line)] = None
    return listed([f"{name}:{listed(list(lines))}" for name, lines in found.items()])


def shortened(text: str, longest: int) -> str:
    """Return *text*, cut in the middle if it has more than *longest* characters: names differ at both ends."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def _common(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (left, right) in pairs if left != right), min(len(one), len(other)))


def different_parts(one: str, other: str) -> tuple[str, str]:
    """Return what two texts do not have in common, with whole words and some text around it: ``… * 2; }`` and
    ``… * 3; }``. Equal texts are returned as they are."""
    if one == other:
        return one, other
    first = _common(one, other)
    last = _common(one[first:][::-1], other[first:][::-1])
    parts = []
    for text in (one, other):
        begin, end = max(0, first - _AROUND), min(len(text), len(text) - last + _AROUND)
        while begin and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
            begin -= 1
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        parts.append(f"{'…' * bool(begin)}{text[begin:end]}{'…' * (end < len(text))}")
    return parts[0], parts[1]


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return *names* as ``a, b and c``; of more than *most*, the others are a number."""
    names = names if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

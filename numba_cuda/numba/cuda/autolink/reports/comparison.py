# SPDX-License-Identifier: BSD-2-Clause
"""What differs between two reports, as text and as JSON."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

from numba.cuda.cudadrv.external_code.inputs.kinds import CUDA

from ..function_code.object_names import file_of_item, item_name
from . import formatting
from .records import BuildReport, CallReport, CodeReport, KernelReport, ResultReport

FORMAT, VERSION = "numba-cuda-autolink changes", 1
_Pairs: TypeAlias = tuple[tuple[str, str], ...]  # of a function and its digest
# Options of the linker that follow from the architecture, the kernel's code and its options.
_KNOWN = ("-arch=", "-kernels-used=", "-optimize-unused-variables", "-lto", "-lineinfo", "-g", "-maxrregcount=")
_FEW = 4  # functions or calls that are named
_OF_CALL = re.compile(r"^cxx_(\w+)_[0-9a-f]{16}$")  # a function that is written for calls by name
_LONG = 40  # characters of a function's name
_OF_CODE = ("debug", "fastmath", "lto")  # options of a kernel that its external code is compiled with
_PATHS = "include_paths"  # an option that says nothing of the code: the digest of a source has that of its headers
_PATH = re.compile(r"(?:[\w$]+::)+")  # of a name that begins with it: its modules or namespaces
_NUMBER = re.compile(r" #\d+$")  # of one of several objects of one name
_NUMBERS = {"registers": "", "shared": " bytes", "stack": " bytes", "spill_stores": " bytes", "spill_loads": " bytes"}


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference: for which architecture, of what, before and now; ``None`` for what is only in one of the
    reports."""

    arch: str
    what: str
    before: str | None
    now: str | None

    def __str__(self) -> str:
        before, now = ("nothing" if each is None else each for each in (self.before, self.now))
        return f"{self.arch}: {self.what}: {before} → {now}"


def changes(before: KernelReport, now: KernelReport) -> list[Change]:
    """Return what differs, in the order of a report. Times are not compared. Builds for one architecture are compared
    with each other, then in order those for architectures that only one of the reports has."""
    found = list(_differing("all", "kernel", before.kernel, now.kernel))
    found += _differing("all", "signature", before.signature, now.signature)
    versions = dict(before.versions), dict(now.versions)
    for name in dict.fromkeys((*versions[0], *versions[1])):
        found += _differing("all", name, versions[0].get(name), versions[1].get(name))
    builds = {build.arch: build for build in before.builds}, {build.arch: build for build in now.builds}
    alone = [[build for arch, build in each.items() if arch not in other] for each, other in (builds, builds[::-1])]
    pairs = [(builds[0][arch], build) for arch, build in builds[1].items() if arch in builds[0]]
    with_python = versions[0].get("Python") == versions[1].get("Python")
    for old, new in [*pairs, *zip(*alone, strict=False)]:
        found += _of_build(old, new, with_python)
    number = min(map(len, alone))
    found += [Change(build.arch, "build", formatting.code(build.result), None) for build in alone[0][number:]]
    found += [Change(build.arch, "build", None, formatting.code(build.result)) for build in alone[1][number:]]
    return found


def to_text(before: KernelReport, now: KernelReport) -> str:
    return "\n".join(map(str, changes(before, now))) or "nothing changed"


def to_json(before: KernelReport, now: KernelReport) -> str:
    """Return what differs as JSON: an object with a ``format``, its ``version``, and a list of ``changes``, each with
    the fields of `Change`."""
    listed = [dataclasses.asdict(change) for change in changes(before, now)]
    return json.dumps({"format": FORMAT, "version": VERSION, "changes": listed}, indent=2, ensure_ascii=False)


def _of_build(before: BuildReport, now: BuildReport, with_python: bool) -> Iterator[Change]:
    """Yield how builds differ; *with_python* if digests of Python functions can be compared. Where options or the
    architecture differ, only what depends on neither is compared."""
    arch = now.arch if before.arch == now.arch else f"{before.arch} → {now.arch}"
    given = [dict(build.options) for build in (before, now)]
    for name in given[1] if given[0] else ():
        yield from _differing(arch, f"option {name}", given[0].get(name), given[1][name])
    has_same_link = before.link.lto == now.link.lto
    of_code = [[each.get(name) for name in _OF_CODE] for each in given if each]
    is_same = before.arch == now.arch and of_code[1:] == of_code[:-1] and has_same_link
    for name, unit in _NUMBERS.items():
        what = name.replace("_", " ")
        yield from _differing(arch, what, *(_number(each.result, name, unit) for each in (before, now)))
    yield from _of_occupancy(arch, before.result, now.result)
    yield from _differing(arch, "result", formatting.code(before.result), formatting.code(now.result))
    if given[0].get("lto") == given[1].get("lto"):
        yield from _differing(arch, "link", *(f"with{'' if each.link.lto else 'out'} LTO" for each in (before, now)))
    options = [[each for each in build.link.options or () if not each.startswith(_KNOWN)] for build in (before, now)]
    only = [[each for each in some if each not in other] for some, other in (options, options[::-1])]
    yield from _differing(arch, "options", *(" ".join(each) or None for each in only))
    pairs = list(_pairs(before.calls, now.calls))
    yield from _of_inlining(arch, before.calls, now.calls, pairs, has_same_link)
    yield from _of_functions(arch, before.result, now.result)
    compiled_with = [*dict.fromkeys(change for each in pairs for change in _of_options(arch, *each))]
    # Names of functions depend on options.
    can_be_compared = before.arch == now.arch and has_same_link and not compiled_with
    in_calls = {name for old, new in pairs for name in _edited_python(old, new)}
    yield from _of_own_code(arch, before.link.inputs, now.link.inputs, can_be_compared, with_python, in_calls)
    yield from compiled_with
    yield from _of_calls(arch, pairs, is_same, has_same_link)


def _of_occupancy(arch: str, before: ResultReport, now: ResultReport) -> Iterator[Change]:
    """Yield how the occupancy differs for the sizes of blocks that both reports have, those alike together."""
    sides = [{each.threads: formatting.occupancy(each) for each in result.occupancy} for result in (before, now)]
    sizes = defaultdict[tuple[str, str], list[str]](list)
    for threads, text in sides[1].items():
        if threads in sides[0]:
            sizes[sides[0][threads], text].append(str(threads))
    for both, some in sizes.items():
        yield from _differing(arch, f"occupancy of {formatting.listed(some)} threads", *both)


def _of_inlining(
    arch: str,
    before: Sequence[CallReport],
    now: Sequence[CallReport],
    pairs: Sequence[tuple[Any, Any]],
    has_same_link: bool,
) -> Iterator[Change]:
    """Yield how many calls are inlined, and which of a few other ones are, unless that is a change of the call."""
    if max(len(before), len(now)) > 1:
        numbers = (formatting.inlined(calls) for calls in (before, now))
        yield from _differing(arch, "inlined", *(f"{number} calls" if number else None for number in numbers))
    if not has_same_link:
        both = [(old, new) for old, new in pairs if old is not None and new is not None]
        other = [
            (old, new) for old, new in both if None not in (old.inlined, new.inlined) and old.inlined != new.inlined
        ]
        for old, new in other if len(other) <= _FEW else ():
            yield Change(arch, f"call {_named(new)}", *("inlined" if each.inlined else "called" for each in (old, new)))


def _of_functions(arch: str, before: ResultReport, now: ResultReport) -> Iterator[Change]:
    """Yield how the functions of the results differ in size; of many that only one has, how many there are."""
    sizes = [{each.name: each.size for each in result.functions} for result in (before, now)]
    moved = _moved(*sizes)
    kernels = [result.functions[0].name for result in (before, now) if result.functions]
    if len(kernels) == 2 and kernels[0] not in sizes[1] and kernels[1] not in (*sizes[0], *moved.values()):
        moved[kernels[0]] = kernels[1]
    shown = _short(dict.fromkeys((*sizes[0], *sizes[1])))
    alone = [[name for name in sizes[0] if moved.get(name, name) not in sizes[1]]]
    alone.append([name for name in sizes[1] if name not in sizes[0] and name not in moved.values()])
    for name in (*sizes[0], *alone[1]):
        if not any(name in some and len(some) > _FEW for some in alone):
            new = moved.get(name, name)
            old_size, new_size = (
                formatting.size(some[key]) if key in some else None
                for some, key in zip(sizes, (name, new), strict=True)
            )
            yield from _differing(arch, f"function {shown[new]}", old_size, new_size)
    for some, of_result, what in zip(alone, sizes, ("removed", "new"), strict=True):
        if len(some) > _FEW:
            size = formatting.size(sum(of_result[name] for name in some))
            sides = [f"{formatting.listed([shown[name] for name in some])}, {size}", None]
            yield Change(arch, f"{len(some)} {what} functions", *(sides if what == "removed" else sides[::-1]))


def _short(names: Collection[str]) -> dict[str, str]:
    """Return *names*, the long ones without the types of the arguments, and those of calls of C++ without the hash,
    where no other one is equal without them."""
    heads = {name: _OF_CALL.sub(r"\1", name) if "(" not in name else f"{name.partition('(')[0]}(…)" for name in names}
    same = Counter(heads.values())
    return {
        name: head if same[head] == 1 and (len(name) > _LONG or "(" not in name) else name
        for name, head in heads.items()
    }


def _of_own_code(
    arch: str,
    before: Sequence[CodeReport],
    now: Sequence[CodeReport],
    can_be_compared: bool,
    with_python: bool,
    in_calls: AbstractSet[str],
) -> Iterator[Change]:
    """Yield how the kernel's own code differs: in which Python functions, unless all are *in_calls*, whose edit
    is one of a call; without them if it *can_be_compared* and calls functions of the same names: those of calls by name
    depend on the library's text, and are in the code."""
    own = [[code for code in inputs if code.own] for inputs in (before, now)]
    functions = [Counter(each for code in some[:1] for each in code.functions) for some in own]
    edited = [*(functions[0] - functions[1]), *(functions[1] - functions[0])] if with_python and all(functions) else []
    names = sorted({name.replace("<locals>.", "") for name, _ in edited})
    if names and in_calls >= {name.rpartition(".")[2] for name in names}:
        return
    called = [[code.undefined for code in some] for some in own]
    if names or (can_be_compared and all(own) and called[0] == called[1]):
        sides = ([formatting.code(code) for code in some] for some in own)
        where = f", in {formatting.listed(names)}" if names else ""
        yield from _differing(arch, f"the kernel's own code{where}", *map(formatting.listed, sides))


def _edited_python(before: CallReport | None, now: CallReport | None) -> Iterator[str]:
    """Yield the names of the Python functions that the C++ of two calls calls, and that differ."""
    if before is not None and now is not None and len(before.returned) == len(now.returned):
        for old, new in zip(before.returned, now.returned, strict=True):
            is_python = CUDA.name not in (old.kind, new.kind) and None not in (old.source, new.source)
            if is_python and old.source != new.source:
                yield new.name.partition("(")[0]


def _moved(before: Collection[str], now: Collection[str]) -> dict[str, str]:
    """Return the new names of functions that are in another module or namespace now: of those that only one of the
    results has, the only ones that are equal without it."""
    alone = [[name for name in some if name not in other] for some, other in ((before, now), (now, before))]
    short = [Counter(_without_path(name) for name in names) for names in alone]
    only = {name for name, number in short[0].items() if number == short[1][name] == 1}
    old, new = ({_without_path(name): name for name in names} for names in alone)
    return {old[name]: new[name] for name in only}


def _without_path(name: str) -> str:
    found = _PATH.match(name)
    return name[found.end() :] if found else name


def _of_calls(arch: str, pairs: Sequence[tuple[Any, Any]], same_target: bool, same_link: bool) -> Iterator[Change]:
    """Yield how calls differ, which come in *pairs*. Those that differ in nothing but the code are one change; where
    only digests of whole sources can be compared, one for each file. What is inlined is compared where both links are
    with link-time optimisation or both without (*same_link*)."""
    # By the functions that differ, with their digests: the calls, and the digests of what they returned.
    edited = defaultdict[tuple[_Pairs, _Pairs], list[tuple[str, list[str], list[str]]]](list)
    files: dict[str, tuple[dict[str, None], Change]] = {}  # the names of functions, and the change without them
    # By what is called, if that is the same, and what it became: the calls.
    alike = defaultdict[tuple[str, str | None, str | None], list[CallReport]](list)
    for old, new in pairs:
        known = new or old
        are_two = old is not None and new is not None
        is_same = are_two and (_object(old) == _object(new) or _named(old) == _named(new))
        same_options = is_same and not any(_of_options(arch, old, new))
        same_code = same_target and same_options
        if is_same and _became(old, same_link) == _became(new, same_link):
            digests = _different_digests(old, new, same_code)
            file = file_of_item(known.object)
            if digests[0] == digests[1]:
                continue
            functions = _different_functions(old, new) if same_options else None
            if functions is not None and not any(functions) and not same_code:
                continue  # what differs in the source is not reached
            named = _of_cxx(functions) if functions is not None else ((), ())
            if file and all(each.startswith("source ") for each in itertools.chain(*digests)):
                change = Change(arch, f"code of {file}", digests[0][0], digests[1][0])
                files.setdefault(file, ({}, change))[0].update(dict.fromkeys(_names(named)))
            else:
                edited[named].append((_named(known), *digests))
            continue
        if are_two and not is_same:
            is_alike = not same_link or (old.inlined, old.called) == (new.inlined, new.called)
            names = [f"{_named(each)}{'' if is_alike else _how(each)}" for each in (old, new)]
            alike["", names[0], names[1]].append(known)
        else:
            is_edited = not are_two or _digests(old, new, same_code) != _digests(new, old, same_code)
            sides = [_call(*each, same_code, digests=is_edited) for each in ((old, new), (new, old))]
            alike[_named(known), sides[0], sides[1]].append(known)
    for (name, before, now), calls in alike.items():
        yield Change(arch, _calls_at(name, calls), before, now)
    for inner, change in files.values():
        where = f", in {formatting.listed(list(inner))}" if inner else ""
        yield dataclasses.replace(change, what=f"{change.what}{where}")
    for different, some in edited.items():
        called, *both = zip(*some, strict=True)
        returned = [list(dict.fromkeys(itertools.chain(*each))) for each in both]
        yield _edit(arch, list(dict.fromkeys(called)), different, returned)


def _of_options(arch: str, before: CallReport | None, now: CallReport | None) -> Iterator[Change]:
    """Yield how the compile options of what two calls returned differ."""
    if before is None or now is None or len(before.returned) != len(now.returned):
        return
    for old, new in zip(before.returned, now.returned, strict=True):
        options = dict(old.options), dict(new.options)
        where = file_of_item(now.object) or new.name
        for name in dict.fromkeys((*options[0], *options[1])):
            if name != _PATHS:
                yield from _differing(arch, f"option {name} of {where}", *(each.get(name) for each in options))


def _edit(arch: str, calls: Sequence[str], functions: tuple[_Pairs, _Pairs], digests: Sequence[list[str]]) -> Change:
    """Return the change of the code of *calls*, which returned code with these *digests*: in a function that one call
    is named after, or in others of C++, where these *functions* are known to differ."""
    inner = _names(functions)
    if not inner or [name.partition("(")[0] for name in calls] == [name.partition("(")[0] for name in inner]:
        return Change(arch, f"code of {formatting.listed(calls)}", *map(formatting.listed, digests))
    sides = [formatting.listed([f"content {digest}" for _, digest in side]) for side in functions]
    what = f"code of {formatting.listed(calls)}, in {formatting.listed(inner)}"
    return Change(arch, what, sides[0] or None, sides[1] or None)


def _of_cxx(functions: tuple[_Pairs, _Pairs]) -> tuple[_Pairs, _Pairs]:
    """Return the pairs of C++ functions: those of CUDA and of calls by name have no types."""
    before, now = (tuple(pair for pair in side if "(" in pair[0]) for side in functions)
    return before, now


def _names(functions: tuple[_Pairs, _Pairs]) -> list[str]:
    return sorted({name for side in functions for name, _ in side})


def _different_functions(before: CallReport, now: CallReport) -> tuple[_Pairs, _Pairs] | None:
    """Return the functions of two calls that differ, with their digests; ``None`` where they are not known."""
    calls = [Counter(each for code in call.returned for each in code.functions) for call in (before, now)]
    if not all(code.functions for call in (before, now) for code in call.returned):
        return None
    one, other = (tuple(sorted(each)) for each in (calls[0] - calls[1], calls[1] - calls[0]))
    return one, other


def _pairs(before: Sequence[CallReport], now: Sequence[CallReport]) -> Iterator[tuple[Any, Any]]:
    """Yield calls that are the same one in both reports, in the order of *now*, then those that are gone: calls in the
    same place of the sequence of calls, then those that were moved, by their object."""
    partner = dict(_aligned(before, now))  # of a call now: its index before
    left = sorted({*range(len(before))} - {*partner.values()})
    for key in (_object, _named):
        waiting: defaultdict[Any, list[int]] = defaultdict(list)
        for number in left:
            waiting[key(before[number])].append(number)
        for number, call in enumerate(now):
            if number not in partner and waiting[key(call)]:
                partner[number] = waiting[key(call)].pop(0)
        left = sorted({*left} - {*partner.values()})
    for number, call in enumerate(now):
        yield before[partner[number]] if number in partner else None, call
    yield from ((before[number], None) for number in left)


def _aligned(before: Sequence[CallReport], now: Sequence[CallReport]) -> Iterator[tuple[int, int]]:
    """Yield pairs of the indices of a call *now* and *before*, of the alignment of the two sequences that costs the
    least edits."""
    sides = [[[key(call) for key, _ in _ALIKE] for call in some] for some in (before, now)]

    def distance(old: int, new: int) -> int:
        keys = zip(sides[0][old], sides[1][new], _ALIKE, strict=True)
        return next((cost for one, other, (_, cost) in keys if one == other), 2 * _GAP)

    first, ends = 0, [len(before), len(now)]
    while first < min(ends) and not distance(first, first):
        yield first, first
        first += 1
    while first < min(ends) and not distance(ends[0] - 1, ends[1] - 1):
        ends = [end - 1 for end in ends]
        yield ends[1], ends[0]
    rows = [[_GAP * (ends[1] - new) for new in range(first, ends[1] + 1)]]  # the costs of what is left, from the end
    for old in reversed(range(first, ends[0])):
        row = [rows[-1][-1] + _GAP]
        for at in reversed(range(ends[1] - first)):
            together = distance(old, first + at) + rows[-1][at + 1]
            row.append(min(together, rows[-1][at] + _GAP, row[-1] + _GAP))
        rows.append(row[::-1])
    old = new = first
    while old < ends[0] and new < ends[1]:
        here, below = rows[ends[0] - old], rows[ends[0] - old - 1]
        cost = distance(old, new)
        if cost < 2 * _GAP and here[new - first] == cost + below[new - first + 1]:
            yield new, old
            old, new = old + 1, new + 1
        elif here[new - first] == below[new - first] + _GAP:
            old += 1
        else:
            new += 1


def _named(call: CallReport) -> str:
    """Return what is called, without the number of the object: numbers change with other objects."""
    return f"{_NUMBER.sub('', call.name)}({', '.join(call.argtypes)})"


def _object(call: CallReport) -> tuple[str, tuple[str, ...]]:
    """Return which object is called, by its repr: its name depends on the other objects of the report. An item of a
    library is the same when the library's source was edited."""
    item = item_name(call.object)
    return item or (_named(call) if call.object.startswith("<") else call.object), call.argtypes


# What pairs two calls of a sequence, the closest first, and what the difference costs; a call that is new or gone costs
# `_GAP`. Two exchanged calls are moved, one that is another is replaced.
_GAP = 10
_ALIKE: tuple[tuple[Callable[[CallReport], Any], int], ...] = (
    (lambda call: (_object(call), call.text), 0),
    (lambda call: (_named(call), call.text), 1),
    (lambda call: call.text, 5),
    (_object, 6),
    (_named, 7),
    (lambda call: [frame.function for frame in call.chain], 15),
)


def _became(call: CallReport, same_link: bool) -> tuple[bool | None, tuple[str, ...], list[str]]:
    names = [code.name for code in call.returned]
    return (call.inlined, call.called, names) if same_link else (None, (), names)


def _calls_at(name: str, calls: Sequence[CallReport]) -> str:
    """Return *calls* of what has this *name*, if all have one, with their lines."""
    what = "call" if len(calls) == 1 else f"{len(calls)} calls"
    of = "" if not name else f" {name}" if len(calls) == 1 else f" of {name}"
    return f"{what}{of} at {formatting.places(calls)}"


def _how(call: CallReport) -> str:
    called = f"; {formatting.listed(call.called)} called" if call.called else "; called"
    return {True: "; inlined", False: called, None: ""}[call.inlined]


def _call(call: CallReport | None, other: CallReport | None, same_code: bool, *, digests: bool) -> str | None:
    """Return what a *call* became and returned, with its *digests*."""
    if call is None:
        return None
    how = _how(call).removeprefix("; ")
    names = [code.name for code in call.returned]
    if digests:
        names = [f"{name} {digest}" for name, digest in zip(names, _digests(call, other, same_code), strict=True)]
    is_told = how and not digests and other is not None and names == [code.name for code in other.returned]
    return how if is_told else "; ".join(each for each in (how, ", ".join(names) or "nothing to link") if each)


def _different_digests(before: CallReport, now: CallReport, same_code: bool) -> tuple[list[str], list[str]]:
    """Return the digests of what two calls returned, without those of code that is the same in both."""
    sides = _digests(before, now, same_code), _digests(now, before, same_code)
    if len(sides[0]) != len(sides[1]):
        return sides
    different = [pair for pair in zip(*sides, strict=True) if pair[0] != pair[1]]
    return [old for old, _ in different], [new for _, new in different]


def _digests(call: CallReport, other: CallReport | None, same_code: bool) -> list[str]:
    """Return the digests of what a *call* returned, each the first that both reports know: that of the functions that
    are called, which is one of an architecture; that of the source with its headers; that of the text alone."""
    others = call.returned if other is None or len(other.returned) != len(call.returned) else other.returned
    fields = ("content", "source", "sha256")[not same_code and other is not None :]
    return [
        formatting.digest(code, [name for name in fields if getattr(each, name)])
        for code, each in zip(call.returned, others, strict=True)
    ]


def _number(result: ResultReport, name: str, unit: str) -> str | None:
    value = getattr(result, name)
    return f"{value}{unit}" if value is not None else formatting.stack(result) if name == "stack" else None


def _differing(arch: str, what: str, before: str | None, now: str | None) -> Iterator[Change]:
    if before != now:
        yield Change(arch, what, before, now)

# SPDX-License-Identifier: BSD-2-Clause
"""Which functions were edited between two reports, in Python and in what calls return."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction

from ..function_code.object_names import file_of_item
from . import formatting
from .change import Change, differing, plain_option
from .cxx_definitions import own_name
from .paired_calls import Pair, code_options, is_same_object, named
from .records import FOR_ARCHITECTURES, CallReport, CodeReport

_DEFAULTS = {"fastmath": "False", "forceinline": "False", "inline": "never"}  # of a device function
_TEXT = "a source without a file"
_MOST = 8  # functions that are listed
_FEW = 4  # edits that are told by themselves


@dataclass(frozen=True)
class _Edit:
    """What was edited, in which files. Where that is not known, it was changed by an edit of the files: what has this
    name, or without one the calls."""

    name: str
    files: str
    is_known: bool = True


_Calls: TypeAlias = dict[_Edit, dict[str, None]]


def edits_in_python(
    arch: str,
    before: Sequence[PythonFunction],
    now: Sequence[PythonFunction],
    of_kernel: Collection[tuple[str, ...]],
    kernels: tuple[str, str],
) -> Iterator[Change]:
    """Yield which functions were edited, how the values that they refer to differ, and which are new or gone.
    Options that change as those *of_kernel* do, by name with `plain_option` before and now, are not repeated. *kernels*
    are the names of the kernel, which count as one."""
    before = [replace(each, name=kernels[1]) if each.name == kernels[0] else each for each in before]
    sides = [_by_name(some) for some in (before, now)]
    alone: list[list[str]] = [[], []]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        content = [[each.content for each in side.get(name, ())] for side in sides]
        old, new = (
            [each for each in side.get(name, ()) if each.content not in other]
            for side, other in zip(sides, content[::-1], strict=True)
        )
        for one, other in zip(old, new, strict=False):
            yield from _of_function(arch, one, other, of_kernel)
        alone[0] += [_shown(each) for each in old[len(new) :]]
        alone[1] += [_shown(each) for each in new[len(old) :]]
    yield from differing(arch, "functions in Python", *(formatting.listed(some) or None for some in alone))


def _by_name(functions: Iterable[PythonFunction]) -> dict[str, list[PythonFunction]]:
    found: dict[str, list[PythonFunction]] = {}
    for each in functions:
        found.setdefault(each.name, []).append(each)
    return found


def _of_function(
    arch: str, before: PythonFunction, now: PythonFunction, of_kernel: Collection[tuple[str, ...]]
) -> Iterator[Change]:
    values = dict(before.values), dict(now.values)
    names = list(dict.fromkeys((*values[0], *values[1])))
    if (before.digest, before.parameters) != (now.digest, now.parameters):
        yield Change(arch, f"{_shown(now)} was edited")
        names = [name for name in names if name in values[0] and name in values[1]]
    options = dict(before.options), dict(now.options)
    for name in dict.fromkeys((*options[0], *options[1])):
        sides = [each.get(name, _DEFAULTS[name]) for each in options]
        if (name, *map(plain_option, sides)) not in of_kernel:
            yield from differing(arch, f"option {name} of {_shown(now)}", *sides)
    for name in names:
        old, new = (each.get(name) for each in values)
        what = f"{name.partition(' ')[2]} in {_shown(now)}"
        if old is not None and new is not None and old != new and old.startswith("<"):  # digests of long values
            yield Change(arch, f"{what} has another value")
        else:
            yield from differing(arch, what, old, new)


def _shown(function: PythonFunction) -> str:
    return f"{function.name} ({formatting.file(function.path)}:{function.line})"


def other_functions(arch: str, pairs: Iterable[Pair]) -> Iterator[Change]:
    """Yield which of the calls that come in *pairs* pass other Python functions to C++: those that both reports have,
    and that have changed places."""
    found = [(old, new, one, other) for old, new, one, other in _returned(pairs) if one.is_python and other.is_python]
    sides = {one.source for _, _, one, _ in found}, {other.source for _, _, _, other in found}
    for old, new, one, other in found:
        if one.source != other.source and one.source in sides[1] and other.source in sides[0]:
            types = zip(old.shown_types or old.argtypes, new.shown_types or new.argtypes, strict=True)
            differ = [*zip(*(pair for pair in types if pair[0] != pair[1]), strict=True)]
            if differ:
                what = f"call {named(new)} at {formatting.places([new])}"
                yield Change(arch, what, *(formatting.listed(each) for each in differ))


def edits_in_calls(arch: str, pairs: Iterable[Pair], same_code: bool, with_python: bool) -> Iterator[Change]:
    """Yield which functions of what calls return were edited, which come in *pairs*, each once with the calls that it
    changes. *same_code*: whether architecture and options are the same; *with_python*: whether `edits_in_python` says
    what there is to say of functions in Python."""
    pairs = list(pairs)
    yield from dict.fromkeys(_of_expressions(arch, pairs))
    calls: _Calls = defaultdict(dict)
    for old, new, one, other in _returned(pairs):
        if not (with_python and one.is_python and other.is_python):
            is_same = same_code and code_options(one) == code_options(other)
            for edit in _edited(one, other, file_of_item(new.object), is_same):
                if edit.name or old.expression == new.expression:
                    calls[edit][named(new)] = None
    yield from _told(arch, calls)


def _told(arch: str, calls: _Calls) -> Iterator[Change]:
    """Yield the edits whose *calls* these are; those that read alike together."""
    alone = defaultdict[str, list[str]](list)  # by file, the functions that are called by themselves
    used = defaultdict[tuple[str, str], dict[tuple[str, ...], list[str]]](dict)  # by file and verb: by calls, the names
    changed = defaultdict[str, dict[str, None]](dict)  # by files: what an edit of these changed
    known = {edit.files for edit in calls if edit.is_known}
    for edit, some in calls.items():
        by = formatting.listed([*some])
        place = f" in {edit.files}" if edit.files else ""
        if edit.name and edit.name == edit.files:
            yield from [] if edit.files in known else [Change(arch, f"{edit.name} was edited")]
        elif edit.is_known and _is_call_of(edit.name, some):
            alone[place].append(edit.name)
        elif edit.is_known:
            used[place, _used(edit.name)].setdefault(tuple(some), []).append(edit.name)
        elif edit.files:
            named_so = [*some] if not edit.name else [edit.name] if _is_call_of(edit.name, some) else []
            changed[edit.files] |= dict.fromkeys(named_so or [f"{edit.name}, {_used(edit.name)} by {by},"])
        else:
            yield Change(arch, f"code of {by} was edited")
    for files, names in changed.items():
        yield Change(arch, f"{_were([*names])} changed by an edit of {files}")
    for (place, verb), groups in used.items():
        is_long = len(groups) > _FEW
        together = {tuple(dict.fromkeys(itertools.chain(*groups))): [*itertools.chain(*groups.values())]}
        for callers, edited in (together if is_long else groups).items():
            yield Change(arch, f"{_were(edited, f'{place}, {verb} by {formatting.listed(callers)},')} edited")
    for place, edited in alone.items():
        yield Change(arch, f"{_were(edited, place)} edited")


def _were(names: Sequence[str], rest: str = "") -> str:
    return f"{formatting.listed(names, _MOST)}{rest} {'was' if len(names) == 1 else 'were'}"


def _of_expressions(arch: str, pairs: Iterable[Pair]) -> Iterator[Change]:
    """Yield how the C++ expressions differ that are called in *pairs*."""
    for old, new in pairs:
        if old is not None and new is not None and is_same_object(old, new):
            sides = formatting.different_parts(old.expression, new.expression)
            yield from differing(arch, f"C++ of {new.name}", *sides) if all(sides) else ()


def _is_call_of(name: str, calls: Iterable[str]) -> bool:
    """Whether *calls* are one, of the function that has this *name*."""
    return [name.partition("(")[0]] == [call.partition("(")[0] for call in calls]


def _used(name: str) -> str:
    return "called" if "(" in name else "used"


def _returned(pairs: Iterable[Pair]) -> Iterator[tuple[CallReport, CallReport, CodeReport, CodeReport]]:
    """Yield the calls of the same object that come in *pairs*, with each code that both returned."""
    for old, new in pairs:
        if old is None or new is None or not is_same_object(old, new) or len(old.returned) != len(new.returned):
            continue
        for one, other in zip(old.returned, new.returned, strict=True):
            yield old, new, one, other


def _edited_files(before: CodeReport, now: CodeReport) -> list[str]:
    """Return the names of the files that differ, of those that both sources read."""
    sides = [_by_file(each) for each in (before, now)]
    return [name for name, digests in sides[1].items() if sides[0].get(name, digests) != digests]


def _by_file(code: CodeReport) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, digest in code.files:
        found.setdefault(name, []).append(digest)
    return found


def edits_of_files(arch: str, pairs: Iterable[Pair]) -> Iterator[Change]:
    """Yield which sources of calls, which come in *pairs*, were edited, where the compiled code of no function says
    that it was: the definitions that differ, or else the calls that are inlined in one report alone, or else the
    files."""
    written: _Calls = defaultdict(dict)
    found = defaultdict[str, list[str]](list)  # by files: the calls that are inlined in one report alone
    for old, new, one, other in _returned(pairs):
        if one.source is not None and other.source is not None and one.source != other.source:
            files = _files(_edited_files(one, other)) or ("" if other.is_python else _TEXT)
            found[files] += [named(new)] * (old.inlined != new.inlined)
            for edit in _rewritten(one, other, ()):
                written[edit][named(new)] = None
    found.pop("", None)
    if written:
        yield from _told(arch, written)
        return
    changed = {files: some for files, some in found.items() if some}
    for files, some in changed.items():
        calls = list(dict.fromkeys(some))
        is_text = files == _TEXT
        by = formatting.listed(calls)
        yield Change(arch, f"code of {by} was edited" if is_text else f"{_were(calls)} changed by an edit of {files}")
    for files in found if not changed else ():
        yield Change(arch, f"{files} was edited")


def _files(names: Iterable[str]) -> str:
    return formatting.listed([name for name in names if name])


def _rewritten(before: CodeReport, now: CodeReport, different: Collection[str]) -> list[_Edit]:
    """Return the definitions that both reports have and whose texts differ. Of functions of one name, those are meant
    whose compiled code is *different*, if there are any."""
    sides = [defaultdict[str, dict[str, str]](dict), defaultdict[str, dict[str, str]](dict)]
    for side, code in zip(sides, (before, now), strict=True):
        for name, file, digest in code.definitions:
            side[name][file] = digest
    compiled = defaultdict[str, list[str]](list)
    names = dict(now.functions)
    for name in (*names, *(name for name, _ in before.functions if own_name(name) not in set(map(own_name, names)))):
        compiled[own_name(name)].append(name)
    found = []
    for name in sides[1]:
        old, new = sides[0].get(name), sides[1][name]
        if old and sorted(old.values()) != sorted(new.values()):
            files = _files(file for file in new if new[file] != old.get(file)) or _files(new)
            shown = list(dict.fromkeys(compiled.get(name, [name])))
            found += [_Edit(each, files) for each in [each for each in shown if each in different] or shown]
    return found


def _edited(before: CodeReport, now: CodeReport, file: str | None, same_code: bool) -> list[_Edit]:
    """Return what was edited in code of a *file*. The functions that are called tell whether anything was, where both
    reports know them, and else the source. What was edited is what is written in another way; where that is not known,
    the functions that differ were changed by an edit of the files."""
    has_same_names = dict(before.functions).keys() == dict(now.functions).keys()
    if same_code and has_same_names and before.content is not None and before.content == now.content:
        return []
    if not (before.functions and now.functions and code_options(before) == code_options(now)):
        one, other = (before.source, now.source) if before.source and now.source else (before.sha256, now.sha256)
        return [_Edit(file or "", file or "", is_known=False)] if one != other else []
    sides = Counter(before.functions), Counter(now.functions)
    different = {name for name, _ in (*(sides[0] - sides[1]), *(sides[1] - sides[0]))}
    if not different or (before.source == now.source and before.source is not None):
        return []
    if known := _rewritten(before, now, different):
        return known
    if different == {FOR_ARCHITECTURES}:
        return [_Edit(file or "", file or "", is_known=False)]
    files = _files(_edited_files(before, now))
    both = dict(before.functions).keys() & dict(now.functions).keys() & different
    names = sorted(filter(None, both - {FOR_ARCHITECTURES}))
    return [_Edit(name, files, is_known=False) for name in names or [""]]

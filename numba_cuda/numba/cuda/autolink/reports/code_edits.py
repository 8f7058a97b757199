# SPDX-License-Identifier: BSD-2-Clause
"""Which functions were edited between two reports, in Python and in what calls return."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from numba.cuda.cudadrv.external_code.inputs.kinds import CUDA
from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction

from ..function_code.object_names import file_of_item
from . import formatting
from .change import Change, differing
from .paired_calls import Pair, is_same_object, named
from .records import FOR_ARCHITECTURES, CodeReport


def edits_in_python(arch: str, before: Sequence[PythonFunction], now: Sequence[PythonFunction]) -> Iterator[Change]:
    """Yield which functions were edited, how the values that they refer to differ, and which are new or gone."""
    sides = [_by_name(some) for some in (before, now)]
    alone: list[list[str]] = [[], []]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        content = [[each.content for each in side.get(name, ())] for side in sides]
        old, new = (
            [each for each in side.get(name, ()) if each.content not in other]
            for side, other in zip(sides, content[::-1], strict=True)
        )
        for one, other in zip(old, new, strict=False):
            yield from _of_function(arch, one, other)
        alone[0] += [_shown(each) for each in old[len(new) :]]
        alone[1] += [_shown(each) for each in new[len(old) :]]
    yield from differing(arch, "functions in Python", *(formatting.listed(some) or None for some in alone))


def _by_name(functions: Iterable[PythonFunction]) -> dict[str, list[PythonFunction]]:
    found: dict[str, list[PythonFunction]] = {}
    for each in functions:
        found.setdefault(each.name, []).append(each)
    return found


def _of_function(arch: str, before: PythonFunction, now: PythonFunction) -> Iterator[Change]:
    if (before.digest, before.parameters) != (now.digest, now.parameters):
        yield Change(arch, f"{_shown(now)} was edited")
        return
    values = dict(before.values), dict(now.values)
    for name in dict.fromkeys((*values[0], *values[1])):
        old, new = (each.get(name) for each in values)
        what = f"{name.partition(' ')[2]} in {_shown(now)}"
        if old is not None and new is not None and old != new and old.startswith("<"):  # digests of long values
            yield Change(arch, f"{what} has another value")
        else:
            yield from differing(arch, what, old, new)


def _shown(function: PythonFunction) -> str:
    return f"{function.name} ({formatting.file(function.path)}:{function.line})"


def edits_in_calls(arch: str, pairs: Iterable[Pair], same_code: bool, with_python: bool) -> Iterator[Change]:
    """Yield which functions of what calls return were edited, which come in *pairs*, each once with the calls that it
    changes. *same_code*: whether architecture and options are the same; *with_python*: whether `edits_in_python` says
    what there is to say of functions in Python."""
    calls = defaultdict[tuple[str, str | None], dict[str, None]](dict)  # by function and file, the calls
    others = defaultdict[tuple[str | None, str | None], dict[str, None]](dict)  # by functions that are gone and new
    for old, new in pairs:
        if old is None or new is None or not is_same_object(old, new) or len(old.returned) != len(new.returned):
            continue
        file = file_of_item(new.object)
        for one, other in zip(old.returned, new.returned, strict=True):
            if with_python and _is_python(one) and _is_python(other):
                continue
            edited, gone, added = _edited(one, other, file, same_code and one.options == other.options)
            for name in edited:
                calls[name, file][named(new)] = None
            if gone or added:
                others[formatting.listed(gone) or None, formatting.listed(added) or None][named(new)] = None
    for (name, file), some in calls.items():
        yield Change(arch, f"{_described(name, file, [*some])} was edited")
    for (old_names, new_names), some in others.items():
        yield Change(arch, f"functions in the code of {formatting.listed([*some])}", old_names, new_names)


def _described(name: str, file: str | None, calls: Sequence[str]) -> str:
    """Return a function with this *name*, or what is inlined in its *calls* where there is none."""
    place, by = f" in {file}" if file else "", formatting.listed(calls)
    if name == file:
        return name
    if not name:
        return f"code of {by}{place}"
    is_called = [name.partition("(")[0]] == [call.partition("(")[0] for call in calls]
    return f"{name}{place}{'' if is_called else f', called by {by},'}"


def _is_python(code: CodeReport) -> bool:
    return code.kind != CUDA.name and code.source is not None


def _edited(
    before: CodeReport, now: CodeReport, file: str | None, same_code: bool
) -> tuple[list[str], list[str], list[str]]:
    """Return the functions that were edited in code of a *file*, an empty text for what is inlined in the call, or the
    file; those that are gone, and those that are new. What both reports know decides: the functions that are called,
    or else the source."""
    if same_code and before.content is not None and before.content == now.content:
        return [], [], []
    if before.functions and now.functions and before.options == now.options:
        sides = Counter(before.functions), Counter(now.functions)
        different = [dict.fromkeys(name for name, _ in some) for some in (sides[0] - sides[1], sides[1] - sides[0])]
        names = [{name for name, _ in code.functions} for code in (before, now)]
        gone, added = (
            [name for name in some if name not in other] for some, other in zip(different, names[::-1], strict=True)
        )
        edited = sorted({*different[0], *different[1]} - {*gone, *added})
        return [name for name in edited if name != FOR_ARCHITECTURES] or [file or ""][: len(edited)], gone, added
    one, other = (before.source, now.source) if before.source and now.source else (before.sha256, now.sha256)
    return [file or ""] if one != other else [], [], []

# SPDX-License-Identifier: BSD-2-Clause
"""Which functions were edited between two reports, in Python and in what calls return."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

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
    # By function, the file of its library and the files that were edited: the calls.
    calls = defaultdict[tuple[str, str | None, tuple[str, ...]], dict[str, None]](dict)
    for old, new, one, other in _returned(pairs):
        if not (with_python and one.is_python and other.is_python):
            file, files = file_of_item(new.object), tuple(_edited_files(one, other))
            for name in _edited(one, other, file, same_code and code_options(one) == code_options(other)):
                if name or old.expression == new.expression:
                    calls[name, file, files][named(new)] = None
    together = defaultdict[str, list[str]](list)  # by file, the functions that are called by themselves
    for (name, file, files), some in calls.items():
        place, by = f" in {file}" if file else "", formatting.listed([*some])
        if files and files != (file,):
            what = by if name in ("", file) else name if _is_call_of(name, some) else f"{name}, {_used(name)} by {by},"
            yield Change(arch, _changed(what, len(some) if what is by else 1, formatting.listed(files)))
        elif name == file:
            yield Change(arch, f"{name} was edited")
        elif not name:
            yield Change(arch, f"code of {by}{place} was edited")
        elif _is_call_of(name, some):
            together[place].append(name)
        else:
            yield Change(arch, f"{name}{place}, {_used(name)} by {by}, was edited")
    for place, names in together.items():
        yield Change(arch, _edited_in(place, names))


def _of_expressions(arch: str, pairs: Iterable[Pair]) -> Iterator[Change]:
    """Yield how the C++ expressions differ that are called in *pairs*."""
    for old, new in pairs:
        if old is not None and new is not None and is_same_object(old, new):
            sides = formatting.different_parts(old.expression, new.expression)
            yield from differing(arch, f"C++ of {new.name}", *sides) if all(sides) else ()


def _is_call_of(name: str, calls: Iterable[str]) -> bool:
    """Whether *calls* are one, of the function that has this *name*."""
    return [name.partition("(")[0]] == [call.partition("(")[0] for call in calls]


def _changed(what: str, number: int, files: str) -> str:
    return f"{what} {'was' if number == 1 else 'were'} changed by an edit of {files}"


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
    that it was: the functions whose definitions differ, or else the calls that are inlined in one report alone, or
    else the files."""
    # By what was edited: the functions, and the calls that are inlined in one report alone.
    written = defaultdict[str, dict[str, None]](dict)
    found = defaultdict[str, list[str]](list)
    for old, new, one, other in _returned(pairs):
        if one.source is not None and other.source is not None and one.source != other.source:
            files = formatting.listed(_edited_files(one, other)) or ("" if other.is_python else _TEXT)
            found[files] += [named(new)] * (old.inlined != new.inlined)
            written[files] |= dict.fromkeys(_rewritten(one, other, (name for name, _ in other.functions)))
    found.pop("", None)
    if any(written.values()):
        for files, names in written.items():
            yield from [Change(arch, _edited_in(f" in {files}" if files != _TEXT else "", [*names]))] if names else []
        return
    changed = {files: some for files, some in found.items() if some}
    for files, some in changed.items():
        calls = list(dict.fromkeys(some))
        by = formatting.listed(calls)
        yield Change(arch, _changed(by, len(calls), files) if files != _TEXT else f"code of {by} was edited")
    for files in found if not changed else ():
        yield Change(arch, f"{files} was edited")


def _rewritten(before: CodeReport, now: CodeReport, names: Iterable[str]) -> list[str]:
    """Return those of the functions with these *names* whose definitions differ."""
    old, new = dict(before.definitions), dict(now.definitions)
    return [
        name for name in names if old.get(own := own_name(name), "") != new.get(own, "") and own in old and own in new
    ]


def _edited_names(before: CodeReport, now: CodeReport) -> list[str]:
    """Return the macros and variables that the called functions lead to and whose definitions differ."""
    old, functions = dict(before.definitions), {own_name(name) for name, _ in (*before.functions, *now.functions)}
    return [name for name, digest in now.definitions if name not in functions and old.get(name, digest) != digest]


def _edited_in(place: str, names: Sequence[str]) -> str:
    return f"{formatting.listed(names, _MOST)}{place} {'was' if len(names) == 1 else 'were'} edited"


def _edited(before: CodeReport, now: CodeReport, file: str | None, same_code: bool) -> list[str]:
    """Return the functions that were edited in code of a *file*, an empty text for what is inlined in the call, or the
    file. What both reports know decides: the functions that are called, or else the source. A function that is called
    in one of them alone is an edit of what calls it, as a new name of it is."""
    has_same_names = dict(before.functions).keys() == dict(now.functions).keys()
    if same_code and has_same_names and before.content is not None and before.content == now.content:
        return []
    if before.functions and now.functions and code_options(before) == code_options(now):
        sides = Counter(before.functions), Counter(now.functions)
        different = {name for name, _ in (*(sides[0] - sides[1]), *(sides[1] - sides[0]))}
        edited = sorted(different & {name for name, _ in before.functions} & {name for name, _ in now.functions})
        if inlined := _rewritten(before, now, sorted(different.difference(edited))):  # always, in one of them
            edited = [*inlined, *_rewritten(before, now, edited)]
        edited = [name for name in edited if name != FOR_ARCHITECTURES]
        if used := _edited_names(before, now):
            old, new = dict(before.definitions), dict(now.definitions)
            as_written = {name for name in edited if old.get(own_name(name), "") == new.get(own_name(name))}
            edited = [
                *(name for name in used if name not in edited),
                *(each for each in edited if each not in as_written),
            ]
        return edited or [file or ""][: len(different)]
    one, other = (before.source, now.source) if before.source and now.source else (before.sha256, now.sha256)
    return [file or ""] if one != other else []

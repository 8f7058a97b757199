# SPDX-License-Identifier: BSD-2-Clause
"""How the calls of two reports differ: which are inlined, are others, are new or gone, or have other options."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ..function_code.object_names import file_of_item
from . import formatting
from .change import DEFAULT, NOT_KNOWN, Change, differing
from .paired_calls import Pair, code_options, is_same_object, named
from .records import CallReport

_FEW = 4  # calls that are named


def changes_of_calls(arch: str, pairs: Sequence[Pair], same_link: bool) -> Iterator[Change]:
    """Yield how calls differ, which come in *pairs*; those that differ alike are one change. What is inlined is
    compared where both links are with link-time optimisation or both without (*same_link*)."""
    # By what is called, if that is the same, and what it became: the calls.
    alike = defaultdict[tuple[str, str, str], list[CallReport]](list)
    # Those that only one report has, by whether they are new, by what became of them and by what is called.
    alone = {is_new: defaultdict[str, dict[str, list[CallReport]]](dict) for is_new in (False, True)}
    for old, new in pairs:
        if old is None or new is None:
            if (known := new or old) is not None:
                alone[old is None][_how(known)].setdefault(named(known), []).append(known)
        elif not is_same_object(old, new) or (named(old) != named(new) and returned(old) != returned(new)):
            is_alike = not same_link or _how(old) == _how(new) or not (_how(old) and _how(new))
            names = [f"{named(each)}{'' if is_alike else f'; {_how(each)}'}" for each in (old, new)]
            alike["", names[0], names[1]].append(new)
        else:
            sides = [_how(each) if same_link and _how(old) and _how(new) else "" for each in (old, new)]
            if returned(old) != returned(new):
                became = [f"{_how(each)}; " if same_link and _how(each) else "" for each in (old, new)]
                sides = [f"{how}{_listed(each)}" for how, each in zip(became, (old, new), strict=True)]
            if sides[0] != sides[1]:
                alike[named(new), sides[0], sides[1]].append(new)
    others = [(*key[1:], calls) for key, calls in alike.items() if not key[0]]
    if len(others) > _FEW:
        calls = [call for *_, some in others for call in some]
        sides = [formatting.listed(some) for some in ([each[0] for each in others], [each[1] for each in others])]
        yield Change(arch, _calls_at("", calls), *sides)
    else:
        yield from (Change(arch, _calls_at("", calls), before, now) for before, now, calls in others)
    for (before, now), groups in _by_sides(alike).items():
        yield from (Change(arch, what, before, now) for what in _of_groups("", groups))
    for is_new, by_fate in alone.items():
        for how, groups in by_fate.items():
            for what in _of_groups("added" if is_new else "removed", groups):
                yield Change(arch, f"{what}{f', {how}' if how else ''}")


def _of_groups(what: str, groups: Mapping[str, Sequence[CallReport]]) -> Iterator[str]:
    """Yield calls, in *groups* by what is called, with their lines, those of many functions together."""
    if len(groups) > _FEW:
        groups = {formatting.listed([*groups]): [call for some in groups.values() for call in some]}
    for name, calls in groups.items():
        number = "call" if len(calls) == 1 else f"{len(calls)} calls"
        yield f"{number} {what}: {name} at {formatting.places(calls)}" if what else _calls_at(name, calls)


def _by_sides(
    alike: Mapping[tuple[str, str, str], list[CallReport]],
) -> dict[tuple[str, str], dict[str, list[CallReport]]]:
    """Return calls *alike* of what is the same in both reports by what they became, and by what is called."""
    found: dict[tuple[str, str], dict[str, list[CallReport]]] = {}
    for (name, before, now), calls in alike.items():
        if name:
            found.setdefault((before, now), {})[name] = calls
    return found


def changes_of_inlining(
    arch: str, before: Sequence[CallReport], now: Sequence[CallReport], pairs: Sequence[Pair], same_link: bool
) -> Iterator[Change]:
    """Yield how many calls are inlined, and which of a few other ones are, unless that is a change of the call."""
    if max(len(before), len(now)) > 1:
        yield from differing(arch, "inlined", *(formatting.inlined(calls) or NOT_KNOWN for calls in (before, now)))
    if not same_link:
        both = [(old, new) for old, new in pairs if old is not None and new is not None]
        other = [(named(new), _how(old), _how(new)) for old, new in both]
        other = [each for each in dict.fromkeys(other) if all(each) and each[1] != each[2]]
        for name, *sides in other if len(other) <= _FEW else ():
            yield Change(arch, f"call {name}", *sides)


def changes_of_options(arch: str, before: CallReport | None, now: CallReport | None) -> Iterator[Change]:
    """Yield how the compile options of what two calls returned differ."""
    if before is None or now is None or len(before.returned) != len(now.returned):
        return
    for old, new in zip(before.returned, now.returned, strict=True):
        options = code_options(old), code_options(new)
        where = file_of_item(now.object) or new.name
        for name in dict.fromkeys((*options[0], *options[1])):
            default = None if name.startswith("-") else DEFAULT
            sides = (each.get(name, default) for each in options)
            yield from differing(arch, f"option {name} of {where}", *sides)


def returned(call: CallReport) -> list[str]:
    """Return the names of what a *call* returned, of a file without its folder; in debug mode, a function is several
    pieces of code."""
    names = dict.fromkeys(code.name for code in call.returned)
    return [formatting.symbol(formatting.file(name) if os.path.isabs(name) else name) for name in names]


def _calls_at(name: str, calls: Sequence[CallReport]) -> str:
    """Return *calls* of what has this *name*, if all have one, with their lines."""
    what = "call" if len(calls) == 1 else f"{len(calls)} calls"
    of = "" if not name else f" {name}" if len(calls) == 1 else f" of {name}"
    return f"{what}{of} at {formatting.places(calls)}"


def _how(call: CallReport) -> str:
    """Return what became of a *call*; empty if that is not known."""
    return {True: "inlined", False: formatting.left(call) or "called", None: ""}[call.inlined]


def _listed(call: CallReport) -> str:
    return ", ".join(returned(call)) or "nothing to link"

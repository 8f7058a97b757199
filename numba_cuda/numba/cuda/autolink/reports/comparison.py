# SPDX-License-Identifier: BSD-2-Clause
"""What differs between two reports, as text and as JSON."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from . import formatting
from .call_changes import changes_of_calls, changes_of_inlining, changes_of_options
from .change import DEFAULT, NOT_KNOWN, Change, differing, plain_option
from .code_edits import edits_in_calls, edits_in_python, edits_of_files, other_functions
from .paired_calls import pair_calls
from .records import BuildReport, KernelReport, ResultReport

FORMAT, VERSION = "numba-cuda-autolink changes", 1
# Options of the linker that follow from the architecture, the kernel's code and its options.
_KNOWN = ("-arch=", "-kernels-used=", "-optimize-unused-variables", "-lto", "-lineinfo", "-g", "-maxrregcount=")
_DATA = "; initial values of variables differ"
_CUDAS = "__cuda_"  # of a function that is a part of CUDA's arithmetic
_FEW = 4  # functions that are named
_LONG = 40  # characters of a function's name
_OF_CODE = ("debug", "fastmath", "lto")  # options of a kernel that its external code is compiled with
# Of a name that begins with it: its modules or namespaces, or the line of a C++ expression without a variable.
_PATH = re.compile(r"(?:[\w$]+::)+|(?:lambda|expression) at [^:(]*:\d+")
_NUMBERS = {"registers": "", "shared": " bytes", "stack": " bytes", "spill_stores": " bytes", "spill_loads": " bytes"}


def changes(before: KernelReport, now: KernelReport) -> list[Change]:
    """Return what differs, the architecture first, causes before effects. Times are not compared. Builds for one
    architecture are compared with each other, then in order those for architectures that only one of the reports
    has."""
    builds = {build.arch: build for build in before.builds}, {build.arch: build for build in now.builds}
    alone = [[build for arch, build in each.items() if arch not in other] for each, other in (builds, builds[::-1])]
    moved = [*zip(*alone, strict=False)]
    found = [Change("all", "architecture", old.arch, new.arch) for old, new in moved]
    found += differing("all", "kernel", before.kernel, now.kernel)
    found += differing("all", "signature", before.signature, now.signature)
    versions = dict(before.versions), dict(now.versions)
    for name in dict.fromkeys((*versions[0], *versions[1])):
        found += differing("all", name, versions[0].get(name), versions[1].get(name))
    pairs = [(builds[0][arch], build) for arch, build in builds[1].items() if arch in builds[0]]
    pairs += moved
    with_python = versions[0].get("Python") == versions[1].get("Python")
    # numba-cuda-mlir inlines functions that call no external code before they can be noted.
    is_whole = with_python and "numba-cuda" in versions[0] and "numba-cuda" in versions[1]
    kernels = formatting.function(before.kernel), formatting.function(now.kernel)
    found += _once([[*_of_build(old, new, with_python, is_whole, kernels)] for old, new in pairs])
    found += [Change(each.arch, "build", formatting.code(each.result), None) for each in alone[0][len(moved) :]]
    found += [Change(each.arch, "build", None, formatting.code(each.result)) for each in alone[1][len(moved) :]]
    return found


def _once(builds: Sequence[Sequence[Change]]) -> Iterator[Change]:
    """Yield the changes of all *builds*, one that all of them have once."""
    sides = [{dataclasses.replace(each, arch="all"): each for each in some} for some in builds]
    shared = [each for each in sides[0] if all(each in some for some in sides)] if len(sides) > 1 else []
    yield from shared
    yield from (change for some in sides for each, change in some.items() if each not in shared)


def to_text(before: KernelReport, now: KernelReport) -> str:
    return "\n".join(map(str, changes(before, now))) or "nothing changed"


def to_json(before: KernelReport, now: KernelReport) -> str:
    """Return what differs as JSON: an object with a ``format``, its ``version``, and a list of ``changes``, each with
    the fields of `Change`."""
    listed = [dataclasses.asdict(change) for change in changes(before, now)]
    return json.dumps({"format": FORMAT, "version": VERSION, "changes": listed}, indent=2, ensure_ascii=False)


def _of_build(
    before: BuildReport, now: BuildReport, with_python: bool, is_whole: bool, kernels: tuple[str, str]
) -> Iterator[Change]:
    """Yield how builds of *kernels*, by name, differ, causes before effects; *with_python* if digests of Python
    functions can be compared, *is_whole* if all of these are known. Where options or the architecture differ, only what
    depends on neither is compared."""
    arch = now.arch if before.arch == now.arch else f"{before.arch} → {now.arch}"
    given = [dict(build.options) for build in (before, now)]
    for name in dict.fromkeys((*given[1], *given[0])) if all(given) else ():
        sides = (each.get(name, DEFAULT) for each in given)
        yield from differing(arch, f"option {name}", *(DEFAULT if each == "None" else each for each in sides))
    same_link = before.link.lto == now.link.lto
    of_code = [[each.get(name) for name in _OF_CODE] for each in given if each]
    same_code = before.arch == now.arch and of_code[1:] == of_code[:-1] and same_link
    if given[0].get("lto") == given[1].get("lto"):
        yield from differing(arch, "link", *(f"with{'' if each.link.lto else 'out'} LTO" for each in (before, now)))
    options = [[each for each in build.link.options or () if not each.startswith(_KNOWN)] for build in (before, now)]
    only = [[each for each in some if each not in other] for some, other in (options, options[::-1])]
    both_linked = all(build.link.options is not None for build in (before, now))
    yield from differing(arch, "options", *(" ".join(each) or None for each in only)) if both_linked else ()
    pairs = pair_calls(before.calls, now.calls)
    compiled_with = [*dict.fromkeys(change for each in pairs for change in changes_of_options(arch, *each))]
    with_python = with_python and bool(before.python) and bool(now.python)
    of_kernel = {(name, *(plain_option(each.get(name, DEFAULT)) for each in given)) for name in given[1]}
    edits = [*edits_in_python(arch, before.python, now.python, of_kernel, kernels)] if with_python else []
    edits += dict.fromkeys(other_functions(arch, pairs))
    if not edits and not (is_whole and with_python) and same_code and not compiled_with and _own_differs(before, now):
        edits = [Change(arch, "the kernel's own code was edited")]
    edits += edits_in_calls(arch, pairs, same_code, with_python and (is_whole or bool(edits)))
    if not edits and same_code and not compiled_with and not _has_same_instructions(before.result, now.result):
        edits = [*edits_of_files(arch, pairs)]
    yield from compiled_with
    yield from edits
    of_calls = [*changes_of_calls(arch, pairs, same_link)]
    yield from of_calls
    same_kind = before.result.kind == now.result.kind  # of others, nothing can be compared
    if same_kind:
        yield from changes_of_inlining(arch, before.calls, now.calls, pairs, same_link)
    for name, unit in _NUMBERS.items() if same_kind else ():
        what = name.replace("_", " ")
        numbers = [_number(each.result, name, unit) for each in (before, now)]
        yield from differing(arch, what, *(each or NOT_KNOWN for each in numbers))
    yield from _of_occupancy(arch, before.result, now.result)
    kinds = [f"{each.kind}, {formatting.size(each.size)}" for each in (before.result, now.result)]
    yield from differing(arch, "result", *kinds)
    yield from _of_functions(arch, before.result, now.result) if same_kind else ()
    if given[0] != given[1]:  # else it differs by the kernel's module or types
        yield from differing(arch, "entry name", before.entry_name, now.entry_name)
    if same_code and given[0] == given[1] and not edits and not compiled_with and not of_calls:
        yield from _of_machine_code(arch, before, now)
    elif before.arch == now.arch and _has_same_instructions(before.result, now.result):
        yield Change(arch, f"the machine code is the same{_DATA if _has_other_data(before.result, now.result) else ''}")


def _own_differs(before: BuildReport, now: BuildReport) -> bool:
    """Whether the kernel's own code differs, which has names in it; the functions that it calls count as code of the
    calls."""
    own = [[(code.sha256, code.undefined) for code in build.link.inputs if code.own] for build in (before, now)]
    names = [[symbols for _, symbols in some] for some in own]
    is_comparable = before.entry_name == now.entry_name and names[0] == names[1]
    return is_comparable and own[0] != own[1] and not _has_same_instructions(before.result, now.result)


def _has_same_instructions(before: ResultReport, now: ResultReport) -> bool:
    known = all(each.sha256 for result in (before, now) for each in result.functions)
    codes = [[each.code for each in result.functions] for result in (before, now)]
    return known and bool(before.functions) and codes[0] == codes[1]


def _has_other_data(before: ResultReport, now: ResultReport) -> bool:
    """Whether variables have other initial values."""
    return None not in (before.data, now.data) and before.data != now.data


def _of_machine_code(arch: str, before: BuildReport, now: BuildReport) -> Iterator[Change]:
    """Yield where the machine code differs, of which no edit is known, or that nothing but line information does."""
    if before.entry_name != now.entry_name:
        return
    functions = {each.name: each for each in before.result.functions}
    shown = _short({each.name: None for each in now.result.functions})
    for each in now.result.functions:
        old = each if each.name.startswith(_CUDAS) else functions.get(each.name, each)
        if old.size == each.size and "" not in (old.sha256, each.sha256) and old.sha256 != each.sha256:
            yield Change(arch, f"function {shown[each.name]} has other instructions")
    has_lines = all(("lineinfo", "True") in build.options for build in (before, now))
    is_same = before.result.sha256 == now.result.sha256
    is_of_data = _has_other_data(before.result, now.result)
    if has_lines and not is_same and not is_of_data and _has_same_instructions(before.result, now.result):
        yield Change(arch, "only line information differs")
    if is_of_data:
        yield Change(arch, "initial values of variables differ")


def _of_occupancy(arch: str, before: ResultReport, now: ResultReport) -> Iterator[Change]:
    """Yield how the occupancy differs for the sizes of blocks that both reports have, those alike together."""
    sides = [{each.threads: formatting.occupancy(each) for each in result.occupancy} for result in (before, now)]
    sizes = defaultdict[tuple[str, str], list[str]](list)
    for threads, text in sides[1].items():
        if threads in sides[0]:
            sizes[sides[0][threads], text].append(str(threads))
    for both, some in sizes.items():
        yield from differing(arch, f"occupancy of {formatting.listed(some)} threads", *both)


def _of_functions(arch: str, before: ResultReport, now: ResultReport) -> Iterator[Change]:
    """Yield how the functions of the results differ in size; of many that only one has, how many there are."""
    own = [[each for each in result.functions if not each.name.startswith(_CUDAS)] for result in (before, now)]
    sizes = [{each.name: each.size for each in some} for some in own]
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
            yield from differing(arch, f"function {shown[new]}", old_size, new_size)
    for some, of_result, what in zip(alone, sizes, ("removed", "new"), strict=True):
        if len(some) > _FEW:
            size = formatting.size(sum(of_result[name] for name in some))
            sides = [f"{formatting.listed([shown[name] for name in some])}, {size}", None]
            yield Change(arch, f"{len(some)} {what} functions", *(sides if what == "removed" else sides[::-1]))


def _short(names: Collection[str]) -> dict[str, str]:
    """Return *names*, the long ones without the types of the arguments where no other one is equal without them."""
    heads = {name: f"{name.partition('(')[0]}(…)" if len(name) > _LONG and "(" in name else name for name in names}
    same = Counter(heads.values())
    return {name: head if same[head] == 1 else name for name, head in heads.items()}


def _moved(before: Collection[str], now: Collection[str]) -> dict[str, str]:
    """Return the new names of functions that are in another module, namespace or line now: of those that only one of
    the results has, the only ones that are equal without it."""
    alone = [[name for name in some if name not in other] for some, other in ((before, now), (now, before))]
    short = [Counter(_without_path(name) for name in names) for names in alone]
    only = {name for name, number in short[0].items() if number == short[1][name] == 1}
    old, new = ({_without_path(name): name for name in names} for names in alone)
    return {old[name]: new[name] for name in only}


def _without_path(name: str) -> str:
    found = _PATH.match(name)
    return name[found.end() :] if found else name


def _number(result: ResultReport, name: str, unit: str) -> str | None:
    value = getattr(result, name)
    return f"{value}{unit}" if value is not None else formatting.stack(result) if name == "stack" else None

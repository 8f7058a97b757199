# SPDX-License-Identifier: BSD-2-Clause
"""What users know of a link, for the cache's history: the kernel's Python, its options and target, and the facts of the
programs that are linked. Found when an entry is written, when all programs are compiled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import cuda.core

from numba_cuda_autolink.package_versions import version_of

from .cache.changes import COMPILED_FOR, FRONT_END, INLINE
from .cache.entry import MADE_BY, PLACE_OF, Facts, LineDigests
from .inputs import kinds
from .link.linker_input import sha256
from .plan.link_plan import LLVMModules
from .plan.python_cells import as_in_notebook
from .platform import cuda_libraries

if TYPE_CHECKING:
    from .cache.entry import CacheKey
    from .plan.link_plan import LinkPlan, LinkRequest, PlannedInput

# Facts of programs that follow from the kernel, or belong to a program alone.
_OF_KERNEL = ("path", "architecture", "lto", "debug", "lineinfo", "max_registers")


def link_facts(request: LinkRequest) -> Facts:
    """Return what users know of the link that is *request*\\ ed."""
    plan, code, python = request.plan, request.kernel_code, request.kernel_code.python
    target, objects = plan.target, python.objects if python is not None else ()
    has_lines = target.lineinfo or target.debug
    nvvm = dict(option for each in code.inputs if isinstance(each, LLVMModules) for option in each.options)
    found = [
        ("", "architecture", target.arch),
        *(as_in_notebook(python).facts(with_lines=has_lines) if python is not None else ()),
        *([("", COMPILED_FOR, nvvm["arch"])] if "arch" in nvvm else []),
        *([("", "entry_name", code.entry)] if code.entry and not code.entry.startswith("_Z") else []),  # mangled
        ("", "output", request.output),
        *([("", FRONT_END, python.front_end)] if python is not None else []),
    ]
    for unit, subject, key in _units(plan):
        if made_by := dict.fromkeys(each.text for each in objects if each.origin in unit.origins):
            found.append((subject, MADE_BY, ", ".join(made_by)))
        if key is None:
            found.append((subject, "file", sha256(unit.input.code)[:16]))
            continue
        found += (
            (fact[0] and subject if fact[1] not in ("file", "at") else fact[0], *fact[1:])
            for fact in key.facts()
            if fact[1] not in _OF_KERNEL
        )
        if subject.startswith(INLINE):
            found.append((subject, "calls", key.name))
            if place := _place_in_python(request, key):
                found.append((subject, f"{PLACE_OF}source", place[0]))
    found += [
        ("", "nvJitLink", cuda_libraries.nvjitlink_build()),
        ("", "NVVM", cuda_libraries.nvvm_build()),
        ("", "numba-cuda", version_of("numba-cuda")),
        ("", "cuda.core", cuda.core.__version__),
        ("", "numba-cuda-autolink", version_of("numba-cuda-autolink")),
    ]
    return tuple(dict.fromkeys(found))


def link_lines(request: LinkRequest) -> LineDigests:
    """Return digests of the lines of the kernel's Python and of the files and sources that it links."""
    python = request.kernel_code.python
    found = dict(as_in_notebook(python).lines() if python is not None else ())
    for _, subject, key in _units(request.plan):
        if key is None:
            continue
        for label, lines in key.lines():
            if not label.startswith("source "):
                found[label] = lines
                continue
            place = _place_in_python(request, key) if subject.startswith(INLINE) else None
            found[f"source {subject}"] = ("",) * (place[1] - 1 if place else 0) + lines
    return tuple(found.items())


def _place_in_python(request: LinkRequest, key: CacheKey) -> tuple[str, int] | None:
    """Return the name of the file and the line in which a kernel's module has the text of inline C++, if it has it."""
    texts = [text.rstrip() for label, text in key.own_texts() if label.startswith("source ")]
    python = request.kernel_code.python
    if python is None or len(texts) != 1 or not texts[0]:
        return None
    return as_in_notebook(python).find_text(texts[0])


def _units(plan: LinkPlan) -> Iterator[tuple[PlannedInput, str, CacheKey | None]]:
    """Yield the units that are linked, with their names for users, and of sources the keys of their programs."""
    from .compile.plan_programs import describe_program

    named: dict[str, int] = {}
    for number, unit in enumerate(plan.units):
        if unit.is_runtime:
            continue
        key = describe_program(plan, number) if unit.input.kind is kinds.CUDA else None
        subject = os.path.basename(unit.input.name)
        if key is not None:
            file, _, calls = key.name.partition(": ")
            subject = os.path.basename(file)
            if not calls and "(" in file:
                subject = INLINE
        named[subject] = named.get(subject, 0) + 1
        yield unit, subject if named[subject] == 1 else f"{subject} #{named[subject]}", key

# SPDX-License-Identifier: BSD-2-Clause
"""The lines of sources that the PTX of a cubin comes from. The copy of its PTX in a cubin has no ``.loc``; another text
of the same functions has. ptxas gives what it puts into a kernel's section besides the kernel the name of a wrong file;
the PTX has the right one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from numba.cuda.cudadrv.external_code.formats.elf import content, read_elf

from numba_cuda_autolink.source_locations import name_of_file

SECTION = ".nv_debug_ptx_txt"
Place = tuple[str, int]  # a file and a line
# Labels, and what numbers functions by their place in a text.
NUMBERED = re.compile(r"(\$L__BB|\$L_brx_|__local_depot|\bprototype_)\d+")
_LABEL = re.compile(r"[\w$]+:")
_COMMENT = re.compile(r"//.*")
_HEADER = re.compile(r"\.(?:func|entry)\b\s*(?:\([^)]*\)\s*)?([\w$%]+)")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')
_LOC = re.compile(r"\.loc\s+(\d+\s+\d+\s+\d+)(?:.*\binlined_at\s+(\d+\s+\d+\s+\d+))?")


def places_by_line(cubin: bytes, texts: Sequence[str]) -> dict[tuple[str, int], tuple[Place, ...]]:
    """Return by section and line of the PTX in *cubin* the place that it comes from, and those that it was inlined
    through, the innermost first; of the functions that *texts* of PTX define with the same instructions."""
    lined = {name: (body, places) for text in texts for name, body, places in _with_places(text.splitlines())}
    found = dict[tuple[str, int], tuple[Place, ...]]()
    for section in read_elf(cubin).sections:
        if section.name.startswith(SECTION):
            lines = content(cubin, section).decode("utf-8", "replace").split("\0")
            for name, body in _functions(lines):
                same, places = lined.get(name, ((), ()))
                if tuple(text for _, text in body) == same:
                    found |= {(section.name, line): each for (line, _), each in zip(body, places, strict=True)}
    return found


def _functions(lines: Sequence[str]) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield the functions of PTX: the name, and number and text of each line of the body that is not empty."""
    depth, head, name, body = 0, "", "", list[tuple[int, str]]()
    for number, line in enumerate(lines, 1):
        text = _COMMENT.sub("", line).strip()
        before, depth = depth, depth + text.count("{") - text.count("}")
        if not before and not depth:
            head = "" if text.endswith((";", "}")) else f"{head} {text}"
        elif not before:
            found = _HEADER.search(f"{head} {text}")
            head, name, body = "", found[1] if found else "", []
        elif not depth:
            if name:
                yield name, body
        elif text and not _LABEL.fullmatch(text):
            body.append((number, " ".join(NUMBERED.sub(r"\1", text).split())))


def _with_places(lines: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[Place, ...]]]]:
    """Yield name, instructions and their places of each function of PTX that has ``.loc``."""
    files = {found[1]: name_of_file(found[2]) for line in lines if (found := _FILE.match(line.strip()))}
    for name, body in _functions(lines):
        known: dict[str, tuple[Place, ...]] = {}
        places, texts, at = list[tuple[Place, ...]](), [], tuple[Place, ...]()
        for _, text in body:
            if found := _LOC.match(text):
                file, line, _ = found[1].split()
                own = ((files[file], int(line)),) if int(line) and file in files else ()
                at = known[found[1]] = own + known.get(found[2], ())
            else:
                texts.append(text)
                places.append(at)
        yield name, tuple(texts), _from_the_first(places, known)


def _from_the_first(places: list[tuple[Place, ...]], known: Mapping[str, tuple[Place, ...]]) -> list[tuple[Place, ...]]:
    """Return *places* with the first one, which is the function's own, for the declarations that precede it."""
    first = next(iter(known.values()), ())
    begin = next((number for number, each in enumerate(places) if each), len(places))
    return [first] * begin + places[begin:]

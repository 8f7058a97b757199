# SPDX-License-Identifier: BSD-2-Clause
"""Damaged code of every kind: an error or a working link, never a crash of this process, and never a hang.

``--damaged N`` sets how many inputs are damaged; with ``-n 14 --dist worksteal``, 14 processes share them. A crash or a
hang ends the process: pytest-xdist names the test, in whose temporary folder the input is.
"""

from __future__ import annotations

import faulthandler
import random
import re
import struct

import pytest
from autolink_support import Linked, build
from code_samples import LINKABLE, good
from numba.cuda.autolink import CallError
from numba.cuda.cudadrv.external_code.formats.elf import read_elf
from numba.cuda.cudadrv.external_code.link import nvjitlink
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

# How many inputs are damaged, and how many of one kind a test tries.
SHORT, WHOLE, PART = 6, 20_000, 100
HANG = 120  # seconds, longer than the time limit of all links of one input


def damaged(kind, code, draw):
    """*code* with one field, word or span changed, where its structure is known: there, else anywhere."""
    if kind == "PTX":
        return damaged_text(code, draw)
    if kind in ("cubin", "object"):
        places = elf_places(code)
    elif kind == "fatbin":
        places = [(at, size) for at, size in ((0, 16), (16, 64)) for _ in range(3)]
        places += [(at + 80, size) for at, size in elf_places(code[80:])]
    elif kind == "LTO-IR":
        places = [(0, 64), (0, 64), (64, len(code) - 64)]
    else:
        places = [(8, 60), (8, 60), (0, len(code))]
    start, size = draw.choice(places)
    changed = bytearray(code)
    how = draw.choice(("bit", "word", "extreme", "cut", "swap"))
    at = start + draw.randrange(max(size, 1))
    if how == "bit":
        changed[at % len(changed)] ^= 1 << draw.randrange(8)
    elif how == "word":
        changed[at : at + 4] = struct.pack("<I", draw.getrandbits(32))
    elif how == "extreme":
        at -= at % 8
        changed[at : at + 8] = draw.choice(
            (b"\xff" * 8, b"\0" * 8, struct.pack("<Q", len(code)), b"\xff" * 4 + b"\0" * 4)
        )
    elif how == "cut":
        del changed[at : at + draw.choice((1, 4, 64))]
    else:
        other, other_size = draw.choice(places)
        count = min(size, other_size, 64)
        changed[start : start + count], changed[other : other + count] = (
            changed[other : other + count],
            changed[start : start + count],
        )
    return bytes(changed)


def elf_places(code):
    """The header of an ELF file, each section's header, and each section's content: symbols, relocations, frames."""
    file = read_elf(code)
    (table,) = struct.unpack_from("<Q", code, 40)
    places = [(0, 64)] + [(table + 64 * number, 64) for number in range(len(file.sections))]
    return places + [(section.offset, section.size) for section in file.sections if 0 < section.size <= len(code)]


def damaged_text(code, draw):
    words = list(re.finditer(rb"[.%\w]+|[{}();,\[\]]", code))
    one, other = draw.choice(words), draw.choice(words)
    how = draw.choice(("drop", "replace", "repeat", "cut", "number"))
    new = {"drop": b"", "replace": other[0], "repeat": one[0] + b" " + one[0], "number": b"4294967297"}
    return code[: one.start()] if how == "cut" else code[: one.start()] + new[how] + code[one.end() :]


def pytest_generate_tests(metafunc):
    whole = WHOLE if metafunc.config.getoption("--thorough") else SHORT
    count = -(-(metafunc.config.getoption("--damaged") or whole) // len(LINKABLE))
    parts = [range(first, min(first + PART, count)) for first in range(0, count, PART)]
    metafunc.parametrize("seeds", parts, ids=[f"{part.start}-{part.stop}" for part in parts])
    metafunc.parametrize("kind", LINKABLE)


def test_damaged_code_is_an_error_or_links(kind, seeds, capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(nvjitlink, "LINK_TIMEOUT", 10.0)
    monkeypatch.setattr(nvjitlink, "TIMEOUT", 10.0)
    if kind not in good():
        pytest.skip(f"no {kind} can be made here")
    item, code = LINKABLE[kind], good()[kind]
    for seed in seeds:
        bad = damaged(kind, code, random.Random(f"{kind} {seed}"))
        (tmp_path / f"{seed}").write_bytes(bad)
        faulthandler.dump_traceback_later(HANG, exit=True)
        try:
            text = bad.decode() if kind == "PTX" else bad
            symbol = "add_one" if kind in ("object", "archive") else "f"
            function = Linked(symbol, lambda: item(text, name="damaged")).function  # noqa: B023 (called in this round)

            def kernel(x):
                x[0] = function(x[0])  # noqa: B023

            build(kernel, lto=seed % 2 == 0)
        except (LinkError, CallError):
            pass
        finally:
            faulthandler.cancel_dump_traceback_later()
        assert "@E@" not in capfd.readouterr().err, f"{kind} {seed}"
        (tmp_path / f"{seed}").unlink()

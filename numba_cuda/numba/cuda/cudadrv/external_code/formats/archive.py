# SPDX-License-Identifier: BSD-2-Clause
"""Static libraries: ar archives of objects."""

from __future__ import annotations

import struct

from .bounds import FormatError, check_range, unpack

ARCHIVE_MAGIC = b"!<arch>\n"

_MEMBER = struct.Struct("16s12s6s6s8s10s2s")


def read_archive(code: bytes) -> list[tuple[str, bytes]]:
    """Return the members of an ar archive, by name, without its tables of symbols and names. Raises `FormatError` if
    one does not lie within the bytes."""
    if not code.startswith(ARCHIVE_MAGIC):
        raise FormatError(f"an archive begins with {ARCHIVE_MAGIC!r}, not with {code[:8]!r}")
    at, long_names = len(ARCHIVE_MAGIC), b""
    members: list[tuple[str, bytes]] = []
    while at < len(code):
        if code[at : at + 2] == b"\n":
            break
        raw_name, *_, raw_size, end = unpack(_MEMBER, code, at, "a member's header")
        if end != b"`\n" or not raw_size.strip().isdigit():
            raise FormatError(f"there is no member's header at byte {at}")
        size, name = int(raw_size), raw_name.decode("utf-8", "replace").rstrip()
        at += _MEMBER.size
        check_range(code, at, size, f"member {name!r}")
        body = code[at : at + size]
        if name == "//":
            long_names = body
        elif name not in ("/", "/SYM64/", "__.SYMDEF"):
            members.append((_member_name(name, long_names), body))
        at += size + size % 2
    return members


def _member_name(name: str, long_names: bytes) -> str:
    if name[:1] == "/" and name[1:].isdigit():
        start = int(name[1:])
        end = long_names.find(b"\n", start)
        if start >= len(long_names) or end < 0:
            raise FormatError(f"the name of member {name!r} is not in the table of names")
        return long_names[start:end].decode("utf-8", "replace").rstrip("/")
    return name.rstrip("/")

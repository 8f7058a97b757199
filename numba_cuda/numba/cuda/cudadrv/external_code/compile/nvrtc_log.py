# SPDX-License-Identifier: BSD-2-Clause
"""Explain why a source does not compile: the errors in NVRTC's log, what to do, and a file with the source."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Sequence

from numba_cuda_autolink.files import read_regular_file

from ..cache.disk import FAILED_SOURCES
from ..cache.store import current_store
from ..inputs.cuda_source import HOST_HEADERS

_MOST_SHOWN = 5
_ERROR = re.compile(r"(?:catastrophic )?error(?: #[\w-]+)?:")
_FIRST = re.compile(r"(?P<place>.*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)")
_DIRECTIVE = re.compile(r'#error directive: "?(?P<text>[^"\n]+)')
_SUMMARY = re.compile(r"\d+ (?:catastrophic )?errors? detected|Compilation terminated")
_MISSING_HEADER = re.compile(r'cannot open source file "([^"]+)"')
_UNDEFINED_MACRO = re.compile(
    r"no storage class or type specifier\n\s*(?:static |inline |extern )*([A-Z][A-Z0-9_]{2,})\b"
)
_HOST_HEADER = re.compile(r"features\.h$|(?:bits|gnu|sys|asm|linux)/")
_ENDED = "NVRTC ended "  # in the middle of a compile
_BUILT_IN = "__nv_nvrtc_builtin_header.h"
_HEADERS_OF_TYPES = {"__half": "cuda_fp16.h", "__nv_bfloat16": "cuda_bf16.h", "__nv_fp8_": "cuda_fp8.h"}
_TYPE_OF_HEADER = re.compile(rf'identifier "({"|".join(_HEADERS_OF_TYPES)})\w*" is undefined')
_VIEW_WITHOUT_HEADER = re.compile(r"\bcuda::std::(span|mdspan)\b")
# What NVRTC has without a header, by the name of C's header.
_NEED_NO_HEADER = {
    "stdio": "printf",
    "assert": "assert",
    "stdlib": "what it has of them, such as malloc and abs,",
    "math": "what it has of them, such as sqrtf and fmax,",
    "string": "what it has of them, such as memcpy and memset,",
}
# Of a type of the host's library that host_headers=True declares only.
_INCOMPLETE = re.compile(r'incomplete (?:type|class) "(?:const )?std::(?:basic_)?(\w+)')
_ARRAYS = "cuda::std::array of <cuda/std/array>, or memory that the kernel passes, not a container that allocates"
_NOT_ON_DEVICES = {
    **dict.fromkeys(("deque", "list", "map", "set", "string", "unordered_map", "unordered_set", "vector"), _ARRAYS),
    **dict.fromkeys(
        ("fstream", "iostream", "ostream", "print", "sstream", "ostringstream", "stringstream"),
        "printf, which needs no header",
    ),
    **dict.fromkeys(("thread", "mutex", "shared_mutex"), "the threads of the kernel, and <cuda/std/atomic>"),
}
# C++'s have no suffix; C's are listed.
_STANDARD_HEADER = re.compile(r"[a-z_]+|(?:assert|float|limits|math|std(?:arg|bool|def|int|io|lib)|string|time)\.h")


def errors_in(log: str) -> str:
    """Return the errors in NVRTC's *log*, each with its line of source, the first few of many; without warnings, or the
    whole log if it has no errors."""
    blocks = [block.strip("\n\0") for block in re.split(r"\n\s*\n", log)]
    errors = [block for block in blocks if _ERROR.search(block.splitlines()[0] if block else "")]
    if not errors:
        return log.strip("\n\0 ")
    shown = errors[:_MOST_SHOWN]
    others = len([block for block in blocks if block and not _SUMMARY.match(block)]) - len(shown)
    if len(errors) > len(shown):
        shown.append(f"and {len(errors) - len(shown)} more errors: see the exception's .log")
    elif others > 1:  # one of them is the log's own heading
        shown.append("For the warnings, see the exception's .log.")
    return "\n".join(shown)


def first_error(log: str, name: str) -> str:
    """Return the first error in NVRTC's *log* of the source *name*, after its line; empty if there is none."""
    found = next(filter(None, map(_FIRST.match, log.splitlines())), None)
    if found is None:
        return log.partition("\n")[0] if log.startswith(_ENDED) else ""
    own = os.path.basename(found["place"]) == os.path.basename(name)
    place = "line " + found["line"] if own else f"{os.path.basename(found['place'])}:{found['line']}"
    text = directive["text"] if (directive := _DIRECTIVE.match(found["text"])) else found["text"]
    return f"{place}: {text}"


def remedy(log: str, include_paths: Sequence[str] = (), macros: Sequence[str] = ()) -> str:
    """Return what to do about the first error in NVRTC's *log* of a source with *include_paths* and *macros*."""
    if log.startswith(_ENDED):
        return "make the source smaller, or its templates less deep; or raise the limit that it reached"
    errors = errors_in(log)
    if errors.startswith(_BUILT_IN) and macros:
        return (
            f"rename a macro in defines ({', '.join(macros)}): macros replace names in the compiler's own headers, too,"
            " whose templates have parameters of one letter"
        )
    if macro := _UNDEFINED_MACRO.search(errors):
        return (
            f"if {macro[1]} is a macro that headers define for other compilers but not for NVRTC, define it:"
            f" defines={{'{macro[1]}': '...'}}, or {{'{macro[1]}(x)': '...'}} if it has parameters"
        )
    if missing := _MISSING_HEADER.search(errors):
        name = missing[1]
        if absent := [path for path in include_paths if not os.path.isdir(path)]:
            return f"fix the source's include_paths, of which these do not exist: {', '.join(absent)}"
        if name.startswith("crt/"):
            return (
                "install the package that provides it: nvidia-cuda-crt for CUDA 13, nvidia-cuda-nvcc-cu12 for CUDA 12"
            )
        if _HOST_HEADER.match(name):
            return (
                f"do not include the host's C library, which {name} belongs to: keep its directory (/usr/include) out"
                " of include_paths, and a host compiler's macros (__GNUC__) out of defines"
            )
        if _STANDARD_HEADER.fullmatch(name):
            from .translation_unit import toolkit_include_paths

            same = f"cuda/std/c{name[:-2]}" if name.endswith(".h") else f"cuda/std/{name}"
            todo = f"put a file {name} that defines what is used"
            if any(os.path.isfile(os.path.join(folder, same)) for folder in toolkit_include_paths()):
                todo = f"include <{same}>, whose names are in cuda::std, or put a file {name} that includes it"
            place = errors.partition("(")[0]
            is_own = place.endswith(".cu") or not os.path.isabs(place)
            header = f"leave out {os.path.basename(place)}, if it is for the host's code; or "
            todo = f"{_instead_of(name) if is_own else header}{todo} into one of the source's include_paths"
            if HOST_HEADERS in include_paths:
                return f"{name} is not among the headers of host_headers=True: {todo}"
            return f"NVRTC has no headers of the host's C++ library: {todo}; or use host_headers=True"
        return f"add the directory that {name} is in to the source's include_paths"
    if instead := instead_of_host_type(errors):
        return instead
    if (view := _VIEW_WITHOUT_HEADER.search(errors)) and "must be a class or namespace name" in errors:
        return f"include <cuda/std/{view[1]}>"
    if unknown := _TYPE_OF_HEADER.search(errors):
        return f"include <{_HEADERS_OF_TYPES[unknown[1]]}>"
    if "--device-int128" in errors:
        return "allow it: options={'device_int128': True}"
    if "explicitly marked as a __host__ function" in errors:
        return "mark it __host__ __device__, or put the host's functions between #ifndef __CUDACC_RTC__ and #endif"
    if "host functions are not allowed in JIT mode" in errors:
        return (
            "mark the function __device__, or make all functions device functions:"
            " options={'device_as_default_execution_space': True}"
        )
    if "has already been defined" in errors:
        return "give the two functions different names, made from what distinguishes them, such as sizes and types"
    if said := _DIRECTIVE.search(errors):
        return f"do as the source or header says: {said['text']}"
    todo = "fix the source at that line"
    place = errors.partition("(")[0]
    if os.path.isabs(place) and not place.endswith(".cu"):
        todo += (
            "; if that is a library's header, put a fixed copy into a directory that comes first in the source's"
            " include_paths"
        )
    return todo


def instead_of_host_type(errors: str) -> str:
    """Return what to use rather than a type of the host's library that is declared only; empty if it is none."""
    found = _INCOMPLETE.search(errors)
    name = found[1] if found else ""
    return f"device code has no std::{name}: use {_NOT_ON_DEVICES[name]}" if name in _NOT_ON_DEVICES else ""


def _instead_of(header: str) -> str:
    stem = header.removesuffix(".h")
    stem = stem if header.endswith(".h") else stem.removeprefix("c")
    if stem in _NEED_NO_HEADER:
        return f"delete the line ({_NEED_NO_HEADER[stem]} needs no header); or "
    return f"use {_NOT_ON_DEVICES[header]}; or " if header in _NOT_ON_DEVICES else ""


def saved(code: bytes, name: str) -> str | None:
    """Return the path of a file with the source *code*: *name* if it is one, else a file written now to the cache's
    directory or to one for temporary files; ``None`` if nothing can be written."""
    with contextlib.suppress(OSError, ValueError):
        if read_regular_file(name, len(code)) == code:
            return os.path.abspath(name)
    stem, suffix = os.path.splitext(re.sub(r"[^\w.-]+", "_", os.path.basename(name)).strip("_") or "source")
    file_name = f"{stem[:60]}-{hashlib.sha256(code).hexdigest()[:12]}{suffix or '.cu'}"
    with contextlib.suppress(OSError):
        return current_store().disk.save(FAILED_SOURCES, file_name, code)
    return None

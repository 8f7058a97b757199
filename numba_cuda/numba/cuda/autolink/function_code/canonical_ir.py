# SPDX-License-Identifier: BSD-2-Clause
"""Canonical LLVM IR: the same functions get the same text, whatever was compiled before them, and fit NVRTC's modules.

Mangled names contain, as an ABI tag (``B2v7``), a number that counts all functions of the process; for a record or an
object that is an argument, one that counts such types; and for a Python function that is an argument, its address. The
name of a string constant is Python's hash of its bytes, which another process computes with another seed. All are
renumbered in the order in which they appear in a kernel.

A Python function that C++ calls gets the same LLVM IR in every process, too. So its name can be made of its content,
and NVVM compiles it once on a machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.diagnostics import progress
from numba.cuda.cudadrv.external_code.formats.symbols import undefined_functions
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.platform import cuda_libraries
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..compilation.context import tool_versions

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction

_UNIQUE_ID = re.compile(r"B(\d+)v(\d+)(?=B)")
_ADDRESS = re.compile(r"(?<=_200x)[0-9a-f]{8,16}(?=_3e)")  # in "<function f at 0x...>"
_TYPE = re.compile(r"(6RecordILi|18DeviceCallableTypeILi)(\d+)(?=E)")
_BYTES = re.compile(r'@"\.bytes\.(-?\d+)"')
_SHARED = re.compile(r"\b_cudapy_smem_(\d+)\b")  # numbered in the process
_DIGITS = 16  # of a digest: 64 bits
_DIGEST = re.compile(rf"(?<=_)[0-9a-f]{{{_DIGITS}}}(?![0-9A-Za-z])")  # in a name
_LINES = re.compile(r"^!\d+ = (?:distinct )?!DI.*\n|,? !dbg !\d+", re.MULTILINE)
_MODULE_ID = re.compile(r'^; ModuleID = ".*"$', re.MULTILINE)


def with_canonical_names(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of a kernel's LLVM modules, or its names, with canonical names."""
    numbers, addresses, types, constants, shared = (_Numbers() for _ in range(5))
    texts = _rename(texts, lambda unique_id: f"v{numbers[unique_id]}")
    # As long as before: a length stands in front of each part of a mangled name.
    texts = [_ADDRESS.sub(lambda found: f"{addresses[found[0]]:0{len(found[0])}x}", text) for text in texts]
    texts = [_TYPE.sub(lambda found: f"{found[1]}{types[found[0]]}", text) for text in texts]
    texts = [_BYTES.sub(lambda found: f'@".bytes.{constants[found[1]]}"', text) for text in texts]
    for text in reversed(texts):  # callees come first, and arrays of one function in order: so messages find variables
        for number in sorted(map(int, set(_SHARED.findall(text)))):
            shared[str(number)]
    texts = [_SHARED.sub(lambda found: f"_cudapy_smem_{shared[found[1]]}", text) for text in texts]
    return [_MODULE_ID.sub('; ModuleID = "module"', text) for text in texts]


class _Numbers(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return self.setdefault(name, len(self) + 1)


def with_names_by_content(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of the LLVM modules of a function that is linked into kernels that other code is part of, too.

    Equal functions get equal names there, and different functions different ones.
    """
    canonical = with_canonical_names(texts)
    content = hashlib.sha256("\0".join(canonical).encode()).hexdigest()[:_DIGITS]
    named = [_SHARED.sub(rf"_cudapy_smem_\1_{content}", text) for text in canonical]
    return _rename(named, lambda number: f"v{number}h{content}")


def _rename(texts: Iterable[str], tag_of: Callable[[str], str]) -> list[str]:
    def rename(found: re.Match[str]) -> str:
        length, unique_id = found.groups()
        if int(length) != len(unique_id) + 1:
            return found[0]
        tag = tag_of(unique_id)
        return f"B{len(tag)}{tag}"

    return [_UNIQUE_ID.sub(rename, text) for text in texts]


_WARN_OF_OTHER_VERSION = 'i32 2, !"Debug Info Version"'
_OVERRIDE_OTHER_VERSION = 'i32 4, !"Debug Info Version"'
_POINTERS = re.compile(r'^(target datalayout = "e-p:64:64:64-)(?!p3:)', re.MULTILINE)


def compatible_with_cxx(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of LLVM modules as they are linked with those of NVRTC.

    - NVRTC's pointers to shared memory have 32 bits, in numba-cuda's data layout they have 64. Link-time optimisation
      uses the kernel's layout for all code, so that C++ would compute such addresses in pairs of registers.
    - With line information, the two have different rules for merging the flag of the debug information's version, which
      link-time optimisation takes for an error. The version is the same: the flag may be overridden.
    """
    return [
        _POINTERS.sub(r"\1p3:32:32:32-", text).replace(_WARN_OF_OTHER_VERSION, _OVERRIDE_OTHER_VERSION)
        for text in texts
    ]


# Stands for the C function until its content gives it a name.
NAMELESS = "numba_cuda_autolink_function_without_a_name"
_DEFINED = re.compile(r'^define (?:linkonce_odr |weak_odr )?(?P<type>[^@\n]*)@"?(?P<name>[^"(\n]+)"?\(', re.M)
_VARIABLE = re.compile(r'^@"?(?P<name>[^"=\n]+?)"? = (?!external\b|appending\b)', re.M)
_REFERENCE = re.compile(r'(?P<sign>@|linkageName: )(?P<quote>"?)(?P<name>[\w.$\\-]+|(?<=")[^"\n]+)(?P=quote)')


@dataclasses.dataclass(frozen=True)
class NamedModules:
    """LLVM IR whose C function is *symbol*."""

    symbol: str
    texts: tuple[str, ...]

    @classmethod
    def of(cls, readable: str, modules: Sequence[str], target: Target) -> NamedModules:
        """Return *modules*, the first of which defines `NAMELESS`, with a symbol by content that is *readable*."""
        # In debug mode each module is compiled by itself, and must keep what another one needs.
        linkage = "weak_odr" if target.debug else "linkonce_odr"
        named = [_SHARED.sub(rf"{NAMELESS}_shared_\1", text) for text in with_canonical_names(modules)]
        texts = list(_with_own_names(compatible_with_cxx(named), linkage))
        digest = hashlib.sha256()
        for text in texts:
            digest.update(len(text).to_bytes(8, "little") + text.encode())
        symbol = f"{readable}_{digest.hexdigest()[:_DIGITS]}"
        return cls(symbol, tuple(text.replace(NAMELESS, symbol) for text in texts))

    @property
    def undefined(self) -> tuple[str, ...]:
        return undefined_functions(self.texts)

    def compile_for(self, target: Target, name: str, python: PythonFunction | None = None) -> tuple[LinkInput, ...]:
        """Return the code of a *python* function for *target*, called *name* in messages: LTO-IR, or PTX without
        LTO; in debug mode, one PTX for each module, as NVVM requires."""
        groups = [(text,) for text in self.texts] if target.debug else [self.texts]
        kind = kinds.LTO_IR if target.lto else kinds.PTX
        # What C++ by name is called has the digest of its library; line information has paths.
        content = _DIGEST.sub("", _LINES.sub("", "\0".join(self.texts)))
        made_of = hashlib.sha256(content.encode()).hexdigest()
        compiled = (_compile(group, target, name) for group in groups)
        return tuple(LinkInput(kind, code, name=name, made_of=made_of, python=python) for code in compiled)


def _with_own_names(texts: Sequence[str], linkage: str) -> Iterator[str]:
    """Yield *texts* in which what they define is called `NAMELESS` and a number, in order of definition, and functions
    other than `NAMELESS` have this *linkage*.

    Numba makes names of types and of a count of what was compiled before, which two pieces of code may share; and its
    linkage of a function depends on what else was linked with it.
    """
    names: dict[str, str] = {}
    for text in texts:
        for found in (*_DEFINED.finditer(text), *_VARIABLE.finditer(text)):
            if found["name"] != NAMELESS and not found["name"].startswith("llvm."):
                names.setdefault(found["name"], f"{NAMELESS}_{len(names)}")

    def rename(found: re.Match[str]) -> str:
        return f'{found["sign"]}"{names[found["name"]]}"' if found["name"] in names else found[0]

    def define(found: re.Match[str]) -> str:
        own = "" if found["name"] == NAMELESS else f"{linkage} "
        return f'define {own}{found["type"]}@"{found["name"]}"('

    for text in texts:
        yield _REFERENCE.sub(rename, _DEFINED.sub(define, text))


def _compile(texts: tuple[str, ...], target: Target, name: str) -> bytes:
    options: dict[str, Any] = {"fastmath": target.fastmath, "opt": 0 if target.debug else 3}
    options |= {"g": None} if target.debug else {}
    options |= {"gen-lto": None} if target.lto else {}
    key = CacheKey(
        "program",
        name,
        (
            *((f"LLVM IR {number}", text) for number, text in enumerate(texts)),
            ("architecture", target.arch),
            ("options", repr(options)),
            ("NVVM", f"{cuda_libraries.nvvm_version()} {cuda_libraries.nvvm_build()}"),
            ("numba-cuda", tool_versions()["numba-cuda"]),
        ),
    )

    def build() -> bytes:
        from numba.cuda.cudadrv import nvrtc, nvvm

        with progress.step(f"compiling {name}"):
            code: bytes = nvvm.compile_ir(texts, arch=nvrtc.get_arch_option(*target.cc), **options)
        return code if target.lto else code.strip(b"\0 \n") + b"\n"

    return current_store().fetch(key, build).data

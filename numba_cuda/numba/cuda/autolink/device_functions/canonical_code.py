# SPDX-License-Identifier: BSD-2-Clause
"""Canonical LLVM IR of a Python function that C++ calls, and its compilation by NVVM.

The same function gets the same LLVM IR in every process, whatever was compiled before it. So its name can be made of
its content, and NVVM compiles it once on a machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.diagnostics import progress
from numba.cuda.cudadrv.external_code.formats.symbols import undefined_functions
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.platform import cuda_libraries
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..compilation.context import tool_versions
from ..function_code.canonical_ir import compatible_with_cxx, with_canonical_names

# Stands for the C function until its content gives it a name.
NAMELESS = "numba_cuda_autolink_function_without_a_name"
_DEFINED = re.compile(r'^define (?:linkonce_odr |weak_odr )?(?P<type>[^@\n]*)@"?(?P<name>[^"(\n]+)"?\(', re.M)
_VARIABLE = re.compile(r'^@"?(?P<name>[^"=\n]+?)"? = (?!external\b|appending\b)', re.M)
_REFERENCE = re.compile(r'(?P<sign>@|linkageName: )(?P<quote>"?)(?P<name>[\w.$\\-]+|(?<=")[^"\n]+)(?P=quote)')
_DIGITS = 16  # of the digest in a symbol: 64 bits


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
        texts = list(_with_own_names(compatible_with_cxx(with_canonical_names(modules)), linkage))
        digest = hashlib.sha256()
        for text in texts:
            digest.update(len(text).to_bytes(8, "little") + text.encode())
        symbol = f"{readable}_{digest.hexdigest()[:_DIGITS]}"
        return cls(symbol, tuple(text.replace(NAMELESS, symbol) for text in texts))

    @property
    def undefined(self) -> tuple[str, ...]:
        return undefined_functions(self.texts)

    def compile_for(self, target: Target, name: str) -> tuple[LinkInput, ...]:
        """Return the code for *target*, called *name* in messages: LTO-IR, or PTX without LTO; in debug mode, one PTX
        for each module, as NVVM requires."""
        groups = [(text,) for text in self.texts] if target.debug else [self.texts]
        kind = kinds.LTO_IR if target.lto else kinds.PTX
        return tuple(LinkInput(kind, _compile(group, target, name), name=name) for group in groups)


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

# SPDX-License-Identifier: BSD-2-Clause
"""The object that is checked: that it can be called, and the code that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.formats.ptx import Prototype, ptx_symbols
from numba.cuda.cudadrv.external_code.formats.symbols import symbols_of_ptx
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.probes import ptx_of_ltoir
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import Target

from .. import ahead_of_time
from ..protocol.call_sites import CallSite
from ..protocol.callee import HOOK, Callee, find_callee
from ..protocol.errors import CallError, HookError
from . import reproducibility
from .probe_kernel import Argument, probe_kernel, signature
from .records import Findings

_CALLABLE = "can be called in a kernel"
_RETURNS_CODE = "returns code that links"


@dataclass(frozen=True)
class Subject:
    """An object that a kernel can call and that returns code.

    ``call`` and ``site`` are the call as text and as the compiler found it; ``symbols`` are the symbols that it
    references, with their prototypes where PTX shows them; ``function_types`` are those of the call in LLVM;
    ``answers`` are the code for each target.
    """

    obj: Any
    args: tuple[Argument, ...]
    targets: tuple[Target, ...]
    call: str
    site: CallSite
    symbols: Mapping[str, Prototype | None]
    function_types: Mapping[str, str]
    answers: Mapping[Target, tuple[LinkInput, ...]]

    @property
    def callee(self) -> Callee:
        """The object with its hooks."""
        return self.site.callee

    def build_error(self, target: Target, calls: int = 1) -> str:
        """Link a kernel with that many *calls* of the object, and return the error, or an empty text."""
        try:
            probe = probe_kernel(self.obj, self.args, calls)
            ahead_of_time.build(probe, signature(self.args), cc=target.cc, lto=target.lto)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""


def describe_linking(target: Target) -> str:
    """Return how code for *target* is linked."""
    return "with LTO" if target.lto else "without LTO"


def find_subject(obj: Any, args: tuple[Argument, ...], targets: tuple[Target, ...], findings: Findings) -> Subject:
    """Return the subject of the other checks. Raise `NotLinkableError` if *obj* cannot be called, or does not return
    code for each target."""
    compiled = _compile_call(obj, args, targets, findings) if _has_hook(obj, findings) else None
    if compiled is None:
        raise findings.error()
    site, built = compiled
    answers = _answers(site, targets, findings)
    if answers is None:
        raise findings.error()
    referenced = _referenced(built.code, targets[0].arch)
    return Subject(obj, args, targets, findings.call, site, referenced, built.prototypes, answers)


def _has_hook(obj: Any, findings: Findings) -> bool:
    name = f"has a {HOOK}"
    callee = find_callee(obj)
    if callee is None:
        return findings.fail(
            name,
            f"{type(obj).__name__} without one",
            f"a method {HOOK}(*argtypes)",
            "define it; for a class, as a classmethod or a staticmethod",
        )
    if not callable(callee.hook):
        return findings.fail(name, f"{HOOK} = {safe_repr(callee.hook)}", "a method", "define it as a method")
    return findings.ok(name)


def _compile_call(
    obj: Any, args: tuple[Argument, ...], targets: tuple[Target, ...], findings: Findings
) -> tuple[CallSite, ahead_of_time.LinkedKernel] | None:
    """Compile a kernel that calls *obj*, and return the call site and the kernel, which is not linked."""
    try:
        built = ahead_of_time.build(probe_kernel(obj, args), signature(args), cc=targets[0].cc, output="ltoir")
    except CallError as error:
        findings.ok(_CALLABLE)
        _hook_failed(error.hook_error, None, targets, findings)
        return None
    except Exception as error:
        findings.fail(
            _CALLABLE,
            f"{type(error).__name__}: {error}",
            "a kernel that calls it compiles",
            "check it with types that it accepts, or let its __numba_cuda_call__ accept these"
            if hasattr(obj, "__numba_cuda_call__")
            else "derive its class from autolink.DeviceCallable and give it a __numba_cuda_call__ for these types,"
            " or register its typing and lowering with Numba",
        )
        return None
    callee = find_callee(obj)
    site = next((site for site in built.call_sites if site.callee == callee), None)
    if site is None:
        findings.fail(
            _CALLABLE,
            f"the call asks {', '.join(str(site.callee) for site in built.call_sites) or 'no object'}",
            f"it asks {safe_repr(obj)}",
            "let kernels call the object itself: its Numba type names it by the attribute numba_cuda_link_object",
        )
        return None
    findings.ok(_CALLABLE)
    return site, built


def _referenced(own_code: bytes, arch: str) -> dict[str, Prototype | None]:
    """Return the symbols that the kernel's own code references, with their prototypes where its PTX shows them."""
    ptx = ptx_of_ltoir(own_code, (), arch) or b""
    declared = prototypes_in(ptx)
    return {name: declared.get(name) for name in symbols_of_ptx(ptx).undefined}


def prototypes_in(code: bytes) -> dict[str, Prototype]:
    """Return the prototypes of the functions that PTX declares or defines, as far as they can be read."""
    return {
        symbol.name: symbol.prototype
        for symbol in ptx_symbols(code)
        if symbol.prototype is not None and symbol.prototype.is_known
    }


def _answers(
    site: CallSite, targets: tuple[Target, ...], findings: Findings
) -> dict[Target, tuple[LinkInput, ...]] | None:
    """Return the code that the object returns for each target, or None if there is a target without."""
    answers = {}
    for target in targets:
        try:
            answers[target] = reproducibility.fresh(site.callee, site.argtypes, target).inputs()
        except HookError as error:
            _hook_failed(error, target, targets, findings)
            return None
        if not answers[target]:
            findings.fail(
                _RETURNS_CODE,
                "nothing",
                f"code for ({', '.join(map(str, site.argtypes))})",
                "return the code; an object without code to link needs no hook",
            )
            return None
    findings.ok(_RETURNS_CODE)
    return answers


def _hook_failed(error: HookError, target: Target | None, targets: tuple[Target, ...], findings: Findings) -> None:
    where = f"\nraised at: {error.raised_at}" if error.raised_at else ""
    asked = f"\nasked for: code for {target.arch}, {describe_linking(target)}" if target is not None else ""
    todo = "let it return code for this signature, or let __numba_cuda_call__ reject the signature"
    if target is not None and not target.lto and len(targets) > 1:
        todo += "; for code that requires LTO, pass lto=True to check_linkable"
    findings.fail(
        _RETURNS_CODE,
        f"{HOOK}({', '.join(map(str, error.argtypes))}) {error}{where}{asked}",
        "a LinkableCode, a cuda.core.ObjectCode, a path, or several of these",
        todo,
    )

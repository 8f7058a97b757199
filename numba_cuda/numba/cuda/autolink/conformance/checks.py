# SPDX-License-Identifier: BSD-2-Clause
"""The checks, in their order. Each adds to what was checked or to what is wrong."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.compile import diagnostics as compile_failure
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.formats.symbols import symbols_of_ptx
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError
from numba.cuda.cudadrv.external_code.link import trial as link_trial
from numba.cuda.cudadrv.external_code.link.probes import ptx_of_ltoir
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import ComputeCapabilityLike, Target

from .. import ahead_of_time
from ..protocol.asking import link_key
from ..protocol.call_sites import CallSite
from ..protocol.callee import HOOK, KEY_HOOK, Callee, find_callee
from ..protocol.errors import CallError, HookError
from ..value_fingerprint import fingerprint
from . import prototypes, reproducibility
from .link_keys import without_value
from .probe_kernel import Argument, arguments, probe_kernel, signature
from .records import Check, Linkable, LinkedCode, NotLinkableError, Wrong
from .reproducibility import ToldCode

_NO_PROCESS = "make the key of values: no hash() of a string, no id(), no addresses in a repr, no counters, no times"
_PARAMETERS = "they take what the call passes"
_SPELLING = 'check its spelling, and declare it extern "C" __device__, so that C++ does not mangle the name'


def run_checks(
    obj: Any,
    argtypes: Sequence[Any],
    cc: ComputeCapabilityLike,
    lto: Sequence[bool],
    others: Sequence[Any],
    other_process: bool,
) -> Linkable:
    """What `testing.check_linkable` does."""
    if config.ENABLE_CUDASIM:
        raise RuntimeError("check_linkable() compiles for a GPU, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not")
    capability = ahead_of_time.compute_capability(cc)
    targets = tuple(Target(capability, lto=each) for each in lto)
    checks = _Checks(obj, arguments(argtypes), targets)
    checks.run(others, other_process)
    return checks.result()


class _Checks:
    """The checks of one object, called with certain arguments, for several targets."""

    def __init__(self, obj: Any, args: tuple[Argument, ...], targets: tuple[Target, ...]):
        self.obj = obj
        self.args = args
        self.targets = targets
        self.call = f"{safe_repr(obj)}({', '.join(map(str, args))})"
        self.passed: list[Check] = []
        self.wrong: list[Wrong] = []
        self.site: CallSite | None = None
        self.own_code = b""
        self.symbols: tuple[str, ...] = ()
        self.answers: dict[Target, tuple[LinkInput, ...]] = {}

    def run(self, others: Sequence[Any], other_process: bool) -> None:
        """Check one thing after the other; what builds on something that is wrong is left out."""
        if not (self._takes_part() and self._can_be_called() and self._returns_code()):
            return
        defines = self._defines_symbols()
        same = self._answers_alike()
        if other_process:
            self._answers_alike_elsewhere()
        else:
            self._skip("same code in another process, without a GPU", "not asked for")
        if same:
            compared = [self._compared(other) for other in others]
            self._has_symbols_of_its_own(compared)
            self._has_a_good_key(compared)
        if defines and self._survives():
            self._links()

    def result(self) -> Linkable:
        """The record of what was checked.

        Raises
        ------
        NotLinkableError
            If something is wrong.
        """
        if self.wrong:
            raise NotLinkableError(self.call, tuple(self.wrong), tuple(self.passed))
        code = dict.fromkeys(
            LinkedCode(item.kind.name, item.name, len(item.code), item.digest)
            for inputs in self.answers.values()
            for item in inputs
        )
        return Linkable(self.call, self._site.argtypes, self.symbols, tuple(code), tuple(self.passed))

    @property
    def _site(self) -> CallSite:
        assert self.site is not None
        return self.site

    def _ok(self, name: str) -> bool:
        self.passed.append(Check(name))
        return True

    def _skip(self, name: str, why: str) -> bool:
        self.passed.append(Check(name, why))
        return True

    def _fail(self, name: str, got: str, expected: str, todo: str) -> bool:
        self.wrong.append(Wrong(name, got, expected, todo))
        return False

    # The checks

    def _takes_part(self) -> bool:
        name = f"has a {HOOK}"
        callee = find_callee(self.obj)
        if callee is None:
            return self._fail(
                name,
                f"{type(self.obj).__name__} without one",
                f"a method {HOOK}(*argtypes)",
                "define it; for a class, as a classmethod or a staticmethod",
            )
        if not callable(callee.hook):
            return self._fail(name, f"{HOOK} = {safe_repr(callee.hook)}", "a method", "define it as a method")
        return self._ok(name)

    def _can_be_called(self) -> bool:
        """Compile a kernel that calls it, which finds out with what types it is asked, and what symbols it wants."""
        name = "can be called in a kernel"
        probe = probe_kernel(self.obj, self.args)
        target = self.targets[0]
        try:
            built = ahead_of_time.build(probe, signature(self.args), cc=target.cc, output="ltoir")
        except CallError as error:
            self._ok(name)
            return self._hook_failed(error.hook_error)
        except Exception as error:
            return self._fail(
                name,
                f"{type(error).__name__}: {error}",
                "a kernel that calls it compiles",
                "check it with types that it takes, or let its __numba_cuda_call__ take these"
                if hasattr(self.obj, "__numba_cuda_call__")
                else "derive its class from autolink.DeviceCallable and give it a __numba_cuda_call__ for these types,"
                " or register its typing and lowering with Numba",
            )
        callee = find_callee(self.obj)
        self.site = next((site for site in built.call_sites if site.callee == callee), None)
        if self.site is None:
            return self._fail(
                name,
                f"the call asks {', '.join(str(site.callee) for site in built.call_sites) or 'no object'}",
                f"it asks {safe_repr(self.obj)}",
                "let kernels call the object itself: its Numba type names it by the attribute numba_cuda_link_object",
            )
        self.own_code = built.code
        return self._ok(name)

    def _hook_failed(self, error: HookError, target: Target | None = None) -> bool:
        where = f"\nraised at: {error.raised_at}" if error.raised_at else ""
        wanted = f"\nasked for: code for {target.arch}, {_how(target)}" if target is not None else ""
        todo = "let it return code for this signature, or let __numba_cuda_call__ reject the signature"
        if target is not None and not target.lto and len(self.targets) > 1:
            todo += "; if it is for LTO alone, check_linkable(..., lto=True) says so"
        return self._fail(
            "returns code that links",
            f"{HOOK}({', '.join(map(str, error.argtypes))}) {error}{where}{wanted}",
            "a LinkableCode, a cuda.core.ObjectCode, a path, or several of these",
            todo,
        )

    def _returns_code(self) -> bool:
        for target in self.targets:
            try:
                answer = reproducibility.fresh(self._site.callee, self._site.argtypes, target)
                self.answers[target] = answer.inputs()
            except HookError as error:
                return self._hook_failed(error, target)
            if not self.answers[target]:
                return self._fail(
                    "returns code that links",
                    "nothing",
                    f"code for ({', '.join(map(str, self._site.argtypes))})",
                    "return it; an object that needs nothing linked needs no hook",
                )
        return self._ok("returns code that links")

    def _defines_symbols(self) -> bool:
        name = "defines the symbols that the call wants"
        wanted = self._wanted()
        self.symbols = tuple(wanted)
        if not wanted:
            return self._skip(name, "the call wants none that its PTX would name")
        shown: set[str] = set()
        unseen: set[str] = set()
        for target in self.targets:
            try:
                found = prototypes.definitions(self.answers[target], self.symbols, target)
            except CompileError as error:
                errors = compile_failure.errors_in(error.log)
                return self._fail(name, errors, "code that compiles", compile_failure.remedy(error.log))
            except Exception as error:
                return self._fail(
                    name, f"{type(error).__name__}: {error}", "code that compiles", "mend the source where the log says"
                )
            missing = set(wanted) - found.defined
            if missing and not found.opaque:
                return self._fail(
                    name,
                    f"no {', '.join(sorted(missing))} in {_listed(self.answers[target])}{self._link_error(target)}",
                    f"a definition of {', '.join(sorted(missing))}",
                    _SPELLING,
                )
            if not self._has_parameters(wanted, found.prototypes):
                return False
            unseen |= missing
            shown |= set(found.prototypes)
        if unseen:
            self._skip(name, f"what defines {', '.join(sorted(unseen))} cannot be read; the links tell")
        else:
            self._ok(name)
        if shown:
            return self._ok(_PARAMETERS)
        return self._skip(_PARAMETERS, "parameters do not show in this kind of code")

    def _wanted(self) -> dict[str, prototypes.Prototype | None]:
        """The symbols that the kernel that calls it declares, and how."""
        ptx = ptx_of_ltoir(self.own_code, (), self.targets[0].arch) or b""
        declared = prototypes.of_ptx(ptx)
        return {name: declared.get(name) for name in symbols_of_ptx(ptx).undefined}

    def _has_parameters(
        self,
        wanted: dict[str, prototypes.Prototype | None],
        found: dict[str, prototypes.Prototype],
    ) -> bool:
        for symbol, called in wanted.items():
            if called is not None and symbol in found and found[symbol] != called:
                return self._fail(
                    _PARAMETERS,
                    f"{symbol} as it is defined {found[symbol]}",
                    f"as it is called it {called}",
                    "let the definition and the call agree, in number, sizes and order: autolink.cxx_type(x) is the"
                    " type in C++ that a value of the Numba type x is passed as",
                )
        return True

    def _link_error(self, target: Target) -> str:
        """What a user is told."""
        message = self._build(probe_kernel(self.obj, self.args), target)
        return f"\n{message}" if message else ""

    def _build(self, probe: Callable[..., None], target: Target) -> str:
        """Link a kernel; returns what went wrong."""
        try:
            ahead_of_time.build(probe, signature(self.args), cc=target.cc, lto=target.lto)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _answers_alike(self) -> bool:
        name = "same code when asked again"
        for target in self.targets:
            try:
                again = reproducibility.fresh(self._site.callee, self._site.argtypes, target).inputs()
            except (HookError, LinkInputError) as error:
                again, difference = (), str(error)
            else:
                difference = _difference(self.answers[target], again)
            if difference:
                return self._fail(
                    name,
                    difference,
                    "the same code each time",
                    "make the code depend on nothing but the object's own constant attributes, the argument types and"
                    " autolink.current_target()",
                )
        return self._ok(name)

    def _answers_alike_elsewhere(self) -> None:
        name = "same code in another process, without a GPU"
        callee, argtypes = self._site.callee, self._site.argtypes
        try:
            here = reproducibility.ask_here(callee, argtypes, self.targets)
            there = reproducibility.ask_there(callee, argtypes, self.targets)
        except reproducibility.NotPicklableError as error:
            self._skip(name, f"it cannot be sent there ({error})")
            return
        except HookError as error:
            self._fail(name, str(error), "the same code each time", "let the hook answer whenever it is asked")
            return
        except reproducibility.AskingError as error:
            self._fail(
                name,
                str(error),
                "the same code, with no GPU in sight",
                "use nothing in the hook that needs a GPU: autolink.current_target() tells what to generate code for",
            )
            return
        pairs = zip(here.code, there.code, strict=True)
        difference = next((found for one, other in pairs if (found := _told_apart(one, other, "here", "there"))), "")
        if difference:
            self._fail(
                name,
                difference,
                "the same code",
                "put nothing into code or symbols that differs between processes: hash() of a string, id(), the order"
                " of a set, addresses in a repr, temporary paths, times, random numbers",
            )
        elif here.key != there.key:
            self._fail(
                f"its {KEY_HOOK} is the same in another process",
                f"another key there: {safe_repr(link_key(callee, argtypes, self.targets[0]))} here",
                "the same value",
                _NO_PROCESS,
            )
        else:
            self._ok(name)

    def _compared(self, other: Any) -> _Checks:
        """What is known of *other*, to which this object is compared."""
        obj, *given = other if isinstance(other, tuple) else (other,)
        checks = _Checks(obj, arguments(given) if given else self.args, self.targets[:1])
        if not (checks._takes_part() and checks._can_be_called() and checks._returns_code()):
            raise NotLinkableError(checks.call, tuple(checks.wrong), tuple(checks.passed))
        return checks

    def _has_code_of(self, other: _Checks) -> bool:
        return not _difference(self.answers[self.targets[0]], other.answers[self.targets[0]])

    def _has_symbols_of_its_own(self, others: Sequence[_Checks]) -> None:
        """A kernel that calls two of these objects cannot be linked if both define one symbol."""
        name = "its symbols name all that its code depends on"
        for other in others:
            shared = [symbol for symbol in other._wanted() if symbol in self.symbols]
            if shared and not self._has_code_of(other):
                self._fail(
                    name,
                    f"{', '.join(shared)}, also defined by {other.call}, whose code is another",
                    "a symbol of its own for different code",
                    "put into the symbol what the code depends on: attributes of the object, types",
                )
                return
        if others:
            self._ok(name)

    def _has_a_good_key(self, others: Sequence[_Checks]) -> None:
        name = f"its {KEY_HOOK} stands for its code"
        callee, argtypes, target = self._site.callee, self._site.argtypes, self.targets[0]
        if callee.link_key is None:
            self._skip(name, "it has none")
            return
        try:
            keys = [link_key(callee, argtypes, target) for _ in range(2)]
        except HookError as error:
            self._fail(name, str(error), "a key", "let it return a value, or None for no key")
            return
        if keys[0] is None:
            self._skip(name, "it is None")
            return
        nothing = without_value(keys[0])
        if nothing is not None:
            self._fail(
                name,
                f"{safe_repr(keys[0])}, in which {nothing} has no value of its own",
                "numbers, strings, types, and tuples of these",
                "put into the key what tells two objects with different code apart",
            )
            return
        if fingerprint(keys[0]) != fingerprint(keys[1]):
            self._fail(
                name, f"first {safe_repr(keys[0])}, then {safe_repr(keys[1])}", "the same key each time", _NO_PROCESS
            )
            return
        if not all(self._is_told_apart(name, keys[0], other) for other in others):
            return
        self._ok(name)

    def _is_told_apart(self, name: str, key: Any, other: _Checks) -> bool:
        site = other._site
        # The signature, the class and the target are told apart besides the key.
        apart = site.argtypes != self._site.argtypes or _kind(site.callee) != _kind(self._site.callee)
        other_key = link_key(site.callee, site.argtypes, self.targets[0])
        if apart or self._has_code_of(other) or fingerprint(other_key) != fingerprint(key):
            return True
        return self._fail(
            name,
            f"{safe_repr(key)}, which is also the key of {other.call}, whose code is another",
            "different keys for different code",
            "put into the key what the code depends on: attributes of the object, versions of the generator",
        )

    def _survives(self) -> bool:
        """Link what may be damaged inside in another process first."""
        for target in self.targets:
            finished = [item for item in self.answers[target] if item.kind not in (kinds.CUDA, kinds.PTX)]
            if not finished:
                continue
            try:
                trial = link_trial.try_link(finished, target)
            except link_trial.TrialError:
                return True
            if trial.signal is not None:
                return self._fail(
                    "nvJitLink survives it",
                    f"{trial.message}\n{trial.log}",
                    "code that links, or is refused",
                    "make the code anew",
                )
        return True

    def _links(self) -> None:
        for target in self.targets:
            how = _how(target)
            for name, calls in ((f"links alone, {how}", 1), (f"links in a kernel that calls it twice, {how}", 2)):
                message = self._build(probe_kernel(self.obj, self.args, calls), target)
                if message:
                    self._fail(name, message, "a kernel that links", "see the message")
                    break
                self._ok(name)


def _difference(one: Sequence[LinkInput], other: Sequence[LinkInput]) -> str:
    return _told_apart([ToldCode.of(item) for item in one], [ToldCode.of(item) for item in other], "first", "then")


def _told_apart(one: Sequence[ToldCode], other: Sequence[ToldCode], first: str, then: str) -> str:
    """In what two answers differ; empty if they do not."""
    if len(one) != len(other):
        return f"{first} {len(one)} pieces of code, {then} {len(other)}"
    for before, after in zip(one, other, strict=True):
        if before.digest != after.digest:
            return f"{first} {before.shown}, {then} {after.shown}{_differing_line(before, after, first, then)}"
    return ""


def _differing_line(before: ToldCode, after: ToldCode, first: str, then: str) -> str:
    lines = itertools.zip_longest((before.text or "").splitlines(), (after.text or "").splitlines(), fillvalue="")
    for number, (one, other) in enumerate(lines, 1):
        if one != other:
            return f"\nline {number} {first}: {one.strip()}\nline {number} {then}: {other.strip()}"
    return ""


def _listed(inputs: Sequence[LinkInput]) -> str:
    return ", ".join(ToldCode.of(item).shown for item in inputs)


def _how(target: Target) -> str:
    return "with LTO" if target.lto else "without LTO"


def _kind(callee: Callee) -> Any:
    return callee.obj if re.match("function|type", type(callee.obj).__name__) else type(callee.obj)

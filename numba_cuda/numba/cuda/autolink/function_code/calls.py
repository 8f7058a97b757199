# SPDX-License-Identifier: BSD-2-Clause
"""What one compiled function calls, and where in the source; which calls reference symbols, and whether they pass what
C++ expects. Lines cost time only where a function is linked into another."""

from __future__ import annotations

import contextlib
import types as pytypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError, SymbolSite
from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction

from ..protocol.ask import AskedCall
from ..protocol.call_sites import CallSite
from ..protocol.errors import CallError, HookError

_FLAGS = ("fastmath", "forceinline")  # options that change a function's code
# Those of a kernel that change its code, with their defaults, in both front ends; that of ``lto`` is ``not debug``.
_OF_KERNELS = {
    **dict.fromkeys(("debug", "lineinfo", "fastmath", "forceinline"), False),
    **{"opt": True, "opt_level": 3},
    **dict.fromkeys(("max_registers", "launch_bounds", "ptxas_options", "features"), None),
}
_NUMBA = ("numba.", "numba_cuda", "numba_cuda_mlir.")


def options_of_kernel(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return those *options* of ``cuda.jit`` that change a kernel's code and are not the defaults, as pairs of a name
    and a text."""
    defaults = {**_OF_KERNELS, "lto": not options.get("debug")}
    found = ((name, options.get(name), default) for name, default in defaults.items())
    given = ((name, value, default) for name, value, default in found if value is not None and value != default)
    is_flag = ((name, value, isinstance(default, bool) and value in (False, True)) for name, value, default in given)
    return tuple((name, str(bool(value) if flag else value)) for name, value, flag in is_flag)


class Calls:
    """What one compiled function calls: other compiled functions, and objects that provide linkable code."""

    def __init__(self) -> None:
        self.sites = OrderedSet()  # of objects, in order
        self.filename: str | None = None
        self.line: int | None = None  # where the source begins
        self.lines: dict[Any, int | None] = {}  # by function called, the line of the first call
        self.called_by_cxx: dict[Any, int | None] = {}  # the same for functions that C++ calls, which an object brings
        # By `id`: the Python function that was compiled, and those that lower calls in it.
        self.functions: dict[int, pytypes.FunctionType] = {}
        # What device callables returned for calls: by their types and those of the arguments, the objects, the
        # arguments, and what they returned.
        self.meanings: dict[Any, tuple[Any, Any, Any]] = {}
        self._compiled: tuple[pytypes.FunctionType, Sequence[Any]] | None = None
        self._described: tuple[PythonFunction | None, str] | None = None
        self._lowering: Any = None
        # Those that ``cuda.jit`` was given for this function, as pairs of a name and a text, where they are known.
        self.options: tuple[tuple[str, str], ...] = ()

    @contextlib.contextmanager
    def being_lowered(self, lowering: Any) -> Iterator[None]:
        """Take the lines of what is added inside the ``with`` block from *lowering*."""
        loc, function = lowering.func_ir.loc, lowering.func_ir.func_id.func
        self.filename, self.line, self._lowering = loc.filename, loc.line, lowering
        self.functions[id(function)] = function
        self.options = tuple((name, "True") for name in _FLAGS if getattr(lowering.flags, name, False))
        self.note_compiled(function, lowering.fndesc.argtypes)
        try:
            yield
        finally:
            self._lowering = None

    def note_compiled(self, function: Any, argtypes: Sequence[Any]) -> None:
        """Note the Python *function* that is compiled, for arguments of these types."""
        if isinstance(function, pytypes.FunctionType):
            self._compiled = function, argtypes

    @property
    def function(self) -> PythonFunction | None:
        """The Python function that was compiled; ``None`` for one of Numba's own, or if it is not known."""
        return self._describe()[0]

    @property
    def types(self) -> str:
        """The types of its arguments, as signatures have them."""
        return self._describe()[1]

    def _describe(self) -> tuple[PythonFunction | None, str]:
        if self._described is None:
            if self._compiled is None:
                return None, ""
            from ..protocol.kernel_signatures import arguments_text

            function, argtypes = self._compiled
            is_own = not str(function.__module__).startswith(_NUMBA)
            self._described = PythonFunction.of(function) if is_own else None, arguments_text(argtypes)
        return self._described

    def relocate(self, functions: Iterable[pytypes.FunctionType]) -> None:
        """Have messages name the file that the function is in here, where it is one of *functions*: another checkout
        may have compiled it."""
        known = self.function
        if known is None:
            return
        alike = (PythonFunction.of(each) for each in functions if each.__code__.co_firstlineno == known.line)
        of_known = known.name, known.places, known.content
        found = [each for each in alike if (each.name, each.places, each.content) == of_known]
        if found and known.path not in [each.path for each in found]:
            self._described = found[0], self.types
            self.filename = found[0].path if self.filename is not None else None

    def __getstate__(self) -> dict[str, Any]:
        self._describe()
        return {
            **vars(self),
            "_compiled": None,
            "functions": {},
            "meanings": {},
            "called_by_cxx": {},
            "_lowering": None,
        }

    @property
    def defined_at(self) -> tuple[str, int] | None:
        """The file and line of the function's definition, if they are known."""
        return None if self.filename is None or self.line is None else (self.filename, self.line)

    def note_implementation(self, function: Any) -> None:
        if isinstance(function, pytypes.FunctionType) and id(function) not in self.functions:
            self.functions[id(function)] = function
            for cell in function.__closure__ or ():
                with contextlib.suppress(ValueError):  # not filled yet
                    self.note_implementation(cell.cell_contents)

    def add(self, callee: Any, *, line: int | None = None, by_cxx: bool = False) -> None:
        """Note a call to *callee* at *line*, or of C++ that is called; by default, where code is being lowered."""
        lines = self.called_by_cxx if by_cxx else self.lines
        if callee not in lines:
            lines[callee] = line or getattr(getattr(self._lowering, "loc", None), "line", None)

    @property
    def below(self) -> dict[Any, int | None]:
        """The functions that it calls and those that C++ calls for it, with their lines."""
        return self.lines | self.called_by_cxx


class OrderedSet:
    """A set that keeps the order of insertion, with the methods that numba-cuda calls."""

    def __init__(self, items: Iterable[Any] = ()):
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Any) -> None:
        self._items[item] = None

    def update(self, items: Iterable[Any]) -> None:
        self._items.update(dict.fromkeys(items))


class SymbolSites(dict[str, list[SymbolSite]]):
    """By symbol, the calls that reference it: the first with each prototype."""

    def note(self, symbol: str, site: SymbolSite, asked: Iterable[CallSite] = ()) -> None:
        """Remember that *symbol* is referenced at *site*, which is the call of the objects *asked*."""
        known = self.setdefault(symbol, [])
        types = site.untyped, site.c_prototype
        if types not in ((other.untyped, other.c_prototype) for other in known):
            known.append(site._replace(asked=tuple(map(str, asked)) or site.asked))

    def note_all(self, others: SymbolSites) -> None:
        for symbol, sites in others.items():
            for site in sites:
                self.note(symbol, site)

    def check(self, kernel: str) -> None:
        """Raise `LinkError` for a symbol that is called with two prototypes, which the linker would not notice."""
        for symbol, sites in self.items():
            if len({site.untyped for site in sites}) > 1:
                raise LinkError(
                    f"{symbol!r} is called with different prototypes in kernel {kernel!r}\n"
                    + "\n".join(f"  {site.prototype} by: {site.call}" for site in sites)
                    + "\n  what to do: give each prototype a symbol of its own (put the types into its name)"
                )


def check_state(asked: Iterable[AskedCall], prototypes: Sequence[tuple[str, CPrototype]], loc: Any) -> None:
    """Raise `CallError` if one of the objects *asked* returned a function with an array as state, and the call at *loc*
    of C functions with these *prototypes* passes none."""
    addresses = [each for _, prototype in prototypes for each in prototype.parameters if each.cxx == "const void*"]
    if not prototypes or addresses:
        return
    for call in asked:
        if any(each._takes_arrays for each in call.answer.calling):
            diagnosis = (
                "returned a function with an array as state, and the call passes none\n"
                "  what to do: pass the array as state, in the args of the Extern: args={'name': autolink.state}"
            )
            raise CallError(HookError(call.callee, call.argtypes, diagnosis), call, loc)

# SPDX-License-Identifier: BSD-2-Clause
"""The calls that reference symbols in a function and in all that it calls, and whether they pass what C++ expects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype
from numba.cuda.cudadrv.external_code.plan.errors import LinkError
from numba.cuda.cudadrv.external_code.plan.kernel_code import SymbolSite

from ..protocol.ask import AskedCall
from ..protocol.call_sites import CallSite
from ..protocol.errors import CallError, HookError


class SymbolSites(dict[str, list[SymbolSite]]):
    """By symbol, the calls that reference it: the first with each prototype."""

    def note(self, symbol: str, site: SymbolSite, asked: Iterable[CallSite] = ()) -> None:
        """Remember that *symbol* is referenced at *site*, which is the call of the objects *asked*."""
        known = self.setdefault(symbol, [])
        types = site.untyped, site.c_prototype
        if types not in ((other.untyped, other.c_prototype) for other in known):
            known.append(site._replace(asked=tuple(map(str, asked)) or site.asked))

    def note_all(self, others: SymbolSites) -> None:
        """Remember all the sites of a function that is called."""
        for symbol, sites in others.items():
            for site in sites:
                self.note(symbol, site)

    def check(self, kernel: str) -> None:
        """Raise `LinkError` if two functions call one symbol with different prototypes, which the linker would not
        notice."""
        for symbol, sites in self.items():
            if len({site.untyped for site in sites}) > 1:
                raise LinkError(
                    f"linking kernel {kernel!r}: {symbol!r} is called with different prototypes\n"
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
        if any(each.takes_arrays for each in call.answer.calling):
            diagnosis = (
                "returned a function with an array as state, and the call passes none\n"
                "  what to do: pass the array as state, in the args of the Extern: args={'name': autolink.state}"
            )
            raise CallError(HookError(call.callee, call.argtypes, diagnosis), call, loc)

# SPDX-License-Identifier: BSD-2-Clause
"""Functions of C++ whose results, structs, are tuples with the names of the members: of C++ these are asked only where
a kernel uses one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from numba.cuda import types

from ..c_abi.extern import Extern
from ..compilation.context import current_target
from ..frontend_api.typing_rounds import Use
from .calls import Call, CallPattern
from .functions import CxxFunction
from .library_source import LibrarySource
from .records import ask_names
from .refusals import CxxError


class NamedResults(CxxFunction):
    """A function of C++ with named results."""

    def __reduce__(self) -> Any:
        return _get_named, (self._source, self._pattern)

    def change(self, **changes: Any) -> CxxFunction:
        """Return the function that is called by another pattern, with these *changes*."""
        return name_results(super().change(**changes))

    def __numba_cuda_call__(self, *args: types.Type) -> Extern:
        """Return the C function for arguments of these types. Raise `CxxError` if C++ refuses the call."""
        found = copy.copy(super().__numba_cuda_call__(*args))
        found.returns = self._name(self.call(args), found.returns)
        return found

    def guess_result(self, args: Sequence[types.Type], use: Use) -> types.Type:
        """Return what a call probably returns, as that of the function without names."""
        return self._name(self.call(args), super().guess_result(args, use))

    def _name(self, call: Call, returns: Any) -> Any:
        """Return the type of a result with names, or as it is if C++ has none that are known."""
        written = call.pattern.written
        if not isinstance(returns, types.BaseTuple) or len(returns) == len(written):  # new values alone
            return returns
        others: Sequence[Any] = ()
        if written:
            returns, *others = returns.types
        try:
            named: Any = ask_names(self._source, call, self._source.records, current_target().cc)
        except CxxError:
            named = returns
        found = named if _without_names(named) == returns else returns
        return types.BaseTuple.from_types([found, *others]) if others else found


def name_results(function: CxxFunction) -> CxxFunction:
    """Return *function* with named results."""
    return _get_named(function.library_source, function.pattern)


def _get_named(source: LibrarySource, pattern: CallPattern) -> CxxFunction:
    found: CxxFunction = source.get_object(("named", pattern), lambda: NamedResults(source, pattern))
    return found


def _without_names(numba_type: Any) -> Any:
    if not isinstance(numba_type, types.BaseTuple):
        return numba_type
    return types.BaseTuple.from_types([_without_names(each) for each in numba_type.types])

# SPDX-License-Identifier: BSD-2-Clause
"""Code that an object returns, and that calls objects in its turn: a Python function for C++."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput


class CallingCode:
    """Compiled code, and the code of the objects that it calls. Two are equal if what they link is.

    Attributes
    ----------
    library:
        The code library of the function that was compiled, which knows its calls.
    function_code:
        The `FunctionCode` of that function.
    undefined:
        The functions that it calls and does not define.
    takes_arrays:
        Whether C++ passes on the address of an array that it gets from the call.
    """

    library: Any
    function_code: Any
    undefined: tuple[str, ...]
    takes_arrays: bool

    def traced_inputs(self, origin: str) -> Iterator[tuple[str, LinkInput]]:
        """Yield its code, whose origin is *origin*, and what the objects that it calls provide, each with its call."""
        raise NotImplementedError

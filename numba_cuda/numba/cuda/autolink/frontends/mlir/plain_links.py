# SPDX-License-Identifier: BSD-2-Clause
"""Errors of numba-cuda-mlir's own links, of kernels that call no objects: the place, and what to do."""

from __future__ import annotations

import inspect
from typing import Any

from numba.cuda.cudadrv.external_code.explain.undefined_symbol import symbol_in_log
from numba.cuda.cudadrv.external_code.formats.mangled_names import readable

from numba_cuda_autolink.source_locations import find_call, shown_file, with_place

from ...frontend_api.placed_messages import placed_error


def explain(error: Exception, kernel: Any) -> str | None:
    """Return the message with which an *error* of the Python function *kernel* is printed: that of `placed_error`, but
    for links of what a function of ``declare_device`` that it calls brings, or that nothing defines."""
    symbol = symbol_in_log(str(error)) if type(error).__name__ == "nvJitLinkError" else None
    variables = inspect.getclosurevars(kernel)
    for name, value in {**variables.globals, **variables.nonlocals}.items():
        link = getattr(value, "link", None)
        if symbol is not None and getattr(value, "name", None) == symbol:
            return _placed(
                f"{readable(symbol)!r} is called but nothing that is linked defines it\n"
                f'  what to do: define it in code that link= names, as extern "C"\n  log: {error}',
                kernel,
                name,
            )
        if isinstance(error, FileNotFoundError) and isinstance(link, (tuple, list)) and error.filename in link:
            return _placed(
                f"link= of declare_device({value.name!r}): {error.filename} not found\n"
                "  what to do: for a file beside your own, write os.path.join(os.path.dirname(__file__), ...)",
                kernel,
                name,
            )
    return placed_error(error)


def _placed(text: str, kernel: Any, called: str) -> str:
    """Return *text* with the place where the Python function *kernel* calls its variable *called*."""
    code = kernel.__code__
    file, line = find_call(code.co_filename, code.co_firstlineno, called) or (code.co_filename, code.co_firstlineno)
    return with_place(text, f"called at: {shown_file(file)}:{line} in {code.co_name}", file, line)

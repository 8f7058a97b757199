# SPDX-License-Identifier: BSD-2-Clause
"""numba-cuda-mlir with the emulated driver: every seam between the two.

numba-cuda-mlir, its launcher, cuda.core and cuda.bindings find the driver by its name. What is left: kernels that are
launched are linked to PTX, arrays have the names of parameters, what a kernel raises in the emulator reaches its
caller, numba-cuda-mlir looks for the driver again, and does not warn of grids that leave parts of a GPU idle.
"""

from __future__ import annotations

import warnings
from typing import Any

from cuda.core import ObjectCode
from numba_cuda_mlir.numba_cuda.core import config
from numba_cuda_mlir.numba_cuda.core.errors import NumbaDebugInfoWarning
from numba_cuda_mlir.numba_cuda.cudadrv import driver

from numba_cuda_autolink.emulated_driver import activation
from numba_cuda_autolink.emulated_driver.c_functions import raise_failures
from numba_cuda_autolink.emulated_driver.device import settings
from numba_cuda_autolink.emulator import memory
from numba_cuda_autolink.errors import LaunchError, at_call

from ...compilation.context import current_state
from ...frontend_api.launch_messages import named_arguments
from ...frontend_api.seams import Seams
from ...function_code.emulated_texts import can_link

_seams = Seams("numba-cuda-mlir")
_in_place_of = _seams.in_place_of


@_in_place_of("numba_cuda_mlir.linker:Linker.complete")
def _complete(original: Any, linker: Any) -> Any:
    """Link a kernel that calls no external code to PTX."""
    if not is_emulated():
        return original(linker)
    linker._materialize_pending_cu()
    codes = [each for each in linker._object_codes if "cudadevrt" not in each.name]  # which the emulator has
    kinds = {each.code_type for each in codes}
    if kinds not in ({"ptx"}, {"ltoir"}):
        raise NotImplementedError(
            f"the emulator runs PTX, and link= names code of other kinds: {', '.join(sorted(kinds - {'ptx', 'ltoir'}))}"
            "\n  what to do: provide CUDA C++, or PTX with lto=False"
        )
    given, linker._object_codes[:] = linker._object_codes[:], codes
    texts = [linker.get_linked_ptx()] if kinds == {"ltoir"} else [each.code for each in codes]
    found = [bytes(text).decode().rstrip("\0") for text in texts]
    if not can_link(found):
        linker._object_codes[:] = given
        original(linker)  # the error says why not
    return ObjectCode.from_ptx("\n".join(found).encode())


@_in_place_of("numba_cuda_mlir.mlir_compiler:mlir_compiler_entry")
def _compile(original: Any, *args: Any, targetoptions: dict[str, Any], **named: Any) -> Any:
    """Compile what is launched with the lines of its source, which errors show."""
    if not is_emulated() or targetoptions.get("debug"):
        return original(*args, targetoptions=targetoptions, **named)
    with warnings.catch_warnings():  # nobody asked for the lines of what has no source
        warnings.simplefilter("ignore", NumbaDebugInfoWarning)
        return original(*args, targetoptions={**targetoptions, "lineinfo": True}, **named)


@_in_place_of("numba_cuda_mlir.descriptor:_ArgMarshaller._launch")
def _launch(original: Any, marshaller: Any, argtypes: Any, *args: Any) -> Any:
    if activation.was_imported_before("numba_cuda_mlir._cext"):  # which would call functions that it has not found
        raise LaunchError(
            at_call(
                "numba-cuda-mlir was imported before the emulated driver was there, and cannot launch kernels in it"
                f"\n  what to do: start autolink.emulated() before it is imported, or set {activation.VARIABLE}=1"
            )
        )
    if (dispatcher := marshaller._dispatcher) is not None:
        for value, name in named_arguments(dispatcher.py_func.__code__.co_varnames, args[-1]):  # in tuples, too
            if (interface := getattr(value, "__cuda_array_interface__", None)) is not None:
                memory.name(interface["data"][0], name)
    return raise_failures(original, marshaller, argtypes, *args)


def is_emulated() -> bool:
    """Return whether the kernel that is being compiled is launched in the emulator."""
    return activation.is_active() and current_state().cc is None


def activate() -> None:
    """Attach numba-cuda-mlir to the emulated driver. Do nothing if it is.

    Raises `MissingSeamError` if the installed numba-cuda-mlir lacks a name to replace. Nothing is replaced then.
    """
    if _seams.active:
        return
    _seams.replace(("numba_cuda_mlir.linker:Linker._materialize_pending_cu",))
    for name in settings.zeros_of_config():
        _seams.set(config, name, 0)
    if driver.driver.initialization_error is not None:
        driver.driver.is_initialized, driver.driver.initialization_error = False, None


def deactivate() -> None:
    _seams.restore()


SEAMS = _seams.functions

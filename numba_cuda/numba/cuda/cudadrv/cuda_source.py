# SPDX-License-Identifier: BSD-2-Clause
"""CUDA C++ source as linkable code, and its compilation with NVRTC."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cuda import pathfinder
from cuda.core import ObjectCode, Program, ProgramOptions
from numba.cuda import config
from numba.cuda.cuda_paths import get_cuda_paths
from numba.cuda.cudadrv import nvrtc
from numba.cuda.cudadrv.linkable_code import CUSource

# Set by the link itself, from the target.
_RESERVED_OPTIONS = frozenset(
    {
        "name",
        "arch",
        "relocatable_device_code",
        "link_time_optimization",
        "include_path",
        "define_macro",
        "extra_sources",
    }
)


@dataclass(frozen=True)
class CompileOptions:
    """How to compile a CUDA C++ source: include directories in order of search, macros, `ProgramOptions` fields."""

    include_paths: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


class CUDASource(CUSource):
    """CUDA C++ source to be compiled and linked, with its own include paths, macros and compile options.

    Parameters
    ----------
    code : str
        The source.
    name : str, optional
        What the compiler's messages call it.
    include_paths : iterable of path-like, optional
        Directories to search for headers, before the CUDA toolkit's.
    defines : mapping or iterable, optional
        Macros: ``{"TILE": 16, "DEBUG": None}``, or an iterable of names and ``(name, value)`` pairs. ``None`` defines
        the macro as 1.
    options : mapping, optional
        Fields of `cuda.core.ProgramOptions`, such as ``{"std": "c++20", "use_fast_math": True}``.
    setup_callback, teardown_callback : callable, optional
        Called with the loaded module, and before it is unloaded.
    nrt : bool, optional
        Whether the code calls numba-cuda's runtime (NRT).

    Raises
    ------
    TypeError
        If the code is no text, or an option has a wrong type.
    ValueError
        For an unknown option, or one that the link sets itself (architecture, link-time optimisation).
    """

    def __init__(
        self,
        code: str,
        *,
        name: str | None = None,
        include_paths: Iterable[str | os.PathLike[str]] = (),
        defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        setup_callback: Any = None,
        teardown_callback: Any = None,
        nrt: bool = False,
    ):
        if not isinstance(code, str):
            raise TypeError(f"CUDASource takes the source as a str, got {type(code).__name__}")
        super().__init__(code, name, setup_callback, teardown_callback, nrt)
        if isinstance(include_paths, (str, os.PathLike)):
            include_paths = (include_paths,)
        self.compile_options = CompileOptions(
            tuple(os.path.abspath(os.fspath(path)) for path in include_paths),
            _macros(defines),
            _checked_options(options or {}),
        )


def _macros(defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    if isinstance(defines, str):
        defines = (defines,)
    items = defines.items() if isinstance(defines, Mapping) else defines
    pairs = [(item, None) if isinstance(item, str) else item for item in items]
    return tuple((name, "1" if value is None else _macro_text(value)) for name, value in pairs)


def _macro_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _checked_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    known = [field.name for field in dataclasses.fields(ProgramOptions)]
    for option in options:
        if option in _RESERVED_OPTIONS:
            instead = {"include_path": "include_paths", "define_macro": "defines"}.get(option)
            hint = f"use {instead}=" if instead else "it follows from the kernel's target"
            raise ValueError(f"CUDASource option {option!r} is not for the source to set: {hint}")
        if option not in known:
            near = difflib.get_close_matches(option, known, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"CUDASource option {option!r} is no field of cuda.core.ProgramOptions{hint}")
    return tuple(sorted((name, tuple(v) if isinstance(v, list) else v) for name, v in options.items()))


class CompileError(RuntimeError):
    """NVRTC refused a source; ``log`` is what it printed."""

    def __init__(self, name: str, log: str):
        self.log = log
        super().__init__(f"{name} does not compile:\n{log}")


def compile_source(code: bytes, name: str, options: CompileOptions, target: Any) -> ObjectCode:
    """Compile CUDA C++ *code* for *target*: to LTO-IR where it links with LTO, to a relocatable cubin elsewhere.

    *target* is a `numba.cuda.autolink.Target`. NVRTC's warnings become a Python warning.

    Raises
    ------
    CompileError
        If the code does not compile.
    """
    log = _Log()
    program_options = dict(
        arch=target.arch,
        relocatable_device_code=True,
        link_time_optimization=target.lto,
        debug=(target.debug and not target.lto) or None,  # full debug information and LTO exclude each other
        lineinfo=target.lineinfo or None,
        max_register_count=target.max_registers,
        include_path=[*options.include_paths, *toolkit_include_paths()],
        define_macro=list(options.defines) or None,
        name=name,
    )
    program_options.update(options.options)
    try:
        program = Program(code.decode(), "c++", options=ProgramOptions(**program_options))
        result = program.compile("ltoir" if target.lto else "cubin", logs=log)
    except Exception as error:
        raise CompileError(name, str(error)) from error
    if text := _outside_toolkit(log.text):
        warnings.warn(f"NVRTC log messages: {text}", stacklevel=2)
    return result


def _outside_toolkit(log: str) -> str:
    """The messages of *log* that are not about the toolkit's own headers, which NVRTC, unlike nvcc, does not know to be
    system headers."""
    toolkit = toolkit_include_paths()
    messages = [message for message in log.replace("\0", "").split("\n\n") if message.strip()]
    kept = [message for message in messages if not message.lstrip().startswith(toolkit)]
    if all(message.startswith("Remark: ") for message in kept):  # on how to suppress the others
        return ""
    return "\n\n".join(kept).strip()


class _Log:
    """What `Program.compile` writes its log to."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def toolkit_include_paths() -> tuple[str, ...]:
    """The directories that every source is compiled with: numba-cuda's own headers, the toolkit's, CCCL's, and those
    that numba-cuda's ``CUDA_NVRTC_EXTRA_SEARCH_PATHS`` names."""
    extra = config.CUDA_NVRTC_EXTRA_SEARCH_PATHS or ""
    return _fixed_include_paths() + tuple(path for path in extra.split(":") if path)


@functools.cache
def _fixed_include_paths() -> tuple[str, ...]:
    host = os.path.dirname(os.path.dirname(os.path.abspath(nvrtc.__file__)))
    major = nvrtc._get_nvrtc_version()[0]
    cccl = pathfinder.locate_nvidia_header_directory("cccl")
    paths = (
        os.path.join(host, "include", str(major)),
        get_cuda_paths()["include_dir"].info,
        cccl.abs_path if cccl is not None else None,
        os.path.join(host, "memory_management"),
    )
    return tuple(path for path in paths if path)

# SPDX-License-Identifier: BSD-2-Clause
"""Python files with kernels: importing one, where there is no GPU too, and the kernels in it."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import operator
import os
import pathlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn, TypeAlias

from cuda import pathfinder
from numba import cuda
from numba.cuda.autolink.compilation.context import inside
from numba.cuda.autolink.frontend_api.front_end import is_kernel
from numba.cuda.autolink.frontend_api.placed_messages import placed_error
from numba.cuda.autolink.frontend_api.signature_messages import example_for
from numba.cuda.autolink.protocol.kernel_signatures import type_text
from numba.cuda.autolink.reports.formatting import listed
from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.platform.cuda_libraries import why_missing
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

from ..printable_texts import did_you_mean
from ..short_tracebacks import first_lines, user_frames
from ..source_syntax import describe_syntax_error
from .argument_parsing import CommandError, check_known, check_signature

# What kernels that are compiled as their file is imported are compiled for, without a GPU and without --cc.
_WITHOUT_GPU = ComputeCapability(9, 0)


@dataclass(frozen=True)
class NamedKernel:
    """A kernel, device function or Python function ``obj`` in a file; ``name`` is what the command line calls it.
    ``error`` is why it could not be compiled for the signatures in its decorator; empty if it could."""

    obj: Any
    name: str
    error: str = ""

    @property
    def is_device_function(self) -> bool:
        """Whether only kernels and other device functions call it."""
        return bool(getattr(self.obj, "targetoptions", {}).get("device"))

    @property
    def kind(self) -> str:
        """What it is, as text."""
        if not is_kernel(self.obj):
            return "Python function"
        return "device function" if self.is_device_function else "kernel"

    @property
    def function(self) -> Any:
        return getattr(self.obj, "py_func", self.obj)

    @property
    def parameters(self) -> str:
        """Its parameters as text: ``(x, y)``."""
        return str(inspect.signature(self.function))

    @property
    def signatures(self) -> tuple[str, ...]:
        """The signatures in its decorator, as text; none if it is compiled when it is called."""
        if not hasattr(self.obj, "overloads"):
            return ()
        returned = {args: getattr(each.signature, "return_type", "void") for args, each in self.obj.overloads.items()}
        return tuple(
            f"{type_text(result) if self.is_device_function else 'void'}({', '.join(map(type_text, args))})"
            for args, result in returned.items()
        )

    def is_compiled_for(self, signature: Any, capabilities: list[ComputeCapability] | None) -> bool:
        """Whether importing its file for *capabilities* compiled it, as a kernel, for this *signature* alone and for
        all of them: it is for the GPU, or without one for the first."""
        only_one = capabilities is None or (len(capabilities) == 1 and not cuda.is_available())
        named = list(getattr(self.obj, "overloads", ()))
        return only_one and not self.is_device_function and named == [signature]

    def signature(self, given: str | None) -> Any:
        """Return the signature to build it for: the one *given*, or the only one in its decorator, as types. Raise
        `CommandError` if there is none, or the *given* text is not one."""
        named = list(getattr(self.obj, "overloads", ()))
        if given is not None:
            argtypes = check_signature(given, self.function, may_return=self.is_device_function)
            return argtypes if named == [argtypes] else given
        if len(named) == 1:
            return named[0]
        if self.error:
            raise CommandError(self.error)
        if named:
            lines = "".join(f"\n  {each}" for each in self.signatures)
            raise CommandError(f"{self.name} is compiled for {len(named)} signatures; pass one as --sig:{lines}", 2)
        example = example_for(self.function, *(["float32"] if self.is_device_function else []))
        raise CommandError(
            f"--sig is missing: {self.name}{self.parameters} is not compiled for a signature yet\n"
            f"  what to do: pass the types of its arguments, such as --sig {example!r}",
            2,
        )


Uncompiled: TypeAlias = list[tuple[Any, str]]


def load_file(
    path: str, capabilities: list[ComputeCapability] | None = None, uncompiled: Uncompiled | None = None
) -> ModuleType:
    """Return the module that the Python file *path* is; its directory is first in ``sys.path``. Without a GPU, kernels
    whose decorators name signatures are compiled for the first of *capabilities*. A list *uncompiled* gets the
    functions that could not be, with the reasons; without it, the errors are raised.

    Raise `CommandError` if there is no such file, or it raises an exception or exits.
    """
    if config.ENABLE_CUDASIM:
        raise CommandError("the simulator compiles nothing\n  what to do: unset NUMBA_ENABLE_CUDASIM")
    check_known(capabilities or [])
    file = pathlib.Path(os.path.abspath(path))
    if not file.is_file():
        raise _missing(path)
    package = _package(file)
    name = ".".join((*package, file.stem))
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file\n  what to do: name one with kernels, whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path[:0] = [str(file.parent), *([str(file.parents[len(package)])] if package else [])]
    try:
        with (
            device_or_stand_in(capabilities),
            _arguments(str(file)),
            _noticing_exits(),
            inside(uncompiled=uncompiled),
        ):
            if package:
                importlib.import_module(".".join(package))
            sys.modules[name] = module
            spec.loader.exec_module(module)
    except SystemExit as error:
        line = _line_in(file, error)
        raise CommandError(
            f"{path}:{line}: the file exits when it is imported: SystemExit({error.code!r})\n"
            "  what to do: move what the program runs below: if __name__ == '__main__':"
        ) from error
    except Exception as error:
        unloaded = isinstance(error, pathfinder.DynamicLibNotFoundError) or "Failed to dlopen" in str(error)
        missing = why_missing("NVRTC") if unloaded else None
        raise CommandError(f"{path}: {missing[0]}" if missing else _why_not_run(path, file, error)) from error
    return module


def device_or_stand_in(capabilities: Sequence[ComputeCapability] | None) -> contextlib.AbstractContextManager[None]:
    """Without a GPU, let kernels that are compiled as a module is imported be so for the first of *capabilities*."""
    if cuda.is_available():
        return contextlib.nullcontext()
    from numba.cuda.autolink.compilation.context import instead_of_device

    return instead_of_device((*(capabilities or ()), _WITHOUT_GPU)[0].parts)


@contextlib.contextmanager
def _arguments(file: str) -> Iterator[None]:
    """Let the file see no arguments, as if it was run by itself: those of the command are not for it."""
    own, sys.argv = sys.argv, [file]
    try:
        yield
    finally:
        sys.argv = own


@contextlib.contextmanager
def _noticing_exits() -> Iterator[None]:
    """Let the file's ``os._exit``, which would end the command without a word, raise what ``sys.exit`` does; not in
    processes that it forks."""
    own, process = os._exit, os.getpid()

    def leave(status: int) -> NoReturn:
        if os.getpid() == process:
            raise SystemExit(status)
        own(status)

    os._exit = leave
    try:
        yield
    finally:
        os._exit = own


def _package(file: pathlib.Path) -> tuple[str, ...]:
    """Return the names of the package that *file* is in, outermost first, so that its relative imports work. It is in
    none if another package of that name is imported already."""
    names: list[str] = []
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    imported = sys.modules.get(names[0]) if names else None
    own = imported is None or str(folder / names[0]) in getattr(imported, "__path__", ())
    return tuple(names) if own else ()


def _line_in(file: pathlib.Path, error: BaseException) -> int:
    """Return the line of *file* that raised, or that called what raised."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(file)]
    return (lines[-1] if lines else None) or 1


def _missing(path: str) -> CommandError:
    """Return the error about a *path* that is not a file."""
    folder, name = os.path.split(path)
    try:
        files = sorted(os.listdir(path if os.path.isdir(path) else folder or "."))
    except OSError:
        files = []
    if not os.path.isdir(path):
        return CommandError(f"{path}: no such file{did_you_mean(name, files)}")
    paths = [os.path.normpath(os.path.join(path, each)) for each in files if each.endswith(".py")]
    found = [each for each in paths if os.path.isfile(each)]
    if not found:
        return CommandError(f"{path} is a folder without Python files\n  what to do: name a Python file")
    return CommandError(
        f"{path} is a folder\n  what to do: name a Python file in it: {listed(found)};\n"
        f"    numba-cuda-autolink explain {found[0]} lists the kernels of one"
    )


def _why_not_run(path: str, file: pathlib.Path, error: Exception) -> str:
    """Return where and why the *file* raised: its own line first, then the line of another file that raised."""
    if isinstance(error, SyntaxError):
        return describe_syntax_error(error, path if error.filename in (None, str(file)) else None)
    if (message := placed_error(error)) is not None:
        return first_lines(message)  # of a kernel that is compiled as the file is imported
    text = f"{path}:{_line_in(file, error)}: {type(error).__name__}: {error}".removesuffix(": ")
    for code, line in reversed(user_frames(error)):
        if not code.co_filename.startswith("<"):
            if code.co_filename != str(file) and not code.co_filename.startswith(sys.prefix):
                text += f"\n  raised at: {code.co_filename}:{line} in {code.co_name}"
            break
    return text


def check_name(text: str) -> tuple[str, str]:
    """Return the file and the kernel that *text*, FILE.py:KERNEL or MODULE:KERNEL, names. Raise `CommandError` if it
    names none."""
    path, _, name = text.rpartition(":")
    if os.path.isdir(text) or (text.endswith(".py") and not os.path.isfile(text)):
        raise _missing(text)
    if not path or not name:
        hint = f"; numba-cuda-autolink explain {text} lists its kernels" if pathlib.Path(text).is_file() else ""
        raise CommandError(f"{text!r} does not name a kernel: write FILE.py:KERNEL{hint}", 2)
    return (path if os.path.exists(path) else _file_of_module(path) or path), name


def _file_of_module(name: str) -> str | None:
    """Return the file of the module *name* in the working directory or on Python's path, without importing it."""
    if all(part.isidentifier() for part in name.split(".")):
        for folder in ("", *sys.path):
            for end in (".py", f"{os.sep}__init__.py"):
                if os.path.isfile(file := os.path.join(folder, *name.split(".")) + end):
                    return file
    return None


def load_kernel(
    text: str, capabilities: list[ComputeCapability] | None = None, uncompiled: Uncompiled | None = None
) -> NamedKernel:
    """Return what FILE.py:KERNEL names, from the file as `load_file` imports it. Raise `CommandError` if there is no
    such file, or what is named in it is neither a kernel nor a Python function."""
    path, name = check_name(text)
    module = load_file(path, capabilities, uncompiled)
    try:
        found = _named(operator.attrgetter(name)(module), name, uncompiled)
    except AttributeError as error:
        functions = [each for each in dir(error.obj) if _is_function(inspect.getattr_static(error.obj, each, None))]
        hint = did_you_mean(error.name or name, functions) or _kernels_as_hint(module)
        raise CommandError(f"{path} has no {name!r}{hint}") from None
    if not _is_function(found.obj):
        raise CommandError(
            f"{name} is neither a kernel nor a Python function: {type(found.obj).__name__}{_kernels_as_hint(module)}"
        )
    return found


def _is_function(obj: Any) -> bool:
    return is_kernel(obj) or inspect.isfunction(obj)


def _kernels_as_hint(module: ModuleType) -> str:
    names = [each.name for each in kernels_in(module) if not each.is_device_function]
    return f"; kernels in it: {', '.join(names)}" if names else ""


def kernels_in(module: ModuleType, uncompiled: Uncompiled | None = None) -> list[NamedKernel]:
    """Return the kernels and device functions among the names of *module* and of its classes, in the order of their
    definitions."""
    return [_named(value, name, uncompiled) for name, value in _names_in(module, module.__name__) if is_kernel(value)]


def functions_in(module: ModuleType) -> list[NamedKernel]:
    """Return the public Python functions with parameters that *module* itself defines: a kernel can be made of one."""
    own = (each for each in vars(module).items() if getattr(each[1], "__module__", None) == module.__name__)
    found = [NamedKernel(value, name) for name, value in own if inspect.isfunction(value) and name[0] != "_"]
    return [each for each in found if inspect.signature(each.obj).parameters]


def _names_in(namespace: Any, module: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the names in a *module* or a class, and those in the classes that the module defines there, with their
    values."""
    for name, given in list(vars(namespace).items()):
        value = given.__func__ if isinstance(given, staticmethod) else given
        yield f"{path}{name}", value
        if inspect.isclass(value) and value.__module__ == module and value.__name__ == name:
            yield from _names_in(value, module, f"{path}{name}.")


def _named(obj: Any, name: str, uncompiled: Uncompiled | None) -> NamedKernel:
    reasons = [reason for function, reason in uncompiled or () if function is getattr(obj, "py_func", obj)]
    return NamedKernel(obj, name, first_lines(reasons[0]) if reasons else "")

# SPDX-License-Identifier: BSD-2-Clause
"""Link inputs: pieces of code to link, by kind and content.

`from_item` makes one from what users pass (a ``LinkableCode``, a ``cuda.core.ObjectCode`` or a path) and refuses what
no linker accepts.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cuda.core import ObjectCode
from numba.cuda.cudadrv.linkable_code import LinkableCode

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.files import read_regular_file
from numba_cuda_autolink.finished.variables import Variable

from ..diagnostics.messages import safe_repr, shown
from .cuda_source import CompileOptions, CUDASource
from .kinds import BITCODE, CUDA, KINDS, PTX, Bitcode, Kind

NOT_ASYNC = "make the method an ordinary one, without async"
_AS_TEXT = "save it as UTF-8, or replace that character"
_AS_OTHER = "give it the suffix or the class of what it is, or make it again if it is damaged"
_AS_SOURCE = "this is CUDA C++: return autolink.CUDASource(text)"
_CXX = re.compile(rb"#\s*include\b|\b__(?:device|global|host)__\b")
# The classes of numba-cuda-mlir's ``cuda.LTOIR`` and the like, copies of numba-cuda's.
_OTHER_LINKABLES = "numba_cuda_mlir.numba_cuda.cudadrv.linkable_code"


def close_coroutine(value: Any) -> bool:
    """Return whether *value* is a coroutine, which is closed then: else Python warns that nobody awaited it."""
    if is_coroutine := inspect.iscoroutine(value):
        value.close()
    return is_coroutine


class LinkInputError(PrintableError, ValueError):
    """A link input is missing, of an unknown kind, or not what it claims to be."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    missing = ""  # the path that was given, of a file that is not there

    @classmethod
    def missing_file(cls, path: str, given: str) -> LinkInputError:
        error = cls(f"{path} not found")
        error.missing = given
        return error

    @classmethod
    def unknown_file(cls, path: str, suffix: str) -> LinkInputError:
        what = f"file with extension {suffix}" if suffix else "file with no extension"
        known = ", ".join(suffix for kind in KINDS for suffix in kind.suffixes)
        return cls(
            f"Don't know how to link {what}: {path!r}\n  known: {known}\n  what to do: name a file of a known kind"
        )

    @classmethod
    def unknown_item(cls, item: Any) -> LinkInputError:
        hint = ""
        if close_coroutine(item):
            hint = f"\n  what to do: {NOT_ASYNC}"
        elif isinstance(item, (bytes, bytearray, memoryview)):
            hint = "\n  what to do: wrap the bytes, whose kind is not known: cuda.LTOIR(data), cuda.Cubin(data), ..."
        elif isinstance(item, Mapping):
            written = "[autolink.CUDASource(text, name=name) for name, text in code.items()]"
            hint = f"\n  what to do: return a list; of sources by name, {written}"
        elif isinstance(item, type):
            hint = f"\n  what to do: return an object of {item.__name__}, not the class"
        return cls(
            f"{type(item).__name__} is not code\n  got: {shown(item)}\n"
            "  expected: a LinkableCode (cuda.LTOIR, cuda.PTXSource, cuda.CUSource, cuda.Cubin, cuda.Fatbin,"
            " cuda.Object, cuda.Archive, autolink.CUDASource, autolink.Bitcode), a cuda.core.ObjectCode, a path,"
            f" an iterable of these, or None{hint}"
        )


@dataclass(frozen=True)
class LinkInput:
    """One piece of code to link: source as UTF-8, with *options* of how to compile CUDA C++. Two are equal if their
    kind, content and compile options are.

    The callbacks are called with the loaded module, and before it is unloaded. *nrt* is whether it needs numba-cuda's
    runtime, and *variable* what it defines, if that is a variable that the host sets. *made_of* is the digest of what
    this process compiled it from, for any target; empty if that is not known. *python* is the record of the
    Python function that it is, if C++ calls one.
    """

    kind: Kind
    code: bytes = field(repr=False)
    options: CompileOptions = field(default_factory=CompileOptions)
    name: str = field(default="", compare=False)
    setup_callback: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    teardown_callback: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    nrt: bool = field(default=False, compare=False, repr=False)
    variable: VariableSource | None = field(default=None, compare=False, repr=False)
    made_of: str = field(default="", compare=False, repr=False)
    python: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        kind, code = self.kind, self.code
        if not isinstance(self.name, str):
            raise LinkInputError(f"the name of the {kind} is {safe_repr(self.name)}, expected a str")
        for text in (self.name, *_texts(tuple(vars(self.options).values()))):
            if fault := text_fault(text) or ("a NUL" if "\0" in text else ""):
                raise LinkInputError(f"the name or an option of the {kind} is {safe_repr(text)}: it has {fault}")
        looks_like = next((other for other in KINDS if other.magic and code.startswith(other.magic)), None)
        if looks_like and not kind.magic:
            raise LinkInputError(
                f"{safe_repr(self.name)} is not {kind}: it looks like {looks_like}\n  what to do: {_AS_OTHER}"
            )
        if kind in (CUDA, PTX):
            try:
                fault = text_fault(code.decode())
            except UnicodeDecodeError as error:
                line = code.count(b"\n", 0, error.start) + 1
                fault = f"the byte 0x{code[error.start]:02x} in line {line}, which is not UTF-8"
            if fault:
                raise LinkInputError(f"the {kind} {safe_repr(self.name)} has {fault}\n  what to do: {_AS_TEXT}")
        # An empty source is a valid translation unit; it may be there for its callbacks.
        if kind is not CUDA and not code.strip(b"\0 \t\r\n"):
            raise LinkInputError(f"the {kind} {self.name!r} is empty")
        if kind.magic and not code.startswith(kind.magic):
            found = f"it looks like {looks_like}" if looks_like else f"it begins with {code[:8]!r}"
            remedy = _AS_SOURCE if _CXX.search(code) and not looks_like else _AS_OTHER
            raise LinkInputError(f"{self.name!r} is not {kind}: {found}\n  what to do: {remedy}")
        if not kind.is_compiled:
            from ..formats.validation import structural_fault  # which a kernel that is linked already starts without

            if fault := structural_fault(kind.name, code):
                remedy = f"\n  what to do: {_AS_SOURCE}" if kind is PTX and _CXX.search(code) else ""
                raise LinkInputError(f"{self.name!r} cannot be linked as {kind}: {fault}{remedy}")

    @property
    def text(self) -> str:
        """The text of a source, with what is compiled before it."""
        text, prologue = self.code.decode(), self.options.prologue
        return f"{prologue}\n{line_marker(self.name)}{text}" if prologue else text

    @property
    def digest(self) -> str:
        """The SHA-256 of kind, options and content, as hexadecimal digits."""
        state = hashlib.sha256()
        for part in (self.kind.name.encode(), repr(self.options).encode(), self.code):
            state.update(len(part).to_bytes(8, "little") + part)
        return state.hexdigest()

    def as_linkable(self) -> LinkableCode:
        """Return the same as one of numba-cuda's linkable code objects."""
        if self.variable is not None:
            return self.variable
        code: Any = self.code.decode() if self.kind in (CUDA, PTX) else self.code
        others: dict[str, Any] = {name: getattr(self, name) for name in ("name", "setup_callback", "teardown_callback")}
        if self.kind is CUDA:
            others |= {**vars(self.options), "options": dict(self.options.options)}
            del others["working_directory"]
            return CUDASource(code, nrt=self.nrt, **others)
        if self.kind is BITCODE:
            return Bitcode(code, **others)
        return self.kind.linkable(code, nrt=self.nrt, **others)


def line_marker(name: str) -> str:
    """Return the directive after which NVRTC's messages count the lines of *name*."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'#line 1 "{quoted}"\n'


_MARKER = re.compile(r'^#line 1 "((?:[^"\\\n]|\\.)*)"\n', re.MULTILINE)


def split_at_markers(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the files that the source *text* of a unit called *name* consists of, name and text: what follows a
    `line_marker` is of the file that it names."""
    before, *rest = _MARKER.split(text)
    if before:
        yield name, before
    for quoted, piece in zip(rest[::2], rest[1::2], strict=True):
        yield re.sub(r"\\(.)", r"\1", quoted), piece


def is_item(item: Any) -> bool:
    return isinstance(item, (LinkableCode, ObjectCode, str, os.PathLike)) or type(item).__module__ == _OTHER_LINKABLES


def file_of(item: Any) -> str | None:
    """Return the path of the file that *item* is, with or without compile options; None if it is something else."""
    if isinstance(item, CUDASource):
        return item.path
    return os.fsdecode(item) if isinstance(item, (str, os.PathLike)) else None


def from_item(item: Any) -> LinkInput:
    """Return the link input for *item*; a file is read now. Raises `LinkInputError` for an item of another type, a
    missing file, an unknown suffix, or code that is not what it claims to be."""
    if isinstance(item, LinkableCode):
        return _from_linkable(item)
    if type(item).__module__ == _OTHER_LINKABLES:
        return _from_linkable(_counterpart(item))
    if isinstance(item, ObjectCode):
        return _from_object_code(item)
    if isinstance(item, (str, os.PathLike)):
        return _from_path(os.fsdecode(item))
    raise LinkInputError.unknown_item(item)


def _counterpart(item: Any) -> LinkableCode:
    kind = next((kind for kind in KINDS if kind.linkable.__name__ == type(item).__name__), None)
    if kind is None:
        raise LinkInputError.unknown_item(item)
    callbacks = {"setup_callback": item.setup_callback, "teardown_callback": item.teardown_callback}
    return kind.linkable(item.data, name=item.name, nrt=item.nrt, **callbacks)


def _from_linkable(item: LinkableCode) -> LinkInput:
    kind = next((kind for kind in KINDS if isinstance(item, kind.linkable)), None)
    if kind is None:
        raise LinkInputError(f"{type(item).__name__} is a LinkableCode of an unknown kind")
    options = item.compile_options if isinstance(item, CUDASource) else CompileOptions()
    path = item.path if isinstance(item, CUDASource) else None
    code, nrt = (
        _bytes(item.data, item.name) if path is None else _read(path, getattr(item, "given", None)),
        getattr(item, "nrt", False),
    )
    variable = item if isinstance(item, VariableSource) else None
    return LinkInput(kind, code, options, item.name, item.setup_callback, item.teardown_callback, nrt, variable)


def _from_object_code(item: ObjectCode) -> LinkInput:
    kind = next((kind for kind in KINDS if kind.object_code == str(item.code_type)), None)
    if kind is None:
        raise LinkInputError(f"an ObjectCode of type {item.code_type!r} cannot be linked")
    if isinstance(item.code, str):
        return LinkInput(kind, _read(item.code), name=item.name or item.code)
    return LinkInput(kind, _bytes(item.code, item.name), name=item.name or f"<unnamed {kind}>")


def _from_path(path: str) -> LinkInput:
    suffix = pathlib.PurePath(path).suffix.lower()
    kind = next((kind for kind in KINDS if suffix in kind.suffixes), None)
    if kind is None:
        if re.search(r"[\n;{]", path):
            raise LinkInputError(
                f"a str is the path of a file, got text\n  got: {safe_repr(path)}\n"
                "  what to do: for source, return autolink.CUDASource(text); for PTX, cuda.PTXSource(text.encode())"
            )
        raise LinkInputError.unknown_file(path, suffix)
    # A source file finds headers in its own folder, as it would with a compiler on the command line.
    include_paths = (os.path.dirname(os.path.abspath(path)),) if kind is CUDA else ()
    return LinkInput(kind, _read(path), CompileOptions(include_paths), name=path)


def _read(path: str, given: str | None = None) -> bytes:
    try:
        return read_regular_file(path)
    except FileNotFoundError:
        raise LinkInputError.missing_file(path, given or path) from None
    except OSError as error:
        raise LinkInputError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise LinkInputError(f"{path!r} is not a path: {error}") from None


def text_fault(text: str) -> str:
    """Return what *text* has that no compiler takes, else an empty text: a lone surrogate, or a NUL before its end."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"the lone surrogate {text[error.start]!r} at character {error.start}"
    end = text.find("\0")
    if end < 0 or not text[end:].strip("\0"):
        return ""
    remedy = 'write r"""...""" for the text: Python has replaced \\0'
    return f"a NUL at character {end}, which would end it\n  what to do: {remedy}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each)


def _bytes(data: Any, name: str) -> bytes:
    if isinstance(data, (io.StringIO, io.BytesIO)):
        data = data.getvalue()
    if isinstance(data, str):
        if fault := text_fault(data):
            raise LinkInputError(f"{safe_repr(name)} is not text that can be compiled: it has {fault}")
        return data.encode()
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise LinkInputError(f"{name!r} holds {shown(data)}, expected bytes or str") from None


_ALIGNMENT = 16  # bytes: the most that a load of C++ needs


class VariableSource(CUDASource):
    """The definition of a variable of device code, which ``memory`` sets in each module that is loaded with it.

    Its size alone is defined: C++ declares its type.
    """

    def __init__(self, memory: Variable):
        self.memory = memory
        described = memory.type
        super().__init__(
            f"// {described}\n"
            f'extern "C" {{ __{described.space}__ __align__({_ALIGNMENT}) unsigned char'
            f" {described.name}[{described.nbytes}]; }}\n",
            name=f"variable {described.name}",
        )
        # The simulator's base class takes no arguments for them.
        self.setup_callback, self.teardown_callback = self._set_up, self._tear_down

    def _set_up(self, module: Any) -> None:
        self.memory._load(module)

    def _tear_down(self, module: Any) -> None:
        self.memory._unload(module)  # numba-cuda unloads it, although others may keep its code

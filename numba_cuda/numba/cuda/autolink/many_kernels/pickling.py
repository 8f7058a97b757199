# SPDX-License-Identifier: BSD-2-Clause
"""Pickles that travel between the parent and its workers."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pickle
import sys
import threading
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar

import cloudpickle

from numba_cuda_autolink.given_sources import find_given, noting_sources
from numba_cuda_autolink.source_locations import find_cells, note_cells

from ..compilation.context import compute_capability
from .jobs import Job

_NO_FILE = "<dynamic-code>"  # in place of the name

# cloudpickle has one table of such modules for all threads. What is pickled may begin to pickle jobs of its own.
_registering = threading.RLock()


def pickle_jobs(jobs: Iterable[Job]) -> list[bytes]:
    """Return *jobs* for `run_all`, with the compute capabilities that they are for. Raises as `build_many` does."""
    with run_time_modules_by_value():
        return [_pickle_job(number, job) for number, job in enumerate(jobs)]


def _pickle_job(number: int, job: Job) -> bytes:
    try:
        capability = compute_capability(job.cc)
    except ValueError as error:
        raise ValueError(f"job {number}, {job}: {error}") from error
    try:
        return pickle_with_places(dataclasses.replace(job, cc=capability))
    except Exception as error:
        raise TypeError(
            f"job {number} cannot be pickled: {type(error).__name__}: {error}\n  job: {job}\n"
            "  what to do: give the kernel's objects a __reduce__, or make them of what can be pickled"
        ) from error


@contextlib.contextmanager
def run_time_modules_by_value() -> Iterator[None]:
    """Pickle the content of modules made at run time, as that of ``__main__``: no worker could import them."""
    with _registering, contextlib.ExitStack() as registered:
        already = cloudpickle.list_registry_pickle_by_value()
        for module in _run_time_modules():
            if module.__name__ not in already:
                cloudpickle.register_pickle_by_value(module)
                registered.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


def _run_time_modules() -> list[ModuleType]:
    """Return the modules that were made at run time and stand in ``sys.modules`` under their own names. cloudpickle
    knows modules by their names; those that stand there under another name only, it pickles by value anyway."""
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and getattr(module, "__name__", None) == name != "__main__"
        and getattr(module, "__spec__", None) is None
    ]


def _reduce_code(code: CodeType) -> tuple[Any, ...]:
    function, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return function, tuple(code.co_filename if each == _NO_FILE else each for each in arguments)


class _Pickler(cloudpickle.Pickler):
    """Keeps the names of source files, which errors and line information show: cloudpickle 3.1.3 drops them. Pickles
    errors that are not made of their text alone."""

    dispatch_table: ClassVar[Any] = ChainMap({CodeType: _reduce_code}, cloudpickle.Pickler.dispatch_table)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        is_error = isinstance(obj, BaseException) and kind.__reduce__ is BaseException.__reduce__
        if is_error and isinstance(kind.__init__, FunctionType):
            return _make_error, (kind, obj.args, vars(obj))
        return super().reducer_override(obj)


def _make_error(kind: type[BaseException], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


def pickle_value(given: object) -> bytes:
    """Return *given* pickled, functions and classes of scripts too. Raises pickle's errors."""
    file = io.BytesIO()
    _Pickler(file).dump(given)
    return file.getvalue()


def pickle_with_places(given: object) -> bytes:
    """Return *given* pickled, with the places of its sources, and with its notebook cells, which errors show."""
    data = pickle_value(given)
    sources = find_given(data)
    cells = find_cells(b"\n".join([data, *(place[0].encode() for _, place in sources)]))
    return pickle_value(_Placed(data, sources, cells)) if sources or cells else data


@dataclasses.dataclass(frozen=True)
class _Placed:
    """Pickled *data* with sources and cells that are known where that is unpickled."""

    data: bytes
    sources: Sequence[Any]
    cells: Sequence[Any]

    def __reduce__(self) -> Any:
        return _unpickle_placed, (self.data, self.sources, self.cells)


def _unpickle_placed(data: bytes, sources: Sequence[Any], cells: Sequence[Any]) -> Any:
    note_cells(cells)
    with noting_sources(sources):
        return pickle.loads(data)


def pickle_error(error: BaseException) -> bytes:
    """Return *error* pickled; one that cannot be, as a `RuntimeError` with its text."""
    try:
        data = pickle_value(error)
        pickle.loads(data)
        return data
    except Exception:
        return pickle_value(RuntimeError(f"{type(error).__name__}: {error}"))

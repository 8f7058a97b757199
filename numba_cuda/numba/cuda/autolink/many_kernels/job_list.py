# SPDX-License-Identifier: BSD-2-Clause
"""Lists of jobs in JSON files, and capturing them: processes note the kernels that they compile.

A kernel is named by its module, ``"module:function"``, and its signature is text, so that people can read and write
them. What has no such name (closures, functions of a script, types without a text) is there as a pickle too, which
counts, except over a signature whose text was edited. So reading a list can run code, as importing the
modules that it names does.

A process captures if ``NUMBA_CUDA_AUTOLINK_CAPTURE`` names a folder, as the command ``capture`` sets it.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
import operator
import os
import pickle
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numba.cuda.cudadrv.external_code.platform.child_process import fork_lock
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.files import replace_whole
from numba_cuda_autolink.source_syntax import describe_syntax_error

from ..compilation.context import KernelEvent, compute_capability, listeners
from ..frontend_api.front_end import Vocabulary, vocabulary_of_kernel
from ..protocol.kernel_signatures import arguments_text, normalize
from .jobs import Job, kernel_name
from .pickling import pickle_value

FORMAT = 1
_OTHERS = ("output", "entry_name", "options", "for_launch")
_DEFAULTS = Job(None, None)


class JobListError(PrintableError, ValueError):
    """A file is not a list of jobs, or names a kernel that cannot be imported."""


@dataclass(frozen=True)
class JobList:
    """The jobs of an application as plain data, each once, and the folders from which it imported modules."""

    jobs: tuple[dict[str, Any], ...]
    path: tuple[str, ...] = ()

    @classmethod
    def of(cls, jobs: Iterable[dict[str, Any]], path: Iterable[str]) -> JobList:
        """Return the list of *jobs*, as `describe_job` gives them, without repetitions."""
        distinct = {json.dumps(job, sort_keys=True): job for job in jobs}
        return cls(tuple(distinct.values()), tuple(dict.fromkeys(path)))

    def for_any_architecture(self) -> JobList:
        """Return the list without compute capabilities: kernels that differ only in these are one."""
        return self.of(({**job, "cc": None} for job in self.jobs), self.path)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the list to a file. Raises `OSError` if it cannot be written."""
        content = {"format": FORMAT, "path": self.path, "jobs": self.jobs}
        with replace_whole(path) as file:
            file.write((json.dumps(content, indent=1) + "\n").encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> JobList:
        """Return the list in a file. Raises `OSError` or `JobListError`."""
        remedy = "what to do: numba-cuda-autolink capture -o JOBS.json python app.py writes one"
        with open(path, encoding="utf-8") as file:
            try:
                content = json.load(file)
            except (ValueError, RecursionError) as error:
                raise JobListError(f"{os.fspath(path)} is not JSON: {error}\n  {remedy}") from error
        try:
            known = content["format"] == FORMAT
            jobs, folders = [dict(job) for job in content["jobs"]], list(map(str, content.get("path", ())))
        except (ValueError, TypeError, KeyError) as error:
            raise JobListError(f"{os.fspath(path)} is JSON, but not a list of jobs\n  {remedy}") from error
        if not known:
            raise JobListError(f"{os.fspath(path)} has format {content['format']!r}, and this version reads {FORMAT}")
        return cls(tuple(jobs), tuple(folders))

    def loaded(self) -> list[Job | JobListError]:
        """Return the jobs, whose modules are imported; in place of one whose module cannot be, the error."""
        for folder in reversed(self.path):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        loaded: list[Job | JobListError] = []
        for job in self.jobs:
            try:
                loaded.append(_load(job))
            except JobListError as error:
                loaded.append(error)
        return loaded


def describe_job(job: Job) -> dict[str, Any]:
    """Return *job* as data for JSON. Raises pickle's errors, if it has no name and cannot be pickled."""
    kernel = _importable_name(job.kernel)
    signature = _signature_text(job.signature, vocabulary_of_kernel(job.kernel))
    data: dict[str, Any] = {
        "kernel": kernel or kernel_name(job.kernel),
        "signature": signature or str(job.signature),
        "cc": None if job.cc is None else str(ComputeCapability.parse(job.cc)),
    }
    changed = {each: getattr(job, each) for each in _OTHERS if getattr(job, each) != getattr(_DEFAULTS, each)}
    if kernel is None or signature is None or not _is_plain(changed):
        return {**data, "pickle": base64.b64encode(pickle_value(dataclasses.replace(job, cc=None))).decode()}
    return {**data, **changed}


def _load(data: dict[str, Any]) -> Job:
    try:
        if "pickle" in data:
            job = pickle.loads(base64.b64decode(data["pickle"]))
            text = _signature_text(job.signature, vocabulary_of_kernel(job.kernel))
            if text is not None and data["signature"] != text:  # it was edited
                job = dataclasses.replace(job, signature=data["signature"])
            return dataclasses.replace(job, cc=data["cc"])
        module, _, name = data["kernel"].partition(":")
        kernel = operator.attrgetter(name)(importlib.import_module(module))
        return Job(**{**data, "kernel": kernel})
    except Exception as error:
        named = data.get("kernel", data) if isinstance(data, dict) else data
        why = describe_syntax_error(error) if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
        message = f"kernel {named} cannot be loaded: {why}"
        if isinstance(error, ModuleNotFoundError):
            message += "\n  what to do: install the module, or add its folder to PYTHONPATH or to path in the list"
        raise JobListError(message) from error


def _importable_name(kernel: Any) -> str | None:
    """Return ``"module:function"`` if another process finds the same kernel there, else ``None``."""
    function = getattr(kernel, "py_func", kernel)
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, "__main__") or "<" in name:
        return None
    try:
        found = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None
    return f"{module}:{name}" if found is kernel else None


def _signature_text(signature: Any, vocabulary: Vocabulary) -> str | None:
    """Return a text that means *signature* in the *vocabulary* of a front end, or ``None`` if there is none."""
    try:
        argtypes, _ = normalize(signature, vocabulary)
        text = f"void{arguments_text(argtypes)}"
        return text if normalize(text, vocabulary)[0] == argtypes else None
    except Exception:  # of the text, which is evaluated
        return None


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


VARIABLE = "NUMBA_CUDA_AUTOLINK_CAPTURE"

_lock = fork_lock()


def start_capture() -> None:
    """Capture from now on, while the variable is set."""
    if _note not in listeners:
        listeners.append(_note)


def _note(event: KernelEvent) -> None:
    if not (folder := os.environ.get(VARIABLE)):
        return
    try:
        job = Job(**{**vars(event), "cc": compute_capability(event.cc)})
        line = json.dumps([sys.path[0], describe_job(job)])
        with _lock, open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
            file.write(line + "\n")
    except Exception as error:  # the application runs on
        warnings.warn(
            f"kernel {kernel_name(event.kernel)} is not captured: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def read_captured(folder: str | os.PathLike[str]) -> JobList:
    """Return the list of what processes noted in *folder*."""
    lines = [line for file in sorted(Path(folder).glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    noted = list(map(json.loads, lines))
    return JobList.of((job for _, job in noted), (path for path, _ in noted if path))

# SPDX-License-Identifier: BSD-2-Clause
"""``capture`` runs an application and writes a list of the kernels that it compiles; ``prebuild`` builds the kernels of
such a list, on one machine or many."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

from ..printable_texts import number_of
from .argument_parsing import (
    CommandError,
    Program,
    add_capabilities,
    check_folder,
    check_known,
    explained_errors,
)


def add_to(commands: Any) -> None:
    _add_capture(commands)
    _add_prebuild(commands)


_CAPTURE_EXAMPLES = """examples:
  numba-cuda-autolink capture -o jobs.json -- python app.py
  numba-cuda-autolink capture -o jobs.json -- pytest tests
"""


def _add_capture(commands: Any) -> None:
    parser = commands.add_parser(
        "capture",
        help="run an application, and list the kernels that it compiles",
        description="Run a command, and write a list of all kernels, signatures and compute capabilities that it and"
        " its child processes compile. The command prebuild builds them. The exit code is the command's own, or 1"
        " if the command succeeds and compiles no kernels.",
        epilog=_CAPTURE_EXAMPLES,
    )
    parser.add_argument(
        "-o", dest="out", metavar="JOBS.json", type=pathlib.Path, required=True, help="the list to write"
    )
    parser.add_argument(
        "command", type=Program, nargs=argparse.PARSER, metavar="COMMAND", help="what to run, with its arguments"
    )
    parser.set_defaults(run=capture)


def capture(options: argparse.Namespace) -> int:
    from numba.cuda.autolink.many_kernels.job_list import VARIABLE, read_captured

    name, *arguments = options.command[options.command[0] == "--" :]
    if (program := shutil.which(name)) is None:
        hint = f"\n  what to do: run it as python {name}" if name.endswith(".py") else ""
        raise CommandError(f"{name}: there is no such program{hint}")
    check_folder(options.out)
    with tempfile.TemporaryDirectory(prefix="numba-cuda-autolink-capture-") as folder:
        code = subprocess.run([program, *arguments], env={**os.environ, VARIABLE: folder}).returncode
        jobs = read_captured(folder)
    code = code if code >= 0 else 128 - code
    if not jobs.jobs:
        raise CommandError(
            f"{name} compiled no kernels: {options.out} is not written\n"
            "  what to do: run what launches or builds kernels",
            code or 1,
        )
    jobs.write(options.out)
    print(f"{options.out}: {number_of(len(jobs.jobs), 'job')}")
    return code


_PREBUILD_EXAMPLES = """examples:
  numba-cuda-autolink prebuild jobs.json
  numba-cuda-autolink prebuild jobs.json --cc 8.0,9.0 --save app.kernels
  numba-cuda-autolink prebuild jobs.json --executor processes:8
  numba-cuda-autolink prebuild jobs.json --executor dask://scheduler:8786
  numba-cuda-autolink prebuild jobs.json --executor ray://head:10001
  mpiexec -n 64 python -m mpi4py.futures $(command -v numba-cuda-autolink) prebuild jobs.json --executor mpi

All that is built is in the cache afterwards. No GPU is needed. A job list can contain pickles: build
only lists that you made.
"""
_NOT_STORED = 4  # the exit code
_MOST_LISTED = 20  # kernels of one fault
_EXECUTORS = "processes[:N], dask://HOST:PORT, ray[://HOST:PORT] or mpi"


def _add_prebuild(commands: Any) -> None:
    parser = commands.add_parser(
        "prebuild",
        help="build the kernels of a job list into the cache; no GPU needed",
        description="Build all kernels of a list that the command capture wrote. What kernels have in common is built"
        " once. The exit code is 1 if a kernel could not be built; all others are built nevertheless. It is 4 if all"
        " are built, and not all of it could be written to the shared cache.",
        epilog=_PREBUILD_EXAMPLES,
    )
    parser.add_argument("jobs", metavar="JOBS.json", type=pathlib.Path, help="a list that the command capture wrote")
    add_capabilities(
        parser,
        " to build each kernel for; as launches on a GPU do, 9.0 and later build for 9.0a (default: those in the list)",
    )
    parser.add_argument("--executor", default="processes", help=f"where to build: {_EXECUTORS} (default: processes)")
    parser.add_argument("--save", metavar="OUT.kernels", type=pathlib.Path, help="also write the kernels to a file")
    parser.set_defaults(run=prebuild)


def prebuild(options: argparse.Namespace) -> int:
    from numba.cuda import autolink
    from numba.cuda.autolink.many_kernels.job_list import JobList, JobListError
    from numba.cuda.autolink.many_kernels.jobs import error_text
    from numba.cuda.autolink.many_kernels.pickling import pickle_jobs
    from numba.cuda.autolink.many_kernels.stages import run_all
    from numba.cuda.cudadrv.external_code.cache.settings import lacks_writable_store

    from .kernel_loading import device_or_stand_in

    start = time.monotonic()
    if not re.fullmatch(r"processes(:0*[1-9][0-9]*)?|dask://.+|ray(://.+)?|mpi", options.executor):
        raise CommandError(f"--executor {options.executor}: expected {_EXECUTORS}", 2)
    check_known(options.cc or [])
    if options.save is not None:
        if options.save.suffix != ".kernels":
            raise CommandError(f"--save {options.save}: it takes kernels\n  what to do: use the suffix .kernels", 2)
        check_folder(options.save)
    try:
        listed = JobList.read(options.jobs)
        with device_or_stand_in(options.cc):
            loaded = (listed.for_any_architecture() if options.cc else listed).loaded()
    except JobListError as error:
        raise CommandError(str(error)) from error
    except (FileNotFoundError, IsADirectoryError) as error:
        raise CommandError(
            f"{options.jobs} {'is a folder' if options.jobs.is_dir() else 'does not exist'}"
            "\n  what to do: numba-cuda-autolink capture -o JOBS.json python app.py writes a list of jobs"
        ) from error
    if not loaded:
        raise CommandError(f"{options.jobs} lists no kernels")
    unloadable = [each for each in loaded if isinstance(each, JobListError)]
    _print_failures("cannot be loaded: ", [str(each).split(" cannot be loaded: ", 1) for each in unloadable])
    jobs = [each for each in loaded if not isinstance(each, JobListError)]
    if options.cc:
        jobs = [dataclasses.replace(job, cc=cc) for job in jobs for cc in options.cc]
    with explained_errors(), _executor(options.executor) as executor:
        results, built, unstored = run_all(pickle_jobs(jobs), executor)
    is_stored = not unstored and not lacks_writable_store()
    if not is_stored:
        what = number_of(unstored, "entry") if unstored else "what was built"
        print(
            f"numba-cuda-autolink: {what} could not be written to the shared cache\n"
            "  what to do: see the warnings, and repeat the command: what is in this machine's cache is sent again",
            file=sys.stderr,
        )
    failed = [(job, each) for job, each in zip(jobs, results, strict=True) if isinstance(each, BaseException)]
    _print_failures("could not be built:\n  ", [(str(job), error_text(raised)) for job, raised in failed])
    if os.environ.get("NUMBA_CUDA_AUTOLINK_EMULATE", "0").strip() != "0" and any(job.for_launch for job in jobs):
        print(
            "numba-cuda-autolink: NUMBA_CUDA_AUTOLINK_EMULATE is set: the emulator launches other builds than these\n"
            "  what to do: nothing, if the kernels are for GPUs; the emulator's are cached by the first run",
            file=sys.stderr,
        )
    finished = [each for each in results if not isinstance(each, BaseException)]
    counts = " and ".join(number_of(built.get(kind, 0), kind) for kind in ("program", "link"))
    total = len(jobs) + len(unloadable)
    is_built = any(built.get(kind) for kind in ("program", "link"))
    what = f", {counts} built in" if is_built or failed or unloadable else " were in the cache, looked up in"
    print(f"{len(finished)} of {total} kernels{what} {time.monotonic() - start:.1f} s")
    if options.save is not None and finished:
        with explained_errors():
            autolink.save(options.save, finished)
        print(f"{options.save}: {options.save.stat().st_size} bytes")
    return 1 if failed or unloadable else 0 if is_stored else _NOT_STORED


def _print_failures(what: str, failures: Sequence[Sequence[str]]) -> None:
    """Print each fault of *failures*, of kernels and texts, once, with the kernels that it stops."""
    by_fault: dict[tuple[str, ...], list[Sequence[str]]] = {}
    for failure in failures:
        by_fault.setdefault(_fault_in(failure[-1]), []).append(failure)
    for first, *others in by_fault.values():
        *name, text = first
        lines = text.splitlines()
        if others:
            names = [kernel for kernel, *_ in others[:_MOST_LISTED]]
            names += [f"and {len(others) - _MOST_LISTED} more"] * (len(others) > _MOST_LISTED)
            lines += [f"  it also stops {number_of(len(others), 'kernel')}:", *(f"    {each}" for each in names)]
        text = "\n  ".join(lines)
        print(f"numba-cuda-autolink: {f'{name[0]} {what}' if name else ''}{text}", file=sys.stderr)


def _fault_in(text: str) -> tuple[str, ...]:
    """Return what is the same of errors of one fault: the diagnosis and the place, of one in C++ the place there; the
    whole of an error without a place."""
    lines = text.splitlines()
    for mark in ("  in C++: ", "  log: "):
        if (found := next((number for number, line in enumerate(lines) if line.startswith(mark)), None)) is not None:
            return (lines[0], *lines[found:])
    return tuple(lines[:2] if lines[1:2] and lines[1].startswith("  at: ") else lines)


@contextlib.contextmanager
def _executor(text: str) -> Iterator[Executor | Callable[[], Executor] | None]:
    """Give the executor that *text* names; ``None`` is the default one. Raise `CommandError` if it is not installed."""
    from numba.cuda.autolink.many_kernels.executors import RayExecutor, WorkerProcesses

    kind, _, where = text.partition("://" if "://" in text else ":")
    try:
        if kind == "processes":
            yield (lambda: WorkerProcesses(int(where))) if where else None
        elif kind == "dask":
            from distributed import Client

            with Client(f"tcp://{where}") as client:
                yield client.get_executor()
        elif kind == "ray":
            import ray

            ray.init(address=text if where else None, include_dashboard=None if where else False)
            try:
                yield RayExecutor()
            finally:
                ray.shutdown()
        else:
            from mpi4py.futures import MPIPoolExecutor

            with MPIPoolExecutor() as executor:
                yield executor
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        raise CommandError(f"--executor {text}: {error}\n  what to do: pip install {module}") from error

# SPDX-License-Identifier: BSD-2-Clause
"""What workers do: compile a kernel by its front end, compile a program, link a kernel. No task waits for another."""

from __future__ import annotations

import collections
import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.cache.entry import pack
from numba.cuda.cudadrv.external_code.cache.last_runs import join_run
from numba.cuda.cudadrv.external_code.cache.store import current_store, noting_kept
from numba.cuda.cudadrv.external_code.compile import programs
from numba.cuda.cudadrv.external_code.compile.plan_programs import sources_of
from numba.cuda.cudadrv.external_code.diagnostics import progress
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, Target

from numba_cuda_autolink.short_tracebacks import short_traceback

from ..builds.ahead_of_time import PreparedBuild, prepare, prepare_for_launch
from ..builds.result import RanLink
from ..compilation.context import compute_capability
from ..frontend_api.placed_messages import placed_error
from .executors import end_now
from .jobs import Job
from .pickling import pickle_error, pickle_value, pickle_with_places

_LONGEST_FLUSH = 60.0  # seconds to wait for what is written to a shared cache

# Cache entries as they are stored, by the digests of their keys.
Entries = dict[bytes, bytes]


@dataclass(frozen=True)
class Surroundings:
    """What a worker must know of its parent: the digest of an entry that only processes find which share the parent's
    cache directory; the folders from which it imports; after how many seconds a task ends its process; and whether it
    wants finished links for its cache. *run* is that of the parent."""

    mark: bytes
    run: str
    path: tuple[str, ...]
    time_limit: float | None = None
    wants_links: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a task."""

    result: Any  # what it returned
    error: bytes | None  # the pickled exception that it raised
    built: Mapping[str, int]  # how many cache entries of each kind it built
    # These entries, where the parent does not share the cache directory, as far as another machine can use them.
    entries: Entries
    # The process, and how many entries of all that it built could not be written to the shared cache.
    unstored: tuple[str, int]


@dataclass(frozen=True)
class PreparedJob:
    """A kernel that its front end has compiled: the pickled `LinkedKernel`, without its code if there is a pickled
    *request* of a link; and the programs that this link needs, each with the functions whose types it checks."""

    kernel: bytes
    request: bytes | None
    programs: tuple[tuple[LinkInput, Target, tuple[CalledFunction, ...]], ...]
    for_launch: bool


def run(function: Callable[..., Any], around: Surroundings, *arguments: Any) -> Outcome:
    """Call one of the functions below."""
    join_run(around.run)
    sys.path += [folder for folder in around.path if folder not in sys.path and os.path.isdir(folder)]
    store = current_store()
    shares_cache = store.disk.read(around.mark) is not None
    result, failed = None, None
    timer = threading.Timer(around.time_limit or threading.TIMEOUT_MAX, end_now)
    timer.daemon = True
    with progress.silence(), noting_kept() as kept:
        if around.time_limit is not None:
            timer.start()
        try:
            with short_traceback(placed_error):  # as `build` does
                result = function(*arguments)
        except (Exception, SystemExit) as error:  # a hook may call sys.exit()
            failed = pickle_error(error)
        finally:
            timer.cancel()
    entries = {
        each.key.digest: pack(each.key, each.data)
        for each in kept
        if not shares_cache and each.is_portable and (around.wants_links or each.key.kind != "link")
    }
    unstored = 0 if store.remote is None else store.remote.flush(_LONGEST_FLUSH)
    counts = collections.Counter(each.key.kind for each in kept)
    return Outcome(result, failed, dict(counts), entries, (process_name(), unstored))


def process_name() -> str:
    """Return what tells this process from all others of a cluster."""
    return f"{socket.gethostname()} {os.getpid()}"


def prepare_job(data: bytes) -> PreparedJob:
    """Compile the kernel of a pickled `Job` by its front end."""
    job: Job = pickle.loads(data)
    prepared = _prepare(job)
    request = prepared.request
    if request is None:
        return PreparedJob(pickle_value(prepared.kernel), None, (), job.for_launch)
    needed = tuple(  # without callbacks, which are not compiled
        (LinkInput(source.kind, source.code, source.options, source.name), request.plan.target, called)
        for source, called in sources_of(request.plan, request.kernel_code)
    )
    return PreparedJob(pickle_value(prepared.kernel), pickle_with_places(request), needed, job.for_launch)


def _prepare(job: Job) -> PreparedBuild:
    options = dict(job.options)
    if job.for_launch:
        capability = ComputeCapability(*compute_capability(job.cc))
        return prepare_for_launch(job.kernel, job.signature, capability, options)
    return prepare(job.kernel, job.signature, job.cc, job.output, job.entry_name, options)


def compile_program(source: LinkInput, target: Target, called: tuple[CalledFunction, ...]) -> None:
    programs.compiled(source, target, called=called)


def link_kernel(request: bytes, entries: Entries) -> RanLink:
    """Run a pickled `LinkRequest`, with cache *entries* that another machine built for it."""
    for digest, entry in entries.items():
        current_store().adopt(digest, entry)
    return RanLink.of(pickle.loads(request))

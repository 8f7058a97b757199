# SPDX-License-Identifier: BSD-2-Clause
"""Attempts at jobs, in a worker. None of them waits for another worker."""

from __future__ import annotations

import collections
import functools
import os
import pickle
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.cache.key import CacheKey
from numba.cuda.cudadrv.external_code.cache.shared_work import LeftToAnotherError, building_only
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

from ..builds.ahead_of_time import build, build_for_launch, compute_capability
from .entries import PackedEntry, keep, packed, shares_cache
from .jobs import Job
from .pickling import pickled, pickled_error

# Jobs that are kept as objects, which remember what they answered. An attempt is often repeated by the same worker.
_MOST_KEPT = 64


@dataclass(frozen=True)
class AssignedJob:
    """A pickled `Job`, and the digests of what its attempt builds if that is in no cache."""

    job: bytes
    assigned: frozenset[bytes]


@dataclass(frozen=True)
class Task:
    """What a worker gets: jobs, entries for its cache, the mark in the parent's cache directory, and the folders from
    which the parent imports. The *number* is the task's own: a scheduler may take equal tasks for one."""

    number: int
    jobs: tuple[AssignedJob, ...]
    entries: tuple[PackedEntry, ...]
    mark: CacheKey
    path: tuple[str, ...]


@dataclass(frozen=True)
class Attempt:
    """What came of an attempt.

    Attributes
    ----------
    result:
        The pickled `LinkedKernel` or exception; ``None`` if the attempt stopped at something that was not assigned.
    left:
        The digests of what it stopped at.
    built:
        How many entries of each kind it built.
    entries:
        These entries, unless the parent has them in its cache directory.
    shares_cache:
        Whether the parent has them there.
    seconds:
        How long it took.
    """

    result: bytes | None
    left: tuple[bytes, ...]
    built: Mapping[str, int]
    entries: tuple[PackedEntry, ...]
    shares_cache: bool
    seconds: float


def attempt_all(task: Task) -> list[Attempt]:
    """Attempt the jobs of *task*, one after the other."""
    sys.path += [folder for folder in task.path if folder not in sys.path and os.path.isdir(folder)]
    shares = shares_cache(task.mark)
    keep(task.entries)
    return [_attempt(job, shares) for job in task.jobs]


def _attempt(job: AssignedJob, shares: bool) -> Attempt:
    """Build *job*, unless something that it needs is left to another worker."""
    start = time.perf_counter()
    result: bytes | None = None
    left: tuple[bytes, ...] = ()
    with building_only(job.assigned) as built:
        try:
            result = pickled(_built(_unpickled(job.job)))
        except LeftToAnotherError as stopped:
            left = tuple(key.digest for key in stopped.keys)
        except (Exception, SystemExit) as error:  # a hook may call sys.exit()
            result = pickled_error(error)
    counts = collections.Counter(each.key.kind for each in built)
    # A launch looks for its link in the cache, and not for a kernel that was built for other programs.
    entries = packed(built, links=_unpickled(job.job).for_launch) if built and not shares else ()
    return Attempt(result, left, dict(counts), entries, shares, time.perf_counter() - start)


def _built(job: Job) -> Any:
    if job.for_launch:
        cc = ComputeCapability(*compute_capability(job.cc))
        return build_for_launch(job.kernel, job.signature, cc, dict(job.options))
    how = {"output": job.output, "entry_name": job.entry_name, **job.options}
    return build(job.kernel, job.signature, cc=job.cc, **how)


@functools.lru_cache(_MOST_KEPT)
def _unpickled(data: bytes) -> Job:
    job = pickle.loads(data)
    assert isinstance(job, Job)
    return job

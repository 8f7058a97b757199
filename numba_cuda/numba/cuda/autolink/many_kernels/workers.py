# SPDX-License-Identifier: BSD-2-Clause
"""The workers of `build_many`: an executor of its user, or one of its own, which is replaced when it breaks."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from types import TracebackType

from numba.cuda.cudadrv.external_code.compile.jobs import most_jobs

from .worker_processes import worker_processes


class Workers:
    """The executor *given*, or one of our own for so many *jobs*, which a ``with`` block shuts down.

    Attributes
    ----------
    count:
        How many workers there are; ``None`` if that is not known.
    """

    def __init__(self, given: Executor | None, jobs: int):
        self.is_own = given is None
        self.count: int | None = min(jobs, most_jobs()) if given is None else getattr(given, "num_workers", None)
        self.executor = given or self._started()

    def _started(self) -> Executor:
        count = self.count or 1
        return worker_processes(count) if count > 1 else ThreadPoolExecutor(1, "build")

    def replace(self) -> None:
        """Replace an executor of our own, which is broken."""
        self._end()
        self.executor = self._started()

    def _end(self) -> None:
        """End our own workers, after what they do now."""
        if self.is_own:
            self.executor.shutdown(cancel_futures=True)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

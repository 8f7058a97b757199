# SPDX-License-Identifier: BSD-2-Clause
"""An executor for Ray, which has none of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class RayExecutor(Executor):
    """A `concurrent.futures.Executor` whose calls are Ray tasks, with the keyword arguments of ``ray.remote``.

    Ray is connected to or started (``ray.init()``) by its user, or by the first call, and shut down by its user.
    """

    def __init__(self, **options: Any):
        import ray

        self._cpus = options.get("num_cpus", 1)
        self._remote = ray.remote(**options) if options else ray.remote

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start ``fn(*args, **kwargs)`` as a task."""
        future: Future[Any] = self._remote(fn).remote(*args, **kwargs).future()
        return future

    @property
    def num_workers(self) -> int | None:
        """How many calls the CPUs of the cluster run at once; ``None`` if that is not known."""
        import ray

        if not ray.is_initialized() or not self._cpus:
            return None
        return int(ray.cluster_resources().get("CPU", 0) / self._cpus) or None

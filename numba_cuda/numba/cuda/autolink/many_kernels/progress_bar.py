# SPDX-License-Identifier: BSD-2-Clause
"""The progress of `build_many`, in a terminal, on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from numba.cuda.cudadrv.external_code.diagnostics import progress


@contextlib.contextmanager
def progress_bar(total: int, shown: bool | None) -> Iterator[Callable[[int, int], None]]:
    """Show how many of *total* jobs are done while the block runs; by default only where `progress.enabled`.

    The context's value is called after each job, with how many are done and how many of them failed.
    """
    if not (progress.enabled() if shown is None else shown):
        yield lambda done, failed: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        *(TextColumn("building kernels"), BarColumn(), MofNCompleteColumn()),
        *(TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn()),
        TextColumn("{task.fields[failed]}", style="red"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("", total=total, rate="", failed="")

        def show(done: int, failed: int) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{done / elapsed:.1f}/s" if elapsed else ""
            bar.update(task, completed=done, rate=rate, failed=f"{failed} failed" if failed else "")

        yield show

# SPDX-License-Identifier: BSD-2-Clause
"""The cache's log: hits and misses at the level ``DEBUG``, kernels that cannot be cached at ``INFO``."""

from __future__ import annotations

import logging
import sys

logger = logging.getLogger("numba_cuda_autolink.cache")


class _StderrHandler(logging.Handler):
    """Prints to what ``sys.stderr`` is at that moment."""

    replaced_level = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is not None:
            print(f"numba-cuda-autolink cache: {self.format(record)}", file=sys.stderr)


_handler = _StderrHandler()


def print_log(on: bool) -> None:
    """Print the whole log to stderr, or stop printing it. The user's own handlers stay as they are."""
    if on == (_handler in logger.handlers):
        return
    if on:
        _handler.replaced_level = logger.level
        logger.addHandler(_handler)
        logger.setLevel(logging.DEBUG)
    else:
        logger.removeHandler(_handler)
        logger.setLevel(_handler.replaced_level)

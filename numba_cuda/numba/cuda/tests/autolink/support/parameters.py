# SPDX-License-Identifier: BSD-2-Clause
"""Parameters of tests that are too many for the short form."""

from __future__ import annotations

import pytest


def in_turn(rows, columns):
    """Return parameters for all of *rows* with each of *columns*: the short form takes each row with one of them."""
    return [
        pytest.param(*row, *column, marks=() if i % len(columns) == j else pytest.mark.thorough)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]

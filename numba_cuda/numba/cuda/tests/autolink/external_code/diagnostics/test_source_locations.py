# SPDX-License-Identifier: BSD-2-Clause
"""The line of an error is shown with carets under the call, however long it is."""

from __future__ import annotations

import pytest

from numba_cuda_autolink.source_locations import with_place


@pytest.mark.parametrize("before", [0, 10, 80, 99, 100, 101, 300])
@pytest.mark.parametrize("after", [0, 1, 50, 300])
@pytest.mark.parametrize("length", [0, 40, 150])
def test_of_a_long_line_what_is_around_the_underlined_call_is_shown(tmp_path, before, after, length):
    call = f"wrong({'a' * length})"
    line = f"{'x + ' * (before // 4)}{call}{' + y' * (after // 4)}"
    file = tmp_path / "long.py"
    file.write_text(f"if x:\n    {line}\n")
    first, place, shown, caret, last = with_place("wrong: it fails\n  last", "at: here", str(file), 2).split("\n")
    assert (first, place, last) == ("wrong: it fails", "  at: here", "  last")
    underlined = shown[caret.index("^") : caret.rindex("^") + 1]
    assert underlined == call[: len(underlined)] and len(underlined) == min(len(call), 100)
    assert len(shown) <= 6 + 102 and shown.startswith(" " * 6)
    whole = shown.strip()
    assert whole == line if len(line) <= 100 else whole.strip("…") in line
    assert whole.startswith("…") == (not line.startswith(whole.strip("…")))
    assert whole.endswith("…") == (not line.endswith(whole.strip("…")))

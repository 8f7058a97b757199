# SPDX-License-Identifier: BSD-2-Clause
"""What ``cache why`` says of kernels of ``cache=True``."""

from __future__ import annotations

import pytest
from kernel_cache_support import KERNEL, Program, fresh
from numba.cuda.autolink.reports import cache_history


@pytest.fixture
def program(tmp_path, servers):
    return Program(tmp_path, servers).write("add = Add(3)\ngain = 2", f"{KERNEL}    x[1] = gain\n# the end\n")


def told(program):
    """Return the lines of the kernels' history, latest first, without times and architectures."""
    entries = [each for each in fresh(program.folder / "cache").disk.entries() if each.kind in ("kernel", "not cached")]
    return [line[29:] for line in cache_history.builds(entries, entries, every_kind=False)]


def test_lines_of_the_files_that_changed_are_named(program):
    program.run()
    for name, old, new in ("kernels", "# the end", "# the very end"), ("parts", "gain = 2", "gain = 3"):
        file = program.folder / f"{name}.py"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        program.run()
    assert told(program) == [
        "kernels.py:kernel (cache=True): value gain: 2 -> 3",
        "kernels.py:kernel (cache=True): kernels.py changed: line 8",
        "kernels.py:kernel (cache=True): first build",
    ]


def test_a_kernel_that_is_not_cached_is_listed_with_the_reason(program):
    program.write("add = Add(3, state=(each for each in ()))")
    program.run()
    program.run()
    assert told(program) == [
        "kernels.py:kernel (cache=True) is not cached: kernel.add: TypeError: cannot pickle 'generator' object"
    ]

# SPDX-License-Identifier: BSD-2-Clause
"""The code blocks of a documentation page, run as a reader runs them.

A page is Markdown. A comment before a fenced block says what a test does with it:

``<!-- test: gpu -->``
    Python that needs a GPU. All other Python blocks run without one.
``<!-- test: raises NAME -->``
    Python that raises an exception of that class, whose message the next output block shows.
``<!-- test: file NAME -->``
    Text of any language that is saved as a file.
``<!-- test: replace NAME LINE -->``
    Lines that take the place of the line LINE of that file, for the next block marked ``fresh``.
``<!-- test: fresh -->``
    Python in which nothing is defined and imported yet of what the page has.
``<!-- test: run -->``
    Shell commands that run.
``<!-- test: output -->``
    What the block before it prints; ``...`` stands for anything.

All blocks of a page run in order in one process, in one new folder, with one set of global names.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^(?:<!-- test: (?P<mark>[^\n]*?) -->\n)?^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
MARKS = ("gpu", "raises", "file", "replace", "fresh", "run", "output")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the mark before it (``""`` for none) with its argument, and its line."""

    language: str
    code: str
    mark: str
    argument: str
    line: int


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page that are not directives of MyST's."""
    found = []
    for match in _BLOCK.finditer(page):
        mark, _, argument = (match["mark"] or "").partition(" ")
        if not match["language"].startswith("{"):
            line = page.count("\n", 0, match.start("code")) + 1
            found.append(Block(match["language"].strip(), match["code"], mark, argument, line))
    return found


def run_page(path: Path, folder: Path, *, gpu: bool) -> None:
    """Run the blocks of a page in *folder*; those marked ``gpu`` too if *gpu*. Raises `AssertionError` with what went
    wrong at which line of the page."""
    job = {"page": str(path), "gpu": gpu, "blocks": [asdict(block) for block in blocks_of(path.read_text())]}
    (folder / "job.json").write_text(json.dumps(job))
    settings = ("NUMBA_CUDA_AUTOLINK", "NUMBA_ENABLE_CUDASIM", "PYTEST_")  # of the tests, not the page's
    kept = ("NUMBA_CUDA_AUTOLINK_CACHE_DIR", "NUMBA_CUDA_AUTOLINK_JOBS")
    environment = {
        **{name: os.environ[name] for name in os.environ if not name.startswith(settings) or name in kept},
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "NUMBA_CACHE_DIR": str(folder / "numba-cache"),
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    script = str(Path(__file__).with_name("docs_runner.py"))
    done = subprocess.run(
        [sys.executable, script, "job.json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"

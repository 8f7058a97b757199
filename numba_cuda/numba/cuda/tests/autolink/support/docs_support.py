# SPDX-License-Identifier: BSD-2-Clause
"""The code blocks of a documentation page, run as a reader runs them.

A page is Markdown. A comment before a fenced block tells the test what to do with it:

``<!-- test: gpu -->``
    Python that needs a GPU. All other Python blocks run without one.
``<!-- test: needs MODULE -->``
    Python that runs where the module is installed, or the library of CUDA whose header ``MODULE.h`` is named.
``<!-- test: raises NAME -->``
    Python that raises an exception of that class. The next output block shows its message.
``<!-- test: file NAME -->``
    Text in any language, saved as a file.
``<!-- test: replace NAME LINE -->``
    Lines that replace the line LINE of that file, for the next block marked ``fresh``.
``<!-- test: fresh -->``
    Python that starts without the page's earlier definitions and imports.
``<!-- test: run -->``
    Shell commands that run.
``<!-- test: output -->``
    The output of the block before it; ``...`` stands for anything.

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
MARKS = ("gpu", "needs", "raises", "file", "replace", "fresh", "run", "output")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the mark before it (``""`` for none) with its argument, and its line."""

    language: str
    code: str
    mark: str
    argument: str
    line: int


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page, without MyST's directives."""
    found = []
    for match in _BLOCK.finditer(page):
        mark, _, argument = (match["mark"] or "").partition(" ")
        if not match["language"].startswith("{"):
            line = page.count("\n", 0, match.start("code")) + 1
            found.append(Block(match["language"].strip(), match["code"], mark, argument, line))
    return found


def run_page(path: Path, folder: Path, *, gpu: bool) -> None:
    """Run the blocks of a page in *folder*, with *gpu* also those marked ``gpu``. Raise `AssertionError` with the line
    of the page at which something went wrong."""
    job = {"page": str(path), "gpu": gpu, "blocks": [asdict(block) for block in blocks_of(path.read_text())]}
    (folder / "job.json").write_text(json.dumps(job))
    settings = ("NUMBA_CUDA_AUTOLINK", "NUMBA_ENABLE_CUDASIM", "PYTEST_")  # settings of the test run, not of the page
    kept = ("NUMBA_CUDA_AUTOLINK_CACHE_DIR", "NUMBA_CUDA_AUTOLINK_JOBS")
    environment = {
        **{name: os.environ[name] for name in os.environ if not name.startswith(settings) or name in kept},
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "NUMBA_CACHE_DIR": str(folder / "numba-cache"),
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    if gpu and "NUMBA_CUDA_AUTOLINK_EMULATE" in os.environ:
        environment["NUMBA_CUDA_AUTOLINK_EMULATE"] = "1"
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

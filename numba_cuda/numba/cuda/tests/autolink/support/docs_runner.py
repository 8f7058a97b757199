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

All blocks of a page run in order in one process, ``python docs_runner.py JOB.json``, in one new folder, with one set of
global names.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import traceback
import types
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    done = subprocess.run(
        [sys.executable, __file__, "job.json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"


# In the process of a page


def main() -> None:
    sys.path[0] = ""  # as where the reader types it
    job = json.loads(Path(sys.argv[1]).read_text())
    module = types.ModuleType("page")
    sys.modules["page"] = module
    printed: str | None = None
    for block in job["blocks"]:
        where = f"{job['page']}:{block['line']}"
        if block["mark"] == "output":
            if printed is not None:
                compare(where, printed, block["code"])
            printed = None
        elif block["mark"] == "file":
            Path(block["argument"]).parent.mkdir(parents=True, exist_ok=True)
            Path(block["argument"]).write_text(block["code"])
        elif block["mark"] == "replace":
            replace(where, *block["argument"].split(" ", 1), block["code"])
        elif block["mark"] == "run":
            printed = run_shell(where, block["code"])
        elif block["language"] == "python":
            if block["mark"] == "fresh":
                forget(vars(module))
            printed = run_python(where, block, vars(module)) if runs_here(block, job) else None


def runs_here(block: dict[str, Any], job: dict[str, Any]) -> bool:
    """Return whether what the block needs is there."""
    if block["mark"] == "needs":
        name = block["argument"].removesuffix(".h")
        if name != block["argument"]:
            from cuda import pathfinder

            return pathfinder.find_nvidia_header_directory(name) is not None
        if os.path.isabs(name):
            return os.path.exists(name)
        return importlib.util.find_spec(name) is not None
    return block["mark"] != "gpu" or bool(job["gpu"])


def run_python(where: str, block: dict[str, Any], names: dict[str, Any]) -> str:
    """Run a block. Return what it prints, or the message of the exception that it is expected to raise."""
    file = Path(f"line_{block['line']}.py").resolve()
    file.write_text(block["code"])
    names["__file__"] = str(file)
    output = io.StringIO()
    expected = block["argument"] if block["mark"] == "raises" else None
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(block["code"], str(file), "exec"), names)
    except Exception as error:
        if expected in (each.__name__ for each in type(error).__mro__):
            return plain(f"{type(error).__name__}: {error}")
        traceback.print_exc()
        sys.exit(f"{where}: the block raises {type(error).__name__}")
    if expected is not None:
        sys.exit(f"{where}: the block does not raise {expected}")
    return plain(output.getvalue())


def replace(where: str, name: str, old: str, new: str) -> None:
    """Replace the line *old* of a file by *new*, with the same indentation."""
    lines = Path(name).read_text().splitlines()
    if [line.strip() for line in lines].count(old) != 1:
        sys.exit(f"{where}: {name} does not have the line {old} once")
    number = next(number for number, line in enumerate(lines) if line.strip() == old)
    indent = lines[number][: -len(old)]
    lines[number : number + 1] = [indent + line for line in new.splitlines()]
    Path(name).write_text("\n".join(lines) + "\n")


def forget(names: dict[str, Any]) -> None:
    """Forget the page's own modules and names, so that the next block starts from nothing."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(Path.cwd())):
            del sys.modules[name]
    for name in [name for name in names if not name.startswith("__")]:
        del names[name]


def run_shell(where: str, code: str) -> str:
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{where}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return plain(done.stdout)


def plain(text: str) -> str:
    """Return *text* without colours, and without the folders in paths of the blocks' files."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return re.sub(r'(?:[^\s"(]*/)?line_\d+\.py', "example.py", text)


def compare(where: str, got: str, expected: str) -> None:
    """Exit with an error unless *got* matches *expected*, in which ``...`` stands for anything, and a space or the end
    of a line for any of them."""
    shown = "\n".join(line.rstrip() for line in got.strip().splitlines())
    if not matches(got, expected):
        sys.exit(f"{where}: the block before prints\n{shown}\n--- and the page says\n{expected}")


def matches(got: str, expected: str) -> bool:
    # A report's lines are wrapped where the path of the page's folder leaves no room.
    text = " ".join(got.split())
    first, *others = (" ".join(each.split()) for each in expected.split("..."))
    if not others:
        return text == first
    *inner, last = others
    if not text.startswith(first):
        return False
    at = len(first)
    for each in inner:
        if (found := text.find(each, at)) < 0:
            return False
        at = found + len(each)
    return text.endswith(last) and at <= len(text) - len(last)


if __name__ == "__main__":
    main()

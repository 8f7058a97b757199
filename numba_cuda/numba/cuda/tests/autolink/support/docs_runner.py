# SPDX-License-Identifier: BSD-2-Clause
"""Run the blocks of one documentation page in a process of its own: ``python docs_runner.py JOB.json``."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import subprocess
import sys
import traceback
import types
from pathlib import Path
from typing import Any


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
        if type(error).__name__ == expected:
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


MEASURED = re.compile(r"(?:\d[\d.]*|\.\.\.) (?:bytes|KiB|MiB|µs|ms|s)\b|(?<=sha256 )[0-9a-f]{12}\b")


def compare(where: str, got: str, expected: str) -> None:
    """Exit with an error unless *got* matches *expected*, in which ``...`` stands for anything, and sizes, times and
    digests for all such."""
    got, expected = (MEASURED.sub("(measured)", text) for text in (got, expected))
    lines = [line.rstrip() for line in expected.strip().splitlines()]
    pattern = "\n".join(".*".join(map(re.escape, line.split("..."))) for line in lines)
    pattern = re.sub(r"\n\.\*(?=\n)", r"(?:\n[\\s\\S]*?)?", pattern)  # a line of its own: any lines, or none
    pattern = re.sub(r"(?m)^\.\*$", r"[\\s\\S]*?", pattern)
    shown = "\n".join(line.rstrip() for line in got.strip().splitlines())
    if not re.fullmatch(pattern, shown):
        sys.exit(f"{where}: the block before prints\n{shown}\n--- and the page says\n{expected}")


if __name__ == "__main__":
    main()

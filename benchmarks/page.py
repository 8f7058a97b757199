# SPDX-License-Identifier: BSD-2-Clause
"""Repeat the page on performance: print the machine and the versions, and run each command that the page shows.

``python benchmarks/page.py`` runs all of them, ``python benchmarks/page.py launch build`` those of two scripts. Scripts
that need a GPU say so where there is none, and the others go on.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from numba_cuda_autolink.package_versions import package_versions

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"


def commands() -> list[list[str]]:
    """Return the commands of the page that run a benchmark, in its order: script and arguments."""
    return [line.split() for line in re.findall(r"^python (benchmarks/.+)$", PAGE.read_text(), re.MULTILINE)]


def machine() -> str:
    """Return what the figures depend on: processor, cores, GPU with its driver, Python, and packages."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = [f"{platform.machine()}, {cores} cores, {platform.platform()}", f"GPU: {_gpu()}"]
    lines.append(f"Python {platform.python_version()}")
    lines += [f"{name} {version}" for name, version in package_versions().items()]
    return "\n".join(lines)


def _gpu() -> str:
    if shutil.which("nvidia-smi") is None:
        return "none"
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip() or "none"


def main() -> int:
    wanted = set(sys.argv[1:])
    print(machine(), flush=True)
    failed = []
    for script, *arguments in commands():
        if script == "benchmarks/page.py" or (wanted and Path(script).stem not in wanted):
            continue
        print(f"\n$ python {script} {' '.join(arguments)}", flush=True)
        if subprocess.run([sys.executable, script, *arguments], cwd=ROOT).returncode:
            failed.append(script)
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

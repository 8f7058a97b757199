# SPDX-License-Identifier: BSD-2-Clause
"""Make the pictures of reports in README.md, the first page and the gallery, docs/_static/report_*.svg.

python docs/pictures.py            # write all of them
"""

from __future__ import annotations

import importlib
import re
import runpy
import sys
import tempfile
from pathlib import Path

from numba.cuda import autolink

DOCS = Path(__file__).resolve().parent
PROJECT = DOCS.parent
# The names of the pictures of the README's objects, of the first page's C++, and of the examples of the gallery.
README, INDEX = "readme", "index"
EXAMPLES = ("cub_block_sum", "cub_unique", "fft", "nufft")


def main() -> None:
    """Write the pictures."""
    for name in (README, INDEX, *EXAMPLES):
        path_of(name).write_text(picture(name))


def path_of(name: str) -> Path:
    """Return the file of a picture."""
    return DOCS / "_static" / f"report_{name}.svg"


def picture(name: str) -> str:
    """Return a picture as the text of an SVG, without the tooltips, which have paths and times."""
    blocks = {README: readme_blocks()[-1:], INDEX: _blocks(DOCS / "index.md")}.get(name)
    report = _of_block(blocks[0]) if blocks else _of_example(name)
    title, text = report.to_svg().split("</title>", 1)
    return f"{title}</title>{re.sub(r'<title>.*?</title>', '', text, flags=re.DOTALL)}\n"


def readme_blocks() -> list[str]:
    """Return the Python of the README, block by block."""
    return _blocks(PROJECT / "README.md")


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def _of_block(code: str) -> autolink.Report:
    """Return the report of what a block of Python links."""
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "kernels.py").write_text(code)
        report: autolink.Report = runpy.run_path(str(path))["linked"].report
        return report


def _of_example(name: str) -> autolink.Report:
    """Return the report of the first kernel that an example links."""
    sys.path.insert(0, str(PROJECT / "examples"))
    try:
        linked = next(iter(importlib.import_module(name).link()))
    finally:
        sys.path.remove(str(PROJECT / "examples"))
    report: autolink.Report = (linked[1] if isinstance(linked, tuple) else linked).report
    return report


def comparable(svg: str) -> tuple[list[str], int]:
    """Return what a picture shows whatever the toolkit's version is: its texts without sizes, registers and lines of
    files, and how many lines and arrows it has."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", svg)
    varying = r"[\d.,]+ (bytes|KiB|MiB|registers?)|(\.py):\d+"
    return [re.sub(varying, r"N \1\2", text) for text in texts], svg.count("<path ")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-2-Clause
"""Makes the catalogue of errors, errors.md: runs each failure of error_cases.py and writes down what it says.

python docs/errors.py            # writes docs/errors.md
python docs/errors.py --check    # says whether docs/errors.md is what it would write
"""

from __future__ import annotations

import linecache
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from error_cases import CASES, FRAME, Case

PAGE = Path(__file__).resolve().parent / "errors.md"

_INTRODUCTION = """\
# Errors

What can go wrong when external code is built into a kernel, and what the messages look like. This page is made by
running every failure (`python docs/errors.py`), so the messages are real; only paths are shortened.

Three things happen to the code that a called object brings, and an error says which one failed:

1. **The object is asked.** While a kernel is compiled, `__numba_cuda_link__` of each called object is asked for code.
   If it has none, or none that can be linked, that is a `TypingError` at the line of the call.
2. **CUDA C++ is compiled** by NVRTC, NVIDIA's compiler library. Errors in the source are a `LinkError`.
3. **Everything is linked** by nvJitLink, NVIDIA's linker library, into one piece of machine code, called a *cubin*.
   What does not go together is a `LinkError`.

A `LinkError` (a kind of numba-cuda's `LinkerError`) has all that compiler or linker printed
as `.log`, and their own exception as `__cause__`. For source that does not compile, `.source_path` is a file that holds
it.

Some words: *LTO-IR* is code for link-time optimisation, half compiled, so that it can be inlined into the kernel. *PTX*
is NVIDIA's assembly text. `sm_90` is the architecture of GPUs of compute capability 9.0. A *symbol* is the name of a
function in compiled code.

Most failures below are of this program, `example.py`, and show only what its `__numba_cuda_link__` returns. Others show
what stands in it below the imports.

```python
{program}```
"""

PRELUDE = """\
from numba import cuda
from numba.cuda import autolink
"""


def main() -> None:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv[1:]:
        same = comparable(text) == comparable(PAGE.read_text())
        sys.exit(None if same else "docs/errors.md is not what the failures say now: run python docs/errors.py")
    PAGE.write_text(text)


def page() -> str:
    """The catalogue as Markdown."""
    parts = [_INTRODUCTION.format(program=PRELUDE + FRAME)]
    section = ""
    for case in CASES:
        if case.section != section:
            section = case.section
            parts.append(f"## {section}\n")
        parts.append(_entry(case, message_of(case)))
    return "\n".join(parts)


def _entry(case: Case, message: str) -> str:
    code = case.shown or textwrap.dedent(case.code).strip()
    return (
        f"### {case.title}\n\n{_filled(case.when)}\n\n```python\n{code}\n```\n\n```text\n{message}\n```\n\n"
        f"{_filled('**What to do.** ' + case.remedy)}\n"
    )


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def message_of(case: Case) -> str:
    """What *case* says, with shortened paths."""
    if case.without_library:
        command = [sys.executable, str(Path(__file__).resolve()), "--case", case.title]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        return done.stdout.strip()
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return _shortened(_raised_by(case), folder)
        finally:
            os.chdir(before)


def _raised_by(case: Case) -> str:
    source = PRELUDE + "\n" + textwrap.dedent(case.code).strip() + "\n"
    file = os.path.abspath("example.py")
    Path(file).write_text(source)
    linecache.checkcache(file)
    if case.setup is not None:
        case.setup()
    names: dict[str, Any] = {"__name__": "example", "__file__": file}
    try:
        exec(compile(source, file, "exec"), names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        if case.teardown is not None:
            case.teardown()
    if "said" in names:
        return str(names["said"])
    raise AssertionError(f"{case.title}: nothing went wrong")


def _shortened(text: str, folder: str) -> str:
    text = re.sub(r'File "[^"]*example\.py"', 'File "example.py"', text)
    for path in (os.path.realpath(folder), folder):
        text = text.replace(path + os.sep, "")
    # Where source is saved, and what comes from the toolkit.
    text = re.sub(r"/[^\s'\"]*/failed-sources[^/]*/", "~/.cache/numba-cuda-autolink/failed-sources/", text)
    text = re.sub(r"(?:/[^\s/'\"]+)+/(autolink|cudadrv|site-packages)/", r".../\1/", text)
    lines = (line.rstrip() for line in text.replace("\x1b[1m", "").splitlines())
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(lines)).strip()


def comparable(text: str) -> str:
    """The page without what differs between toolkits and versions of Python: what they print, and their versions."""
    text = re.sub(
        r'^File "example\.py", line \d+:\n(?:.*\n)*?During: .*\n(?:During: .*\n)*', "", text, flags=re.MULTILINE
    )
    text = re.sub(r"^  log: .*(?:\n    .*)*", "  log:", text, flags=re.MULTILINE)
    text = re.sub(r"\bcu1\d\b", "cuXX", text)
    text = re.sub(r"-[0-9a-f]{12}\.cu", "-DIGEST.cu", text)
    text = re.sub(r"SHA-256 [0-9a-f]+", "SHA-256 ...", text)
    return re.sub(r"\d+\.\d+|\b\d+ bytes|byte \d+|there are \d+|[Ss]ection \d+|\b\d+ kB", "N", text)


def _one_case(title: str) -> None:
    """Run one case in this process, where it may hide a library."""
    case = next(case for case in CASES if case.title == title)
    from cuda import pathfinder

    find = pathfinder.load_nvidia_dynamic_lib

    def hidden(name: str) -> Any:
        if name == case.without_library:
            raise pathfinder.DynamicLibNotFoundError(f'Failure finding "{name}"')
        return find(name)

    pathfinder.load_nvidia_dynamic_lib = hidden
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(_shortened(_raised_by(case), folder))


if __name__ == "__main__":
    if "--case" in sys.argv:
        _one_case(sys.argv[-1])
    else:
        main()

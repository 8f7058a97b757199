# SPDX-License-Identifier: BSD-2-Clause
"""Generate the catalogue of errors, errors.md: run each failure of error_cases.py, and record its message.

python docs/errors.py            # write docs/errors.md
python docs/errors.py --check    # check that docs/errors.md is up to date
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from error_cases import CASES, FRAME, Case

from numba_cuda_autolink.emulated_driver.activation import VARIABLE
from numba_cuda_autolink.short_tracebacks import message_of as message_of_printed

PAGE = Path(__file__).resolve().parent / "errors.md"

_INTRODUCTION = """\
# Errors

```{{index}} ! static_assert, ! static assertion failed, ! error messages
```

This page lists what commonly goes wrong when external code is linked into a kernel, with the messages. It is generated
by running every failure (`python docs/errors.py`), so the messages are real; only paths are shortened. If you have a
message, [look it up](#by-message).

The first line is the diagnosis. Then come the file and the line of the call, which is underlined, and what to do. In a
script and in a notebook the traceback shows your own lines alone: `NUMBA_CUDA_AUTOLINK_TRACEBACK=full` shows the
compiler's frames too.

The code of a called object goes through three stages, and an error names the stage that failed:

1. **The object is asked.** While a kernel is compiled, `__numba_cuda_link__` of each called object is called to get
   its code. If it raises, or returns something that cannot be linked, that is a `TypingError` at the line of the
   call.
2. **CUDA C++ is compiled** by NVRTC, NVIDIA's compiler library. An error in the source is a `LinkError`. Sources of
   `autolink.cxx` are compiled earlier, since they say which types their functions return: an error in one, such as
   a `static_assert` that fails, is a `TypingError` at the line of the call.
3. **Everything is linked** by nvJitLink, NVIDIA's linker library, into one piece of machine code, called a *cubin*.
   Code that does not fit together is a `LinkError`.

A `LinkError` (a subclass of numba-cuda's `LinkerError`) has everything that the compiler or linker printed as `.log`,
as such a `TypingError` has, and their own exception as `__cause__`. For source that does not compile, `.source_path`
is a file that contains it.

Some terms: *LTO-IR* is partly compiled code for link-time optimisation, which can be inlined into the kernel. *PTX*
is NVIDIA's assembly text. `sm_90` is the architecture of GPUs of compute capability 9.0. A *symbol* is the name of a
function in compiled code.

Most failures below come from this program, `example.py`, and show only what its `__numba_cuda_link__` returns. The
others show everything below its imports.

```python
{program}```
"""

_OTHERS = """\
## Other messages

These messages are rarer. Each is here with what to do, as the message says it. … stands for names and values.
"""
_REMEDY = "\n  what to do: "
_OF_PAIRS = ("_Misuse", "refuse_call", "message")  # take a diagnosis and a remedy

PRELUDE = """\
from numba import cuda
from numba.cuda import autolink
"""


def main() -> None:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv[1:]:
        same = comparable(text) == comparable(PAGE.read_text())
        sys.exit(None if same else "docs/errors.md is out of date: run python docs/errors.py")
    PAGE.write_text(text)


def page() -> str:
    """Return the catalogue as Markdown."""
    parts = [_INTRODUCTION.format(program=PRELUDE + FRAME)]
    section = ""
    firsts = []
    for case in CASES:
        if case.section != section:
            section = case.section
            parts.append(f"## {section}\n")
        message = message_of(case)
        if re.match(r"\w+Error: ", message):
            firsts.append((_first_line(message), case.title))
        parts.append(_entry(case, message))
    rows = [f"- [{text}](#{_anchor(title)})" for text, title in sorted(firsts, key=lambda each: each[0].lower())]
    text = "\n".join([*parts, "## By message\n", *rows, "", _OTHERS])
    found = dict(_messages())
    others = {
        f"- {_markdown(first)}\\\n  {_markdown(remedy)}" for first, remedy in found.items() if not _is_in(first, text)
    }
    return "\n".join([text, *sorted(others, key=lambda each: re.sub(r"\W+", " ", each).lower()), ""])


def _messages() -> Iterator[tuple[str, str]]:
    """Yield the first line and the remedy of each message in the sources, with … for what is not constant."""
    root = PAGE.parents[1]
    for file in sorted([*root.glob("numba_cuda/numba/**/*.py"), *root.glob("numba_cuda_autolink/**/*.py")]):
        pending: list[ast.AST] = [ast.parse(file.read_text())] if "tests" not in file.parts else []
        while pending:
            text = _template(node := pending.pop())
            if text == "…":
                pending += ast.iter_child_nodes(node)
            pair = node.args[-2:] if isinstance(node, ast.Call) and _name(node) in _OF_PAIRS else ()
            pair = node.value.elts if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) else pair
            text = _REMEDY.join(map(_template, pair)) if len(pair) == 2 else text
            message, has_remedy, remedy = text.partition(_REMEDY)
            first = message.partition("\n")[0]
            if has_remedy and all(len(re.findall(r"[a-z]{2,}", each)) > 2 for each in (first, remedy)):
                yield first, " ".join(remedy.split())


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _template(node: ast.AST) -> str:
    """Return the text of an expression, with … for what is not constant in it."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.JoinedStr):
        parts = node.values
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    if parts:
        return re.sub("…+", "…", "".join(map(_template, parts)))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "…"


def _is_in(first: str, text: str) -> bool:
    return re.search(".*".join(map(re.escape, first.split("…"))), text) is not None


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_<>\[\]])", r"\\\1", text)


def _first_line(message: str) -> str:
    """Return the diagnosis of a message, without its kernel, as Markdown."""
    diagnosis = message.splitlines()[0].split(": ", 1)[1]
    diagnosis = re.sub(r"^linking kernel '\w+' for sm_\w+ failed: ", "", diagnosis)
    return _markdown(diagnosis)


def _anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _entry(case: Case, message: str) -> str:
    code = case.shown or textwrap.dedent(case.code).strip()
    return (
        f"### {case.title}\n\n{_fill(case.when)}\n\n```python\n{code}\n```\n\n```text\n{message}\n```\n\n"
        f"{_fill('**What to do.** ' + case.remedy)}\n"
    )


def _fill(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def message_of(case: Case) -> str:
    """Return the message of *case*, with shortened paths."""
    if case.without_library or case.is_emulated:
        command = [sys.executable, str(Path(__file__).resolve()), "--case", case.title]
        environment = {**os.environ, VARIABLE: "1" if case.is_emulated else ""}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
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
    linecache.clearcache()  # which also has files by relative paths
    if case.setup is not None:
        case.setup()
    names: dict[str, Any] = {"__name__": "example", "__file__": file}
    try:
        exec(compile(source, file, "exec"), names)
    except NameError:
        raise  # a case that is written wrongly
    except Exception as error:
        from numba.cuda.autolink.frontend_api.launch_messages import launch_message

        return f"{type(error).__name__}: {message_of_printed(error) or launch_message(error) or error}"
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
    text = re.sub(r"\b0x[0-9a-f]{9,}", "0x...", text)  # in memory
    # Paths of saved sources, and of files of the toolkit.
    text = re.sub(r"/[^\s'\"]*/failed-sources[^/]*/", "~/.cache/numba-cuda-autolink/failed-sources/", text)
    text = re.sub(r"(?:/[^\s/'\"]+)+/(autolink|cudadrv|site-packages)/", r".../\1/", text)
    return "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()).strip()


def comparable(text: str) -> str:
    """Return the page without what differs between toolkits and Python versions: their output and version numbers."""
    text = re.sub(r"^  log: .*(?:\n    .*)*", "  log:", text, flags=re.MULTILINE)
    text = re.sub(r"does not have the (?:feature|instruction) '.*'", "does not have it", text)
    text = re.sub(r"cannot pickle '.*' (?:object|instances)", "cannot pickle it", text)
    text = re.sub(r"^  instruction: .*", "  instruction:", text, flags=re.MULTILINE)
    text = re.sub(r"\bcu1\d\b", "cuXX", text)
    text = re.sub(r"-[0-9a-f]{12}\.(cu|ptx)", r"-DIGEST.\1", text)
    text = re.sub(r"\.ptx, line \d+", ".ptx, line N", text)
    text = re.sub(r"SHA-256 [0-9a-f]+", "SHA-256 ...", text)
    return re.sub(r"\d+\.\d+|\b\d+ bytes|byte \d+(?: of \d+)?|there are \d+|[Ss]ection \d+|\b\d+ kB", "N", text)


def _one_case(title: str) -> None:
    """Run one case in this process, hiding the library that the case names."""
    case = next(case for case in CASES if case.title == title)
    from cuda import pathfinder

    find = pathfinder.load_nvidia_dynamic_lib

    def hidden(name: str) -> Any:
        if name == case.without_library:
            raise pathfinder.DynamicLibNotFoundError(f'Failure finding "{name}"')
        return find(name)

    pathfinder.load_nvidia_dynamic_lib = hidden
    if case.without_library == "cuda":
        from numba.cuda.cudadrv import driver

        vars(driver.driver).update(is_initialized=True, initialization_error=driver.DRIVER_NOT_FOUND_MSG)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(_shortened(_raised_by(case), folder))


if __name__ == "__main__":
    if "--case" in sys.argv:
        _one_case(sys.argv[-1])
    else:
        main()

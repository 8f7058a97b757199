# SPDX-License-Identifier: BSD-2-Clause
"""``explain``: what a kernel links, where that comes from, and the result."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from .argument_parsing import (
    STANDARD_OUTPUT,
    CommandError,
    add_kernel,
    check_folder,
    explained_errors,
    prints_to_stderr,
    write,
)

if TYPE_CHECKING:
    from numba.cuda.autolink.reports.report import Report

    from .kernel_loading import NamedKernel, Uncompiled

_EXAMPLES = """examples:
  numba-cuda-autolink explain mykernels.py
  numba-cuda-autolink explain mykernels.py:fft_rows --sig 'void(complex64[:,::1])' --cc 9.0
  numba-cuda-autolink explain mykernels.py:fft_rows --sig 'void(complex64[:,::1])' -o report.html
"""
_FORMS = {"json": "JSON, for tools", "html": "an HTML page", "dot": "a graph for Graphviz", "svg": "the graph as SVG"}
_SUFFIXES = {".txt": "text", **{f".{form}": form for form in _FORMS}, ".htm": "html", ".gv": "dot"}
_FORMS_OF_CHANGES = ("text", "json", "html")
_FORMS_WITH_LISTINGS = ("html", "json")
_TRACE_SUFFIX = ".trace.json"
LIST_FORMAT = 1


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="report what a kernel links; no GPU needed",
        description="Compile and link a kernel, and report each call site, the object that was asked, the code that it"
        " returned, the link, and the result; of a device function, what it brings to the kernels that call it. For a"
        " file alone, list its kernels and functions. No GPU is needed.",
        epilog=_EXAMPLES,
    )
    add_kernel(parser, listed=True)
    parser.add_argument(
        "-o",
        dest="out",
        metavar="OUT",
        type=pathlib.Path,
        default=STANDARD_OUTPUT,
        help="a file; its suffix sets the form: .txt, .json, .html, .dot, .svg or .trace.json"
        " (default: -, standard output)",
    )
    form = parser.add_mutually_exclusive_group()
    for name, what in _FORMS.items():
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"write {what}")
    timeline = "write the timeline of the build, for Perfetto"
    form.add_argument("--trace", dest="form", action="store_const", const="trace", help=timeline)
    parser.add_argument("--listings", action="store_true", help="show source, PTX and machine code in HTML and JSON")
    parser.add_argument(
        "--against",
        metavar="OLD",
        type=pathlib.Path,
        help="write what changed since the report in this JSON file, as text, JSON or HTML",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from numba.cuda import autolink

    from .kernel_loading import functions_in, kernels_in, load_file, load_kernel

    form, lists = _form(options.form, options.out), os.path.isfile(options.kernel)
    if lists and form not in ("text", "json"):
        raise CommandError(
            f"{options.kernel} alone lists its kernels, as text or JSON\n  what to do: name one for {form}",
            2,
        )
    if options.against is not None and (lists or form not in _FORMS_OF_CHANGES):
        raise CommandError(
            f"--against compares the reports of a kernel as text, JSON or HTML, got {'a file' if lists else form}\n"
            "  what to do: name a kernel, and pass --json, --html or none of them",
            2,
        )
    if options.listings and (lists or form not in _FORMS_WITH_LISTINGS):
        raise CommandError(
            f"--listings shows the code of a kernel in HTML and JSON, got {'a file' if lists else form}\n"
            f"  what to do: {'name a kernel, and ' if lists else ''}pass -o report.html, --html or --json",
            2,
        )
    check_folder(options.out)
    with prints_to_stderr(), explained_errors():
        if lists:
            uncompiled: Uncompiled = []
            module = load_file(options.kernel, options.cc, uncompiled)
            found = [*kernels_in(module, uncompiled), *functions_in(module)]
            text = _as_json(options.kernel, found) if form == "json" else _list(options.kernel, found)
        else:
            kernel = load_kernel(options.kernel, options.cc, [])
            signature = kernel.signature(options.sig)
            if kernel.is_compiled_for(signature, options.cc) and not options.listings:
                signature = None  # what was built as the file was imported, with its timeline
            if options.cc is None:
                _check_gpu()
            report = autolink.report(kernel.obj, signature, options.cc, listings=options.listings)
            report = dataclasses.replace(report, kernel=kernel.name)
            if options.against is not None:
                text = report.changes_since(_earlier(options.against), form)
            else:
                text = str(report) if form == "text" else getattr(report, f"to_{form}")()
    if not lists and form == "text" and options.out == STANDARD_OUTPUT and options.against is None:
        report.show()  # in colour on a terminal
    elif form == "text" and options.out == STANDARD_OUTPUT:
        print(text)  # in the terminal's encoding
    else:
        write(options.out, f"{text}\n".encode())
    if options.out != STANDARD_OUTPUT:
        what = "changes" if options.against is not None else "list" if lists else "report"
        shown = f"{what} as {form if form == 'text' else form.upper()}"
        print(f"{options.out}: {shown if form != 'trace' else 'timeline of the build, for https://ui.perfetto.dev'}")
    return int(lists and any(each.error for each in found))


def _earlier(path: pathlib.Path) -> Report:
    from numba.cuda import autolink

    try:
        return autolink.Report.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}\n  what to do: write a report with --json") from error
    except ValueError as error:
        raise CommandError(f"{path} is not a report: {error}\n  what to do: write one with --json") from error


def _form(given: str | None, out: pathlib.Path) -> str:
    named = "trace" if out.name.endswith(_TRACE_SUFFIX) else _SUFFIXES.get(out.suffix)
    if given is not None and named not in (given, None):
        raise CommandError(f"--{given} contradicts the suffix of {out}\n  what to do: leave one of the two out", 2)
    if given is not None or out == STANDARD_OUTPUT:
        return given or "text"
    if named is None:
        raise CommandError(
            f"{out}: no form of a report has the suffix {out.suffix or '(none)'}\n  what to do: use"
            f" {', '.join(_SUFFIXES)} or {_TRACE_SUFFIX}, or pass --json, --html, --dot, --svg or --trace",
            2,
        )
    return named


def _check_gpu() -> None:
    from numba import cuda

    if not cuda.is_available():
        raise CommandError("--cc is missing, and there is no GPU here\n  what to do: pass one, such as --cc 9.0", 2)


def _list(path: str, found: list[NamedKernel]) -> str:
    if not found:
        return f"{path}: no kernels"
    width = max(len(f"{each.name}{each.parameters}") for each in found)
    lines = []
    for each in found:
        compiled = "".join(f", for {signature}" for signature in each.signatures)
        called = f"{each.name}{each.parameters}"
        lines.append(f"  {called:{width}}  {each.kind}, {_place(path, each)}{compiled}")
        if each.error:
            lines += [f"    {line}" for line in f"cannot be compiled: {each.error}".splitlines()]
    return "\n".join([f"{path}:", *lines])


def _place(path: str, kernel: NamedKernel) -> str:
    code = kernel.function.__code__
    own = os.path.realpath(code.co_filename) == os.path.realpath(path)
    return f"line {code.co_firstlineno}" if own else f"{code.co_filename}:{code.co_firstlineno}"


def _as_json(path: str, found: list[NamedKernel]) -> str:
    kernels = [
        {
            "name": each.name,
            "parameters": each.parameters,
            "kind": each.kind,
            "device": each.is_device_function,
            "signatures": each.signatures,
            "error": each.error or None,
            "file": each.function.__code__.co_filename,
            "line": each.function.__code__.co_firstlineno,
        }
        for each in found
    ]
    listed = {"format": LIST_FORMAT, "file": path, "python": sys.version.split()[0], "kernels": kernels}
    return json.dumps(listed, indent=2)

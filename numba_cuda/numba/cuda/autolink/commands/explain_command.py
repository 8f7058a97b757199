# SPDX-License-Identifier: BSD-2-Clause
"""``explain``: what a kernel links, where that comes from, and the result."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from .argument_parsing import CommandError, add_kernel, explained_errors, load

_EXAMPLES = """examples:
  numba-cuda-autolink explain mykernels.py:fft_rows --sig 'void(complex64[:,::1])' --cc 9.0
  numba-cuda-autolink explain mykernels.py:fft_rows --sig 'void(complex64[:,::1])' --html > report.html
"""


def add_to(commands: Any) -> None:
    """Add the command to a parser's *commands*."""
    parser = commands.add_parser(
        "explain",
        help="report what a kernel links; no GPU needed",
        description="Compile and link a kernel, and report each call site, the object that was asked, the code that it"
        " returned, the link, and the result. No GPU is needed.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_kernel(parser, required=False)
    form = parser.add_mutually_exclusive_group()
    for name, what in (("json", "JSON, for tools"), ("html", "an HTML page"), ("dot", "a graph for Graphviz")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from numba.cuda import autolink

    kernel = load(options.kernel)
    with explained_errors():
        cc = options.cc[0] if options.cc and len(options.cc) == 1 else options.cc
        if options.sig is not None:
            for each in options.cc or [None]:
                _refuse_crashing_code(kernel, options.sig, each)
        report = autolink.report(kernel, options.sig, cc)
    if options.form is None:
        report.show()
    else:
        print({"json": report.to_json, "html": report.to_html, "dot": report.to_dot}[options.form]())
    return 0


def _refuse_crashing_code(kernel: Any, signature: str, cc: Any) -> None:
    """Link the finished code in a child process, and raise `CommandError` if nvJitLink crashes on damaged code."""
    from numba.cuda import autolink
    from numba.cuda.cudadrv.external_code.inputs import kinds
    from numba.cuda.cudadrv.external_code.link import trial

    unlinked = autolink.build(kernel, signature, cc=cc, output="ltoir")
    finished = [planned for planned in unlinked.inputs if planned.input.kind is not kinds.CUDA]
    with contextlib.suppress(trial.TrialError):  # then the link itself fails
        tried = trial.try_link([planned.input for planned in finished], autolink.Target(unlinked.cc, lto=True))
        if tried.signal is not None:
            brought = "\n".join(f"  linked: {planned}" for planned in finished)
            raise CommandError(f"{tried.message}\n{brought}")

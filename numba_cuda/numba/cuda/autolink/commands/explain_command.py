# SPDX-License-Identifier: BSD-2-Clause
"""``explain``: what a kernel links, where that comes from, and the result."""

from __future__ import annotations

import argparse
from typing import Any

from .argument_parsing import add_kernel, explained_errors, load

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
        report = autolink.report(kernel, options.sig, cc)
    if options.form is None:
        report.show()
    else:
        print(getattr(report, f"to_{options.form}")())
    return 0

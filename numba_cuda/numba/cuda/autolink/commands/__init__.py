# SPDX-License-Identifier: BSD-2-Clause
"""The command line: ``python -m numba.cuda.autolink`` and the script ``numba-cuda-autolink``.

Exit codes: 0; 1 where something failed or is wrong; 2 for a command line that makes no sense.

=====================  ===============================================================================
``explain``            the report of a kernel
``build``              kernels ahead of time
``cache``              the cache on disk
``doctor``             versions, libraries and known conflicts; needs nothing of Numba
``kernels``            FILE.py:KERNEL, signatures and compute capabilities on the command line
=====================  ===============================================================================
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from . import build, cache, doctor, explain
from .kernels import CommandError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="numba-cuda-autolink",
        description="See and build what Numba-CUDA kernels link, look after its cache, and find out what is wrong.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (explain, build, cache, doctor):
        command.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except CommandError as error:
        print(f"numba-cuda-autolink: {error}", file=sys.stderr)
        return error.code
    except OSError as error:
        print(f"numba-cuda-autolink: {error}", file=sys.stderr)
        return 1
    return code

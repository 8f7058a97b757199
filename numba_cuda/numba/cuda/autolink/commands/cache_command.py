# SPDX-License-Identifier: BSD-2-Clause
"""``cache``: shows and removes what is cached on disk, and explains what changed between entries."""

from __future__ import annotations

import argparse
from typing import Any

from numba.cuda.cudadrv.external_code.cache.settings import parse_size

from .. import cache
from .argument_parsing import CommandError


def add_to(commands: Any) -> None:
    """Add the command to a parser's *commands*."""
    parser = commands.add_parser(
        "cache",
        help="show, clear or prune the cache on disk, or show what changed",
        description="The cache of compiled and linked code. NUMBA_CUDA_AUTOLINK_CACHE_DIR names its directory.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = actions.add_parser("info", help="show its directory and its size")
    action.set_defaults(run=_info)
    action = actions.add_parser("clear", help="remove all entries")
    action.set_defaults(run=_clear)
    action = actions.add_parser("prune", help="remove the least recently used entries")
    action.add_argument("size", nargs="?", metavar="SIZE", help="size to keep, such as 500M (default: the size limit)")
    action.set_defaults(run=_prune)
    action = actions.add_parser("why", help="list entries and what changed from one to the next")
    action.add_argument("name", nargs="?", default="", help="a part of the entries' names (default: all entries)")
    action.add_argument("--kind", help="headers, program, link, answer, symbols or kernel")
    action.set_defaults(run=_why)


def _info(options: argparse.Namespace) -> int:
    print(cache.info())
    return 0


def _clear(options: argparse.Namespace) -> int:
    print(f"{cache.clear()} entries removed")
    return 0


def _prune(options: argparse.Namespace) -> int:
    size = None if options.size is None else parse_size(options.size)
    if size is None and options.size is not None:
        raise CommandError(f"{options.size!r} is not a size, such as 500M, 2G or 0", 2)
    print(f"{cache.prune(size)} entries removed")
    return 0


def _why(options: argparse.Namespace) -> int:
    history = cache.why(options.name, options.kind)
    print(history)
    return 0 if history.entries else 1

# SPDX-License-Identifier: BSD-2-Clause
"""``cache``: shows, removes and moves what is cached on disk, and explains what changed between entries."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import textwrap
import warnings
from typing import Any

from ..cache_folder import DIRECTORY, why_not_trusted
from ..printable_texts import number_of
from ..settings import parse_size
from .argument_parsing import CommandError, check_folder

INFO_FORMAT = WHY_FORMAT = 1
_MOST_LINES = 40


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "cache",
        help="show, clear, prune or move the cache, or show what changed",
        description="The cache of compiled and linked code. NUMBA_CUDA_AUTOLINK_CACHE_DIR names its directory.",
    )
    parser.set_defaults(run=_run)
    parser.takes_none = "cache why lists what was built, cache info how much there is of each kind"
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)

    def action(name: str, does: str) -> Any:
        parser = actions.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}.")
        parser.instead = f"name a cache's folder so: {DIRECTORY}={{}} {parser.prog}"
        return parser

    info = action("info", "show its levels, its size, and how often it hits")
    info.add_argument("--json", action="store_true", help="write JSON, for tools")
    clear = action("clear", "remove all entries")
    clear.takes_none = "cache clear removes all, and takes no names; cache prune SIZE keeps what was used last"
    prune = action("prune", "remove the least recently used entries")
    prune.add_argument(
        "size", nargs="?", type=_size, metavar="SIZE", help="size to keep, such as 500M (default: the size limit)"
    )
    export = action("export", "write the entries that other machines can use to a file")
    export.add_argument("file", metavar="FILE", type=pathlib.Path, help="the file to write")
    imported = action("import", "read a file of entries")
    imported.add_argument("file", metavar="FILE", type=pathlib.Path, help="a file that cache export wrote")
    imported.add_argument("--trust", action="store_true", help="trust whoever made the file: no key is needed")
    why = action(
        "why", "list builds, latest first, and why each was not in the cache: what changed since an earlier one"
    )
    why.add_argument("name", nargs="?", metavar="NAME", default="", help="a part of the entries' names (default: all)")
    why.add_argument("--all", action="store_true", help=f"all lines, not only the first {_MOST_LINES}")
    why.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also places, what each build is compared with, changed lines of short texts, and what a first build has",
    )
    why.add_argument("--json", action="store_true", help="write JSON, for tools")
    why.add_argument("--kind", metavar="KIND", help="only entries of one kind, such as program, link or kernel")


def _print_history(lines: list[str], whole: bool) -> None:
    shown = lines if whole else lines[:_MOST_LINES]
    for line in shown:
        print("\n".join(_wrapped(line)))
    if len(shown) < len(lines):
        print(f"... {len(lines) - len(shown)} more lines: --all shows them, and a NAME only those of its entries")


def _wrapped(line: str) -> list[str]:
    """Return a *line* in parts that fit the terminal, if there is one."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() or os.environ.get("COLUMNS") else len(line)
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": " " * 8}
    return textwrap.wrap(line, max(width, 40), **options) if len(line) > max(width, 40) else [line]


def _size(text: str) -> int:
    size = parse_size(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, such as 500M, 2G or 0")
    return size


def _run(options: argparse.Namespace) -> int:
    from numba.cuda.autolink import cache
    from numba.cuda.autolink.reports import formatting
    from numba.cuda.cudadrv.external_code.cache.disk import EMULATOR
    from numba.cuda.cudadrv.external_code.cache.settings import REMOTE_KEY, RemoteSettingsError

    is_there, disk = _check(options.action), cache.current_store().disk
    if options.action == "info":
        found = cache.info()
        print(json.dumps({"format": INFO_FORMAT, **dataclasses.asdict(found)}, indent=2) if options.json else found)
    elif options.action == "why":
        history = cache.why(options.name, options.kind)
        if options.json and (history.entries or not (options.name or options.kind)):
            print(json.dumps({"format": WHY_FORMAT, "builds": history.builds}, indent=2))
        elif not (history.entries or options.name or options.kind):
            print(f"{history} in {cache.info().directory}")
        elif not history.entries:
            message, kinds = str(history), [each.kind for each in cache.info().by_kind]
            if kinds and options.kind not in (None, *kinds):
                message += f"\n  cached: {', '.join(map(repr, kinds))}"
            elif kinds:
                message += "\n  what to do: numba-cuda-autolink cache why lists all entries"
            raise CommandError(message)
        else:
            _print_history((history.details if options.verbose else str(history)).splitlines(), options.all)
    elif options.action in ("export", "import"):
        if options.file.is_dir():
            raise CommandError(f"{options.file} is a folder\n  what to do: name a file")
        if options.action == "import" and not options.file.exists():
            raise CommandError(f"{options.file}: no such file\n  what to do: write one with cache export")
        try:
            if options.action == "import":
                before = disk.size()[0]
                count = cache.import_file(options.file, trust=options.trust)
                more = f", {disk.size()[0] - before} of them new"
            else:
                check_folder(options.file)
                if not (info := cache.info()).entries:
                    raise CommandError(f"the cache {info.directory} is empty: there is nothing to export")
                count = cache.export_file(options.file)
                others = info.entries - count
                more = f", without {others} for this machine alone" if others > 0 else ""
        except ValueError as error:
            remedy = (
                f"\n  what to do: correct {REMOTE_KEY}, or unset it" if isinstance(error, RemoteSettingsError) else ""
            )
            raise CommandError(str(error).replace("trust=True", "--trust") + remedy) from error
        print(f"{options.file}: {number_of(count, 'entry')}{more}")
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", cache.CacheWarning)
                removed, folder = 0, cache.current_store().settings.directory
                if is_there:
                    held = disk.size()[1] + disk.bytes_in(EMULATOR)
                    removed = cache.clear() if options.action == "clear" else cache.prune(options.size)
        except cache.CacheWarning as error:
            raise CommandError(f"nothing was removed: {error}") from error
        text = f"{number_of(removed, 'entry')} removed"
        if is_there:
            count, size = disk.size()
            freed = held - size - disk.bytes_in(EMULATOR)
            rest = f"{number_of(count, 'entry')} left, {formatting.size(size)}"
            print(f"{text}, {formatting.size(freed)} freed; {rest}")
        else:
            print(f"{text}: there is no folder {folder}")
    return 0


def _check(action: str) -> bool:
    """Return whether the cache's folder is there, which nothing but the default may not be. Raise `CommandError` if it
    is not the folder of a cache, or cannot be used."""
    from numba.cuda.cudadrv.external_code.cache.disk import EMULATOR, ENTRIES
    from numba.cuda.cudadrv.external_code.cache.settings import MODE
    from numba.cuda.cudadrv.external_code.cache.store import current_store

    settings = current_store().settings
    folder, remedy = settings.directory, f"set {DIRECTORY} to the folder of a cache, or unset it"
    if not settings.on_disk:
        if action == "info":
            return False
        why = f"{MODE}=0" if folder else "this user has no home directory"
        raise CommandError(f"there is no cache on disk: {why}\n  what to do: {f'unset {MODE}' if folder else remedy}")
    if not os.path.exists(folder):
        is_before_first_build = action not in ("export", "import") and not current_store().disk.why_unusable()
        if os.environ.get(DIRECTORY) and action != "import" and not is_before_first_build:
            raise CommandError(
                f"there is no folder {folder}, which {DIRECTORY} names\n"
                f"  what to do: correct {DIRECTORY}, or build a kernel, which makes the folder"
            )
        return False
    if not os.path.isdir(folder):
        raise CommandError(f"the cache's folder {folder} is a file\n  what to do: {remedy}")
    try:
        found = os.listdir(folder)
    except OSError as error:
        raise CommandError(f"{folder} cannot be read: {error.strerror}\n  what to do: chmod u+rwx {folder}") from error
    if found and not {ENTRIES, EMULATOR}.intersection(found) and action != "import":
        raise CommandError(f"{folder} is not a cache: it has no folder {ENTRIES}\n  what to do: {remedy}")
    for each in (folder, os.path.join(folder, ENTRIES)):
        if os.path.exists(each) and (why := why_not_trusted(each)):
            raise CommandError(
                f"{each} is not used as a cache: it {why}, who could put code there that runs in your kernels\n"
                f"  what to do: make it yours alone: chown, chmod go-w; or {remedy}"
            )
    return True

# SPDX-License-Identifier: BSD-2-Clause
"""The script ``numba-cuda-autolink``. It is apart from the packages of this project, whose files may be damaged."""

import os
import sys

_OURS = "numba-cuda-autolink"


def main():
    """Run the command line and return the exit code. An exception, if files of this project are not as they were
    installed or a file hides a module of Python, is an error that names them."""
    try:
        if sys.argv[1:2] == ["doctor"]:
            from numba_cuda_autolink.hidden_modules import search_python_first

            search_python_first()
        from numba_cuda_autolink.command_entry import main as run

        return run()
    except Exception as error:
        is_full = os.environ.get("NUMBA_CUDA_AUTOLINK_TRACEBACK") == "full"
        if is_full or not (found := _find_hidden(error) or find_damage()):
            raise
        what, fix = found
        place = _innermost(error.__traceback__)
        if isinstance(error, SyntaxError) and error.filename:
            place = f"{error.filename}:{error.lineno}"
        lines = [f"{_OURS}: {what}", f"  {type(error).__name__}: {error}"]
        lines += [f"  at: {place}", f"  what to do: {fix}"]
        print("\n".join(lines), file=sys.stderr)
        return 1


def _innermost(traceback):
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"


def find_damage():
    """Return which files of this project are not as they were installed, and how to install it again; ``None`` if all
    are."""
    try:
        from numba_cuda_autolink.installed_packages import damaged_files
        from numba_cuda_autolink.pip_commands import reinstall_command

        if not (files := list(damaged_files(_OURS))):
            return None
        more = f", and {len(files) - 1} more" if len(files) > 1 else ""
        return f"its own files are damaged: {files[0]}{more}", reinstall_command(_OURS)
    except Exception as error:  # a file that finds damage is itself damaged
        source = _source()
        if source.get("dir_info", {}).get("editable"):
            return None
        return (
            f"its own files are damaged: {error}",
            f"{sys.executable} -m pip install --force-reinstall --no-deps {source.get('url', _OURS)!r}",
        )


def _find_hidden(error):
    """Return which file hides a module of Python, and what to do, if that may be the cause of *error*; ``None`` if none
    does, or the file that finds it is itself damaged."""
    try:
        from numba_cuda_autolink.hidden_modules import find_hidden

        return find_hidden(error)
    except Exception:
        return None


def _source():
    """Return where this project was installed from, as `direct_url.json` describes it; empty if that is unknown."""
    import importlib.metadata
    import json

    try:
        source = json.loads(importlib.metadata.distribution(_OURS).read_text("direct_url.json") or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return {}
    return source if isinstance(source, dict) else {}

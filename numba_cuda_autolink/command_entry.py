# SPDX-License-Identifier: BSD-2-Clause
"""The script ``numba-cuda-autolink``. Its ``doctor`` also works where Numba cannot be imported."""

import importlib.util
import os
import sys

from .interruption import interruptible
from .package_versions import package_versions


def main():
    """Run the command line and return the exit code."""
    with interruptible():
        try:
            from numba.cuda.autolink.commands.main_command import main as run
        except Exception as error:
            return _without_numba(sys.argv[1:], error)
        return run()


def _without_numba(arguments, error):
    """Run what works although importing numba.cuda raised *error*, or say what to do."""
    doctor = _doctor()
    if arguments[:1] == ["doctor"] and doctor is not None:
        return doctor.main(arguments[1:])
    if arguments[:1] == ["--version"]:
        print(f"numba-cuda-autolink {package_versions()['numba-cuda-autolink']}")
        return 0
    print(f"numba-cuda-autolink: numba.cuda cannot be imported: {type(error).__name__}: {error}", file=sys.stderr)
    print("  what to do: numba-cuda-autolink doctor", file=sys.stderr)
    return 1


def _doctor():
    """Return the module of ``doctor``, loaded without the packages that contain it."""
    for entry in sys.path:
        path = os.path.join(entry, "numba_cuda", "numba", "cuda", "autolink", "commands", "doctor_command.py")
        if os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("numba_cuda_autolink_doctor", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None

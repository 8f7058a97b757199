# SPDX-License-Identifier: BSD-2-Clause
"""The script ``numba-cuda-autolink``. Where Numba cannot be imported, ``doctor`` says why all the same."""

import importlib.util
import os
import sys


def main():
    """Run the command line."""
    try:
        from numba.cuda.autolink.commands import main as run
    except Exception as error:
        doctor = _doctor()
        if sys.argv[1:2] == ["doctor"] and doctor is not None:
            return doctor.run()
        print(f"numba-cuda-autolink: numba.cuda cannot be imported: {type(error).__name__}: {error}", file=sys.stderr)
        print("  what to do: numba-cuda-autolink doctor", file=sys.stderr)
        return 1
    return run()


def _doctor():
    """The module, without the packages that it lies in."""
    for entry in sys.path:
        path = os.path.join(entry, "numba_cuda", "numba", "cuda", "autolink", "commands", "doctor.py")
        if os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("numba_cuda_autolink_doctor", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # which its dataclasses ask for
            spec.loader.exec_module(module)
            return module
    return None

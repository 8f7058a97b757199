# SPDX-License-Identifier: BSD-2-Clause
"""Compare kernels that call libraries with their native counterparts, doing the same work in the same run.

    python benchmarks/libraries.py [CONTEST ...]

Times are medians over rounds in which both take turns; errors are relative to NumPy in extended precision. This needs a
GPU, CuPy (for cuFFT), nvmath-python and libmathdx; cufinufft is measured if it is installed. Missing packages are
reported.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path

from numba import cuda

CONTESTS = [
    "ffts", "block_sums", "operators", "lambdas", "gemms", "random_numbers", "nuffts", "nufft_window", "build_times"
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "contests", nargs="*", default=CONTESTS, metavar="CONTEST", help=f"any of {', '.join(CONTESTS)}"
    )
    chosen = parser.parse_args().contests
    if not cuda.is_available():
        sys.exit("benchmarks/libraries.py needs a GPU, and numba-cuda found none")
    here = Path(__file__).resolve().parent
    sys.path[:0] = [str(here), str(here.parent / "examples")]
    warnings.filterwarnings("ignore", message=".*Grid size.*")
    from contests import timing

    device = cuda.get_current_device()
    print(f"{device.name}, sm_{''.join(map(str, device.compute_capability))}")
    timing.header()
    for name in chosen:
        try:
            contest = importlib.import_module(f"contests.{name}")
        except (ImportError, SystemExit) as error:
            print(f"{name}: not measured: {error}")
            continue
        contest.run()


if __name__ == "__main__":
    main()

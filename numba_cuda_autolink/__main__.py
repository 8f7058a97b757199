# SPDX-License-Identifier: BSD-2-Clause
"""``python -m numba_cuda_autolink``: the script ``numba-cuda-autolink``."""

import sys

from _numba_cuda_autolink_command import main

sys.exit(main())

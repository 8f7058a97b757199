# SPDX-License-Identifier: BSD-2-Clause
"""``python -m numba.cuda.autolink``: see `numba_cuda_autolink.commands`."""

import sys

from _numba_cuda_autolink_command import main

sys.exit(main())

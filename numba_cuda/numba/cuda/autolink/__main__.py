# SPDX-License-Identifier: BSD-2-Clause
"""``python -m numba.cuda.autolink``: see `numba_cuda_autolink.commands`."""

import sys

from numba_cuda_autolink.command_entry import main

sys.exit(main())

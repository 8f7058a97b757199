# SPDX-License-Identifier: BSD-2-Clause
"""``python -m numba.cuda.autolink``: see `numba.cuda.autolink.commands`."""

import sys

from .commands.main_command import main

sys.exit(main())

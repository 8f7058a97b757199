# SPDX-License-Identifier: BSD-2-Clause
"""``python -m numba.cuda.autolink``: see `numba.cuda.autolink.commands`."""

import sys

from .commands.command_line import main

sys.exit(main())

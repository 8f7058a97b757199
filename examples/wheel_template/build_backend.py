# SPDX-License-Identifier: BSD-2-Clause
"""Build with hatchling, and not without the hook that builds the device code: see ``hatch_build.py``."""

import os
import sys

from hatchling import build
from hatchling.build import *  # noqa: F403
from hatchling.builders.wheel import WheelBuilder


def build_wheel(*arguments, **settings):
    require_hook()
    return build.build_wheel(*arguments, **settings)


def build_editable(*arguments, **settings):
    require_hook()
    return build.build_editable(*arguments, **settings)


def require_hook():
    """Exit with an error where hatchling would build a package without device code."""
    builder = WheelBuilder(os.getcwd())
    if "custom" not in builder.config.hook_config:
        sys.exit(
            f"{builder.metadata.core.name}: the build runs no hook, so the package would have no device code\n"
            "  what to do: write [tool.hatch.build.targets.wheel.hooks.custom] into pyproject.toml, with its "
            "architectures, and unset HATCH_BUILD_NO_HOOKS"
        )

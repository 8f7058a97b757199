# SPDX-License-Identifier: BSD-2-Clause
"""Build with hatchling, and not without the hook that builds the device code: see ``hatch_build.py``."""

import os
import sys

from hatchling import build
from hatchling.build import *  # noqa: F403
from hatchling.builders.wheel import WheelBuilder

SECTION = "tool.hatch.build.targets.wheel.hooks.custom"


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
        found = sections_with("architectures", builder.metadata.config)
        where = next((each for each in found if "hook" in each), None)
        todo = f"write [{SECTION}] into pyproject.toml, with its architectures, and unset HATCH_BUILD_NO_HOOKS"
        if where and where != SECTION:
            todo = f"write [{SECTION}] for [{where}] in pyproject.toml"
        sys.exit(
            f"{builder.metadata.core.name}: the build runs no hook, so the package would have no device code\n"
            f"  what to do: {todo}"
        )


def sections_with(setting, table, *names):
    """Yield the names of the sections of a table of TOML that have a setting."""
    if setting in table:
        yield ".".join(names)
    for name, section in table.items():
        if isinstance(section, dict):
            yield from sections_with(setting, section, *names, name)

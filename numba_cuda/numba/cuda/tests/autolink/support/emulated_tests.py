# SPDX-License-Identifier: BSD-2-Clause
"""The tests that launch kernels and cannot run in the emulator, by parts of their names, with the reason."""

from __future__ import annotations

_REASONS = {
    "a cubin is launched, and the emulator runs PTX": (),
    "it measures what the device does": (),
}


def why_not_emulated(test: str) -> str | None:
    """Return why the *test* of this name cannot run in the emulator; ``None`` if it can."""
    return next((reason for reason, parts in _REASONS.items() if any(part in test for part in parts)), None)

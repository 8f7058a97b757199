# SPDX-License-Identifier: BSD-2-Clause
"""A cached kernel is never stale: each of many changes, and several that are drawn at random (``--draws N``)."""

from __future__ import annotations

import random

import pytest
from program_features import FEATURES
from random_programs import Change, Trial

_GROUPS = 7  # of features, which are the features of one program
_KERNELS = 5  # that are drawn for one program


def is_last(feature):
    """Whether it changes what is registered or imported when it is compiled, which may cost kernels that are looked for
    later a miss."""
    return "import" in feature.name or feature.name == "an intrinsic"


def check(change, folder, servers, *, in_one_process):
    faults = list(Trial(folder, servers).faults(change, in_one_process=in_one_process))
    assert not faults, "\n".join([*faults, repr(change)])


# .ci/run runs these too, in its step of random programs.
@pytest.mark.thorough
@pytest.mark.parametrize("in_one_process", [False, True], ids=["two_processes", "one_process"])
@pytest.mark.parametrize("group", range(_GROUPS))
def test_changes_are_seen(group, in_one_process, tmp_path, servers):
    """Each in a kernel of its own. Numba goes on using in a process what was registered first."""
    chosen = sorted(FEATURES[group::_GROUPS], key=is_last)
    features = tuple(each for each in chosen if not (in_one_process and each.is_registered))
    count = len(features)
    change = Change(features, (0,) * count, (1,) * count, tuple(range(count)))
    check(change, tmp_path, servers, in_one_process=in_one_process)


def pytest_generate_tests(metafunc):
    if "draw" in metafunc.fixturenames:
        count = metafunc.config.getoption("--draws") or (1000 if metafunc.config.getoption("--thorough") else _KERNELS)
        metafunc.parametrize("draw", range(-(-count // _KERNELS)))


def test_a_kernel_is_never_stale(draw, tmp_path, servers):
    """Kernels of two to four features, of which one or two change."""
    chance = random.Random(draw)
    in_one_process = chance.random() < 0.3
    pool = chance.sample(FEATURES, len(FEATURES))
    drawn = []
    for place in range(_KERNELS):
        changed = chance.randint(1, 2)
        for number in range(chance.randint(2, 4)):
            changes = number < changed
            fits = (
                each
                for each in pool
                if (place == _KERNELS - 1 or not is_last(each))
                and not (in_one_process and changes and each.is_registered)
            )
            pool.remove(feature := next(fits))
            before = chance.randrange(2)
            drawn.append((feature, before, 1 - before if changes else before, place))
    check(Change(*zip(*drawn, strict=True)), tmp_path, servers, in_one_process=in_one_process)

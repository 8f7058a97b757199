# SPDX-License-Identifier: BSD-2-Clause
"""A cached kernel is never stale: each of many changes, and several that are drawn at random (``--draws N``)."""

from __future__ import annotations

import random

import pytest
from program_features import FEATURES
from random_programs import Change, Trial

_GROUPS = 9  # of features, which are the features of one program


@pytest.mark.parametrize("in_one_process", [False, True], ids=["two processes", "one process"])
@pytest.mark.parametrize("group", range(_GROUPS))
def test_changes_are_seen(group, in_one_process, tmp_path, servers):
    """Each in a kernel of its own. Numba goes on using in a process what was registered first. Features that change
    what is registered or imported when they are compiled are last: they may cost kernels that are looked for later a
    miss."""
    chosen = sorted(FEATURES[group::_GROUPS], key=lambda each: "import" in each.name or each.name == "an intrinsic")
    features = tuple(each for each in chosen if not (in_one_process and each.is_registered))
    change = Change(features, (0,) * len(features), (1,) * len(features), is_apart=True)
    faults = list(Trial(tmp_path, servers).faults(change, in_one_process=in_one_process))
    assert not faults, "\n".join([*faults, *(f"{place}: {each.name}" for place, each in enumerate(features))])


def pytest_generate_tests(metafunc):
    if "draw" in metafunc.fixturenames:
        count = metafunc.config.getoption("--draws") or (1000 if metafunc.config.getoption("--thorough") else 8)
        metafunc.parametrize("draw", range(count))


def test_a_kernel_is_never_stale(draw, tmp_path, servers):
    """Programs of up to four features, of which one or two change."""
    chance = random.Random(draw)
    features = tuple(chance.sample(FEATURES, chance.randint(2, 4)))
    changed = chance.randint(1, 2)
    before = tuple(chance.randrange(2) for _ in features)
    after = tuple(1 - each if place < changed else each for place, each in enumerate(before))
    in_one_process = chance.random() < 0.3 and not any(each.is_registered for each in features[:changed])
    change = Change(features, before, after)
    faults = list(Trial(tmp_path, servers).faults(change, in_one_process=in_one_process))
    assert not faults, "\n".join([*faults, repr(change)])

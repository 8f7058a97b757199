# SPDX-License-Identifier: BSD-2-Clause
"""A cached kernel is never stale, whatever changes: programs and changes that are drawn at random.

See `random_programs` for what they are made of. ``--draws N`` sets how many there are.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from kernel_cache_support import start_servers
from program_features import FEATURES
from random_programs import WARM_UP, Draw, Trial, draws

# Each is drawn and tried on its own, so that processes can share the work.
_PARTS = 4


@pytest.fixture(scope="module")
def servers():
    yield from start_servers(WARM_UP)


@pytest.mark.parametrize("part", range(_PARTS))
def test_a_kernel_is_never_stale(part, request, servers, tmp_path):
    count = request.config.getoption("--draws") or (10_000 if request.config.getoption("--thorough") else 60)
    trial = Trial(tmp_path, servers)

    @seed(part)
    @settings(
        max_examples=-(-count // _PARTS),
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(draws(FEATURES))
    def check(draw):
        faults = list(trial.faults(draw))
        assert not faults, "\n".join([*faults, draw.report()])

    check()
    assert trial.saved > trial.unsaved


@pytest.mark.thorough
@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_feature_changes_the_kernel(feature, servers, tmp_path):
    trial = Trial(tmp_path, servers)
    draw = Draw((feature,), (0,), (1,))
    faults = list(trial.faults(draw))
    assert not faults, "\n".join([*faults, draw.report()])
    assert trial.changed

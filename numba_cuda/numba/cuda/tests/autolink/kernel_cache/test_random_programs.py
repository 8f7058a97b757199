# SPDX-License-Identifier: BSD-2-Clause
"""A cached kernel is never stale, whatever changes: programs and changes that are drawn at random.

See `random_programs` for what they are made of. ``--draws N`` sets how many there are; with ``-k never_stale -n 14
--dist worksteal``, 14 processes share them. NVRTC and nvJitLink are those of `quick_tools`; what seems to be wrong with
them is tried again with the real ones. The program and the change that fail are printed.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from program_features import FEATURES
from random_programs import Draw, Trial, Workplace, draws

# How many draws one test makes. Each has a fixed seed, and processes of its own, so that workers share them.
_PART = 75
# Built in each process before the first draw.
_WARM_UP = ("a device function", "a header", "a nested device function", "the source of a hook")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    yield from _opened(tmp_path_factory, quick=True)


@pytest.fixture(scope="module")
def thorough_workplace(tmp_path_factory):
    yield from _opened(tmp_path_factory, quick=False)


def _opened(tmp_path_factory, quick):
    features = tuple(feature for feature in FEATURES if feature.name in _WARM_UP)
    warm_up = Draw(features, (0,) * len(features), (0,) * len(features))
    return Workplace.opened(tmp_path_factory.mktemp("programs"), warm_up, quick=quick)


def drawn(part, count):
    """Decorator: call a function with *count* draws, those of the seed *part*."""

    def decorate(function):
        fixed = settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        return seed(part)(fixed(given(draws(FEATURES))(function)))

    return decorate


@pytest.fixture
def faults(workplace, request):
    """A function that returns what is wrong with a draw."""
    trial = Trial(workplace)

    def faults_of(draw):
        return list(trial.faults(draw)) and list(Trial(request.getfixturevalue("thorough_workplace")).faults(draw))

    yield faults_of
    print(f"{trial.saved} of {trial.saved + trial.unsaved} kernels were cached")
    assert trial.saved > trial.unsaved


def pytest_generate_tests(metafunc):
    if "part" in metafunc.fixturenames:
        whole = 10_000 if metafunc.config.getoption("--thorough") else 24
        count = metafunc.config.getoption("--draws") or whole
        metafunc.parametrize("part, count", [(n, min(_PART, count - n * _PART)) for n in range(-(-count // _PART))])


def check(part, count, faults):
    """Assert that none of *count* draws has faults."""

    @drawn(part, count)
    def has_no_fault(draw):
        found = faults(draw)
        if found:
            pytest.fail("\n".join([*found, draw.report()]), pytrace=False)

    has_no_fault()


def test_a_kernel_is_never_stale(part, count, faults):
    check(part, count, faults)


def test_a_kernel_is_never_stale_with_the_real_tools(thorough_workplace):
    trial = Trial(thorough_workplace)
    check(1000, 4, lambda draw: list(trial.faults(draw)))
    assert trial.saved


def test_features_have_numbers_of_their_own():
    assert len({feature.number for feature in FEATURES}) == len(FEATURES)
    for feature in FEATURES:
        assert all("$n" in name for name in feature.files), feature.name


@pytest.mark.thorough
@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
@pytest.mark.parametrize("has_times", [True, False], ids=["times", "one time"])
@pytest.mark.parametrize("in_one_process", [True, False], ids=["one process", "two processes"])
def test_a_change_of_one_feature_is_seen(feature, has_times, in_one_process, workplace, thorough_workplace):
    if in_one_process and feature.is_registered:
        pytest.skip("Numba goes on using what was registered first")
    draw = Draw((feature,), (0,), (1,), has_times, in_one_process, is_repeated=True)
    for place in workplace, thorough_workplace:
        trial = Trial(place)
        faults = list(trial.faults(draw))
        if not faults:
            break
    assert not faults, "\n".join([*faults, draw.report()])
    assert trial.changed == 1


_ENCODE = """
from numba.cuda.autolink import value_encoders
def encode(changed, encoder):
    value_encoders._ENCODERS = tuple(
        (kind, label, encoder if label == changed else old) for kind, label, old in value_encoders._ENCODERS
    )
    value_encoders.encoder_of.cache_clear()
"""
_OF_MANIFESTS = "from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest\n"

# Code that takes back one of the things which keep kernels from being stale, and names of features that need it.
TAKEN_BACK = {
    "the flags and argument counts of code": (
        _ENCODE + "encode('code', lambda value: (value.co_code, value.co_consts, value.co_names))",
        ("the argument count of a function",),
    ),
    "the exact bits of numbers": (
        "from numba.cuda.autolink import value_fingerprint\n"
        "value_fingerprint._primitive = lambda value: repr(value).encode()",
        ("the sign of a NaN",),
    ),
    "the metadata of dtypes": (
        _ENCODE + "encode('dtype', lambda value: (str(value), value.itemsize, value.isalignedstruct))",
        ("the metadata of a dtype",),
    ),
    "the order of arrays": (
        _ENCODE + "encode('array', lambda value: (value.dtype, value.shape, value.tobytes()))",
        ("an array's order",),
    ),
    "the attributes of subclasses of built-in types": (
        "from numba.cuda.autolink import value_encoders\nvalue_encoders.attributes = lambda value: None",
        (
            "a subclass of int",
            "a subclass of list",
            "a subclass of dict with slots",
        ),
    ),
    "which of two objects a name means": (
        """
from numba.cuda.autolink.kernel_cache.reachable import Reached
show = Reached._show
Reached._show = lambda self, label, shown: None if shown.startswith("the same as") else show(self, label, shown)
""",
        (
            "an alias",
            "the order of a tuple",
            "a closure",
            "the order of closures",
            "an attribute of an object",
            "the field of a named tuple",
            "a global of a device function",
        ),
    ),
    "the code of hooks": (
        "from numba.cuda.autolink.protocol.callee import Callee\nCallee.code_digest = lambda self: b''",
        (
            "the source of a hook",
            "a hook that is a partial method",
            "a decorated hook",
            "a base class of a hook",
            "a hook with a closure",
        ),
    ),
    "what is registered with Numba": (
        "from numba.cuda.autolink.kernel_cache import dispatcher_cache\ndispatcher_cache.registered = lambda: ()",
        (
            "an overload",
            "an overload in another module",
            "an overloaded method",
            "an overloaded attribute",
            "an intrinsic",
            "a number in the closure of an overload",
            "a function in the closure of an overload",
            "the lowering of a cast",
            "the lowering of a function",
            "a data model",
            "the type of an object",
            "the constant of an object",
        ),
    ),
    "the contents of headers": (
        _OF_MANIFESTS + "HeaderManifest.digest = property(lambda self: '', lambda self, digest: None)",
        (
            "a header",
            "a header of a header",
            "a header in angle brackets",
            "a directive with a digraph",
            "comments in a directive",
        ),
    ),
    "where headers are missing": (
        _OF_MANIFESTS
        + """
import dataclasses
of = HeaderManifest.of.__func__
HeaderManifest.of = classmethod(
    lambda cls, found, *args, **named: of(cls, dataclasses.replace(found, absent={}), *args, **named)
)
""",
        (
            "whether a header exists",
            "whether a macro finds a header",
            "whether a macro of a header finds a header",
            "a header that takes the place of another",
        ),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("code, names", TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_it_bites(code, names, workplace, thorough_workplace):
    """Without any one of these, draws find a stale kernel. Those that change none of the features are left out."""
    telling: list[Draw] = []
    trials = [Trial(place, before=code) for place in (workplace, thorough_workplace)]

    def is_stale(draw):
        return all(any("is stale" in fault for fault in trial.faults(draw)) for trial in trials)

    def collect(draw):
        if any(feature.name in names for feature in draw.changed):
            telling.append(draw)

    for part in range(4 * len(FEATURES) // _PART):  # in which each feature changes about six times
        drawn(part, _PART)(collect)()
        if any(map(is_stale, telling)):
            return
        telling.clear()
    pytest.fail("no draw finds a stale kernel", pytrace=False)

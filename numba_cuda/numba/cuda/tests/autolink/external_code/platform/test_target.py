# SPDX-License-Identifier: BSD-2-Clause
"""Compute capabilities in every spelling, and targets made of them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import pickle

import numpy as np
import pytest
from autolink_support import adder, calling
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink import ComputeCapability, Target

NamedCapability = collections.namedtuple("NamedCapability", "major minor")

SPELLINGS = [
    ((9, 0), (9, 0)),
    ((9, 0, "a"), (9, 0, "a")),
    (NamedCapability(8, 6), (8, 6)),
    (ComputeCapability(10, 3, "f"), (10, 3, "f")),
    ("9.0", (9, 0)),
    (" 9.0a ", (9, 0, "a")),
    ("sm_90a", (9, 0, "a")),
    ("compute_90", (9, 0)),
    ("90a", (9, 0, "a")),
    (90, (9, 0)),
    (np.int64(75), (7, 5)),
]


@pytest.mark.parametrize(("given", "expected"), SPELLINGS, ids=repr)
def test_parse_accepts_every_spelling(given, expected):
    parsed = ComputeCapability.parse(given)
    assert parsed == ComputeCapability(*expected) == expected
    assert type(parsed) is ComputeCapability
    assert (parsed.major, parsed.minor, parsed.suffix) == (*expected, "")[:3]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (9.0, TypeError),
        (True, TypeError),
        (None, TypeError),
        ((True, 0), TypeError),
        ((9,), ValueError),
        ((9, 0, "x"), ValueError),
        ((9, 10), ValueError),
        (12345, ValueError),
        ("9.0b", ValueError),
        ("sm-90", ValueError),
    ],
    ids=repr,
)
def test_parse_refuses_everything_else_and_says_what_it_accepts(given, error):
    with pytest.raises(error, match=r"is not a compute capability.*expected \(9, 0\), \(9, 0, 'a'\), '9\.0'") as raised:
        ComputeCapability.parse(given)
    assert repr(given) in str(raised.value)
    assert len(str(raised.value).splitlines()[0]) < 200


def test_it_is_a_tuple_that_cannot_change():
    capability = ComputeCapability(9, 0, "a")
    assert (str(capability), repr(capability)) == ("9.0a", "ComputeCapability(9, 0, 'a')")
    assert capability == (9, 0, "a") and capability != (9, 0) and hash(capability) == hash((9, 0, "a"))
    assert (8, 9) < ComputeCapability(9, 0) < capability < ComputeCapability(10, 0)
    assert (capability.arch, capability.base.arch) == ("sm_90a", "sm_90")
    with pytest.raises(AttributeError):
        capability.major = 8


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize("original", [ComputeCapability(9, 0), ComputeCapability(9, 0, "a"), Target("9.0a", lto=True)])
def test_copies_are_equal_and_of_the_same_type(duplicate, original):
    assert duplicate(original) == original
    assert type(duplicate(original)) is type(original)


def test_a_launch_builds_architecture_specific_code_from_9_0_on():
    launched = [ComputeCapability.parse(each).as_launched.arch for each in ("8.9", "9.0", "12.0")]
    assert launched == ["sm_89", "sm_90a", "sm_120a"]


@pytest.mark.parametrize(
    "target", [Target((9, 0), "a"), Target((9, 0, "a")), Target("9.0a"), Target("sm_90a", "a"), Target(90, "a")]
)
def test_a_target_takes_the_suffix_by_itself_or_with_the_compute_capability(target):
    assert target == Target((9, 0), suffix="a")
    assert (target.compute_capability, target.suffix, target.cc, target.arch) == ((9, 0), "a", (9, 0, "a"), "sm_90a")
    assert type(target.compute_capability) is ComputeCapability


def test_hooks_compare_and_unpack_a_targets_compute_capability():
    target = Target("9.0a")
    major, minor = target.compute_capability
    assert (major, minor) == (9, 0) == target.compute_capability
    assert (8, 0) <= target.compute_capability < (10, 0)
    assert dataclasses.replace(target, lto=True) == Target((9, 0), "a", lto=True)


def test_a_target_refuses_two_suffixes():
    with pytest.raises(ValueError, match=r"the suffix 'f' contradicts the compute capability 10\.0a"):
        Target("10.0a", "f")


@pytest.mark.parametrize("given", [(9, 0), "9.0", "sm_90", 90, ComputeCapability(9, 0)], ids=repr)
def test_everything_that_takes_a_compute_capability_takes_every_spelling(given):
    called = cuda.declare_device("any_cc", "int32(int32)")
    called.__numba_cuda_link__ = lambda x: autolink.CUDASource(adder("any_cc"))

    kernel = calling(called)
    built = autolink.build(kernel, "void(int32[::1])", cc=given)
    assert (built.cc, type(built.cc)) == ((9, 0), ComputeCapability)
    assert autolink.report(kernel, "void(int32[::1])", cc=[given]).builds[0].arch == "sm_90"
    assert autolink.testing.check_linkable(called, "int32", cc=given, lto=True)
    assert [link_input.name for link_input in autolink.testing.ask(called, "int32", cc=given)] == ["ExternFunction.cu"]

# SPDX-License-Identifier: BSD-2-Clause
"""The names in a kernel's code do not depend on what was compiled before it, nor on where Python keeps functions."""

from __future__ import annotations

import numpy as np
import pytest
from autolink_support import build
from numba import cuda, from_dtype
from numba.cuda import autolink, types
from numba.cuda.autolink.function_code.canonical_ir import with_canonical_names, with_names_by_content

add = autolink.cxx("__device__ float add(float x) { return x + 1; }").add


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@_ZN1m1fB2v7B3abcE @_ZN1m1gB3v12B3abcE", "@_ZN1m1fB3v20B3abcE @_ZN1m1gB3v21B3abcE"),
        ("@_ZN1f6RecordILi466EE 5ArrayI6RecordILi7EEE", "@_ZN1f6RecordILi3EE 5ArrayI6RecordILi4EEE"),
        ("@_ZN1f18DeviceCallableTypeILi12EE", "@_ZN1f18DeviceCallableTypeILi0EE"),
        ("@_ZN1f40_3cfunction_20one_20at_200x7f50d2a6b880_3e", "@_ZN1f40_3cfunction_20one_20at_200x7f6d22de7880_3e"),
        ('@".bytes.-517" @".bytes.213" @".bytes.-517"', '@".bytes.7" @".bytes.-8" @".bytes.7"'),
        ("@_cudapy_smem_3 @_cudapy_smem_12 @_cudapy_smem_3", "@_cudapy_smem_1 @_cudapy_smem_2 @_cudapy_smem_1"),
    ],
    ids=["functions", "records", "objects", "addresses", "string constants", "shared arrays"],
)
def test_what_counts_in_the_process_is_renumbered(one, other):
    for canonical in (with_canonical_names, with_names_by_content):
        assert canonical([one]) == canonical([other])


def test_names_of_different_things_stay_different():
    texts = "@_ZN1fB2v7B1aE @_ZN1fB2v8B1aE", "6RecordILi1EE 6RecordILi2EE", "_200x7f50d2a6b880_3e _200x7f50d2a6b881_3e"
    texts += ('@"_cudapy_smem_1" @"_cudapy_smem_2"',)
    for text in texts:
        (found,) = with_canonical_names([text])
        assert len(found) == len(text) and len(set(found.split())) == 2


def test_names_by_content_differ_where_the_content_does():
    one, other = (with_names_by_content([f"define i32 @_ZN1fB2v7B1aE() {{ ret i32 {n} }}"])[0] for n in (1, 2))
    assert one.split("(")[0] != other.split("(")[0]


@pytest.mark.parametrize("field", ["x", "y"])
def test_the_entry_name_does_not_tell_how_many_types_were_made_before(field):
    dtype = from_dtype(np.dtype([(field, np.float32)]))

    def kernel(records, r):
        r[0] = add(r[0])

    linked = build(kernel, types.void(dtype[::1], types.float32[::1]))
    assert "6RecordILi1EE" in linked.entry_name


def test_shared_arrays_of_functions_that_cxx_calls_are_not_those_of_the_kernel():
    apply = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(x); }").apply

    @cuda.jit(device=True)
    def of_floats(value):
        memory = cuda.shared.array(0, np.float32)
        memory[0] = value
        return memory[0] + np.float32(1)

    @cuda.jit(device=True)
    def of_doubles(value):
        memory = cuda.shared.array(2, np.float64)
        memory[0] = value
        return np.float32(memory[0] + 2)

    def kernel(x):
        own = cuda.shared.array(4, np.float32)
        own[0] = x[0]
        x[1] = apply(of_floats, np.float32(10))
        x[2] = apply(of_doubles, np.float32(20))
        x[3] = own[0]

    x = np.float32([5, 0, 0, 0])
    build(kernel, types.void(types.float32[::1])).emulate[1, 1, 0, 16](x)
    assert x.tolist() == [5, 11, 22, 5]

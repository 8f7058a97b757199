# SPDX-License-Identifier: BSD-2-Clause
"""Variables that no linked code uses: headers bring thousands of them, and a program may look some up by name."""

import pytest
from autolink_support import CC, Linked, calling, compiled, symbols
from numba import cuda
from numba.cuda.autolink.builds.ahead_of_time import prepare_for_launch
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

LIBRARY = """
    __device__ int looked_up[4] = {1, 2};
    __constant__ float parameters[2];
    inline __device__ int counter = 3;
    namespace library { inline __device__ int table[64] = {4}; }
    template <int N> __device__ int tables[N] = {N};
    extern "C" __device__ int* keep(int i) { return i ? &library::table[0] : &tables<5>[0]; }
    extern "C" __device__ int f(int* out, int x) { *out = x + tables<3>[x % 3]; return 0; }
    extern "C" __global__ void other(int* x) { *x = 1; }
"""
OF_HEADERS = {"_ZN7library5tableE", "_Z6tablesILi5EE"}
READER = 'extern __device__ int looked_up[4]; extern "C" __device__ int read(int i) { return looked_up[i]; }'


def cubin_of(kernel, link=()):
    """Return the symbols of the cubin that a launch of *kernel* would load."""
    return symbols(
        prepare_for_launch(kernel, "void(int32[::1])", ComputeCapability(*CC), {"link": list(link)}).link().code
    )


def launched(returned, link=()):
    """Return those of a kernel that calls ``f``."""
    f = Linked("f", lambda: returned).function

    return cubin_of(calling(f), link)


@pytest.fixture(scope="module")
def ltoir():
    return cuda.LTOIR(compiled(LIBRARY, "ltoir"))


def test_of_called_objects_all_are_left_out(ltoir):
    found = launched([ltoir])
    assert {"_Z6tablesILi3EE"} <= found
    assert not {"looked_up", "parameters", "counter", *OF_HEADERS, "other"} & found


def test_of_ltoir_named_explicitly_those_of_headers_are_left_out(ltoir):
    found = launched([], [ltoir])
    assert {"_Z6tablesILi3EE", "looked_up", "parameters", "counter", "other"} <= found
    assert not OF_HEADERS & found


def test_of_ltoir_that_no_call_needs_all_are_kept(ltoir):
    def kernel(x):
        x[0] = 1

    assert {"looked_up", "parameters", *OF_HEADERS, "other"} <= cubin_of(kernel, [ltoir])


def test_of_sources_named_explicitly_all_are_kept(tmp_path):
    (tmp_path / "library.cu").write_text(LIBRARY)
    assert {"looked_up", "parameters", *OF_HEADERS, "other"} <= launched([], [str(tmp_path / "library.cu")])


def test_those_that_machine_code_uses_are_kept(ltoir):
    assert "looked_up" in launched([ltoir, cuda.Cubin(compiled(READER, "cubin"))])


def test_all_are_kept_where_a_callback_may_look_them_up():
    ltoir = cuda.LTOIR(compiled(LIBRARY, "ltoir"), setup_callback=print)
    assert {"looked_up", "parameters", *OF_HEADERS} <= launched([ltoir])

# SPDX-License-Identifier: BSD-2-Clause
"""Call graphs of any depth and shape are walked: each library once, callees first."""

from __future__ import annotations

import itertools
import sys

from autolink_support import Linked
from numba.cuda import dispatcher, jit, types
from numba.cuda.autolink.compilation.context import without_device
from numba.cuda.autolink.frontends.numba_cuda.code_library import LinkingCodeLibrary
from numba.cuda.autolink.protocol.call_sites import CallSite
from numba.cuda.autolink.protocol.callee import find_callee

DEEP = max(200, sys.getrecursionlimit() + 1)


class Answers:
    """An object with a hook."""

    def __numba_cuda_link__(self, x):
        return None


def chain(depth):
    """Libraries of *depth* functions, each of which calls the next; the last one has a call site."""
    libraries = [LinkingCodeLibrary(None, f"function_{number}") for number in range(depth)]
    for library in libraries:
        library._module = library.name
    for caller, callee in itertools.pairwise(libraries):
        caller._linking_libraries.add(callee)
        caller.function_code.add_callee(callee.function_code)
    libraries[-1].function_code.calls.sites.add(CallSite(find_callee(Answers()), (), "functions.py", 7, "last"))
    return libraries


def test_the_modules_of_a_deep_call_graph_are_ordered_callers_first():
    libraries = chain(DEEP)
    assert libraries[0].modules == [library.name for library in libraries]


def test_a_kernel_sixty_calls_above_its_call_site_is_linked_and_described():
    """numba-cuda compiles nested calls recursively, to a depth of about 40; it goes deeper where callees are compiled
    first."""
    depth, cc = 60, (9, 0, "")
    function = Linked("at_the_bottom").function

    def calling(below):
        return jit(device=True)(lambda x: below(x))

    with without_device(cc):
        for _ in range(depth):
            function = calling(function)
            function.compile_device((types.int32,))

        def kernel(x):
            x[0] = function(x[1])

        library = dispatcher._Kernel(kernel, (types.int32[::1],), lto=True)._codelibrary
        assert bytes(library.get_cubin().code).startswith(b"\x7fELF")
        (call,) = library.facts(cc).calls
    assert len(call.chain) == depth + 1

# SPDX-License-Identifier: BSD-2-Clause
"""The types of numba-cuda-mlir as numba-cuda's, and back."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from numba.cuda import autolink, types


class TestTypes:
    @pytest.mark.parametrize(
        "text",
        [
            *("int8", "uint64", "float16", "float32", "bfloat16", "complex64", "complex128", "boolean", "none"),
            *("voidptr", "unicode_type", "float32[::1]", "float64[:, :]", "complex64[::1, :]"),
            *("CPointer(float32)", "Tuple((int32, float64))", "UniTuple(float32, 3)", "Optional(int32)"),
            *("literal(3)", "literal(True)", "literal('a')", "Omitted(None)", "DType(float32)", "NumberClass(int8)"),
            *("CharSeq(4)", "NPDatetime('ns')", "NestedArray(float32, (2, 3))", "TypeRef(float32)"),
        ],
    )
    def test_the_types_of_both_are_translated_both_ways(self, mlir, text):
        from numba.cuda.autolink.frontends.mlir.type_translation import from_core, to_core

        theirs = importlib.import_module("numba_cuda_mlir.numba_cuda.types")
        one, other = (eval(text, dict(vars(each))) for each in (theirs, types))
        assert to_core(one) == other
        assert from_core(other) == one
        assert str(one) == str(other)

    def test_records_and_read_only_arrays(self, mlir):
        from numba.cuda.autolink.frontends.mlir.type_translation import from_core, to_core
        from numba.cuda.np import numpy_support as ours
        from numba_cuda_mlir.numba_cuda.np import numpy_support as theirs

        dtype = np.dtype([("a", np.int32), ("b", np.float64, (2,))], align=True)
        one, other = theirs.from_dtype(dtype), ours.from_dtype(dtype)
        assert (to_core(one), from_core(other)) == (other, one)
        array = mlir.types.Array(mlir.types.float32, 1, "C", readonly=True)
        assert to_core(array) == types.Array(types.float32, 1, "C", readonly=True)

    def test_a_called_object_has_one_type_in_each(self, mlir):
        from numba.cuda.autolink.frontends.mlir.type_translation import from_core, to_core
        from numba.cuda.typing.typeof import Purpose, typeof
        from numba_cuda_mlir.numba_cuda.typing.typeof import typeof as their_typeof

        called = autolink.DeviceCallable()
        core, other = typeof(called, Purpose.constant), their_typeof(called)
        assert from_core(core) is other and to_core(other) is core

    def test_a_type_that_numba_cuda_does_not_have_cannot_be_passed_to_c(self, mlir):
        with pytest.raises(autolink.CABIError, match="has no counterpart in C"):
            autolink.cxx_type(mlir.types.f8E5M2)

    def test_the_public_functions_take_the_types_of_either(self, mlir):
        assert autolink.cxx_type(mlir.types.complex64) == "float2"
        assert autolink.Extern("f", returns=mlir.types.float32).returns == types.float32
        assert autolink.exact(mlir.types.int32) == autolink.exact(types.int32)

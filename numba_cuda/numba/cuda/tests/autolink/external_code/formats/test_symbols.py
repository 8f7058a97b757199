# SPDX-License-Identifier: BSD-2-Clause
"""The symbols that code references and does not define: here the functions of LLVM IR."""

from numba.cuda.cudadrv.external_code.formats.symbols import undefined_functions

CALLER = """
declare i32 @f(i32* %".1")
declare i32 @"with $"()
declare void @defined_below(i32)
define void @kernel() { ret void }
"""
BELOW = "define linkonce_odr void @defined_below(i32 %x) { ret void }"


def test_functions_that_no_module_defines():
    assert undefined_functions([CALLER]) == ("defined_below", "f", "with $")
    assert undefined_functions([CALLER, BELOW]) == ("f", "with $")


def test_functions_of_compilers_and_of_the_driver_are_left_out():
    names = ["llvm.nvvm.barrier0", "__nv_sinf", "__nvvm_reflect", "___numba_atomic_double_max", "vprintf", "malloc"]
    assert undefined_functions(["".join(f'declare i32 @"{name}"(i8*)\n' for name in names)]) == ()

# SPDX-License-Identifier: BSD-2-Clause
"""The drawn calls notice faults: with any one of these fixes taken back, a batch of them fails."""

from __future__ import annotations

import re
import shutil

import pytest
import test_differential
from numba.core.errors import NumbaError
from numba.cuda import types
from numba.cuda.autolink.c_abi import c_types, extern
from numba.cuda.autolink.c_abi.c_types import CABIError
from numba.cuda.autolink.cxx_by_name import call_text, calls, places, records, results
from numba.cuda.cudadrv.external_code.compile import prototype_assertions
from numba.cuda.cudadrv.external_code.inputs import c_prototypes


def integers_are_addresses(patch):
    """``int64`` for ``const long long&``: C++ reads from the address 41."""
    templates, fits = prototype_assertions._TEMPLATES, "nca_fits : nca_has<nca_t, nca_integer, nca_s> {"
    is_either = "int(nca_kind<nca_t>::nca_is) == nca_pointer || int(nca_has<nca_t, nca_integer, nca_s>::nca_is)"
    assert fits in templates
    as_before = templates.replace(fits, f"nca_fits : nca_constant<{is_either}> {{")
    patch.setattr(prototype_assertions, "_TEMPLATES", as_before)


def pointers_point_to_anything(patch):
    """An array of ``float64`` for ``float*``."""
    original = c_prototypes._pattern
    patch.setattr(c_prototypes, "_pattern", lambda c: "nca_address" if c.kind == "pointer" else original(c))


def parts_of_structs_are_not_compared(patch):
    """``struct { int n; float x; }`` for ``Tuple(float32, int32)``."""
    patch.setattr(prototype_assertions, "has_structs", lambda called: False)


def strided_arrays_are_pointers(patch):
    """Every second element for ``const float*``."""
    original = c_types._array
    patch.setattr(c_types, "_array", lambda array: original(array.copy(layout="C")))


def strings_are_not_passed(patch):
    """A literal for ``const char*``."""

    def refuse(text):
        raise CABIError("strings must be constants")

    patch.setattr(calls, "_make_text", refuse)


def enumerators_are_numbers(patch):
    """What C++ returned is not an enumerator when it goes in again."""
    patch.setattr(results, "make_enumerator_type", lambda name, underlying: underlying)


def named_tuples_have_members_of_their_names(patch):
    """C++ that makes a tuple of members ``_0`` and so on does not compile."""
    original = calls._describe_element

    def describe(numba_type, records):
        found = original(numba_type, records)
        if not isinstance(numba_type, types.BaseNamedTuple) or hasattr(numba_type, "of_record"):
            return found
        return found._replace(declarations=tuple(re.sub(r"\b_(\d)\b", r"p\1", each) for each in found.declarations))

    patch.setattr(calls, "_describe_element", describe)


def new_values_are_lost(patch):
    """C++ writes to a copy of the element that is passed for ``int&``."""
    patch.setattr(places.PlacedCall, "_place", lambda self, origin, arg: self._make_slot(arg))


def references_are_refused_temporaries(patch):
    """Where C++ takes a temporary value too, it writes to one."""
    patch.setattr(call_text, "_referred", lambda call: f"enum {{ {call_text._PREFIX}_referred = 0 }};")


def members_are_named_in_another_order(patch):
    """``p.a`` is ``p.b``."""
    original = records._make_class
    patch.setattr(records, "_make_class", lambda names, cxx_name: original(names[::-1], cxx_name))


def structs_are_returned_with_their_layout(patch):
    """A packed struct, or one that is aligned to more, as a struct of C that has neither."""
    patch.setattr(results.CxxExtern, "_describe_result", extern.Extern._describe_result)


def packed_structs_are_copied(patch):
    """By value, where CUDA's compiler loses bytes of them."""
    patch.setattr(call_text, "_copied", lambda call: f"enum {{ {call_text._PREFIX}_copied = 0 }};")


# What is taken back, and the kind of draws of which a batch then fails.
FIXES = {
    integers_are_addresses: "of C",
    pointers_point_to_anything: "of C",
    parts_of_structs_are_not_compared: "of C",
    strided_arrays_are_pointers: "of C",
    strings_are_not_passed: "by name",
    enumerators_are_numbers: "by name",
    named_tuples_have_members_of_their_names: "with libcu++",
    new_values_are_lost: "by name",
    references_are_refused_temporaries: "by name",
    members_are_named_in_another_order: "by name",
    structs_are_returned_with_their_layout: "by name",
    packed_structs_are_copied: "by name",
}


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compare with")
@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.__name__)
def test_without_the_fix_a_batch_fails(fix, monkeypatch, tmp_path):
    fix(monkeypatch)
    with pytest.raises((AssertionError, CABIError, NumbaError)):
        for seed in range(7):  # only the last has a packed struct that must not be passed by value
            test_differential.check_batch(FIXES[fix], seed, tmp_path)

# SPDX-License-Identifier: BSD-2-Clause
"""Short names of objects, which still tell them apart."""

from numba.cuda.autolink.function_code.object_names import only_different, short_names, split_arguments

LONG = "precision=float32, direction='forward, unscaled', execution='block'"


def names(*texts, fallback="FFT"):
    return list(short_names({number: (fallback, text) for number, text in enumerate(texts)}).values())


def test_a_short_repr_is_the_name():
    assert names("Power(3)", "Power(4)") == ["Power(3)", "Power(4)"]


def test_arguments_that_differ_are_never_left_out():
    found = names(f"FFT(size=128, {LONG})", f"FFT(size=256, {LONG})", f"FFT(size=256, {LONG}, sm=900)")
    assert found == ["FFT(size=128, …)", "FFT(size=256, …)", "FFT(size=256, …, sm=900)"]


def test_an_object_alone_has_a_short_name():
    assert names(f"FFT(size=128, {LONG})") == ["FFT(…)"]


def test_an_item_of_a_library_has_its_own_name_unless_another_one_has_it_too():
    cmath, other = (
        f"cxx({source * 2!r}, namespace='cuda::std')" for source in ("#include <cuda/std/cmath>", "#include")
    )
    assert names(f"{cmath}['hypot']", f"{cmath}['sin']", "Power(3)") == ["hypot", "sin", "Power(3)"]
    assert names(f"{cmath}['sin']", f"{other}['sin']") == [f"{cmath}['sin']", f"{other}['sin']"]
    assert names("cxx('a')['sin']") == ["sin"]


def test_objects_whose_repr_tells_nothing_are_numbered():
    assert names("<FFT object at 0x1>", "<FFT object at 0x2>") == ["FFT #1", "FFT #2"]
    assert names("<FFT object at 0x1>") == ["FFT"]
    assert names("Same()", "Same()") == ["Same() #1", "Same() #2"]


def test_arguments_that_all_names_share_are_left_out():
    assert only_different(["f(n=1, m=0)", "f(n=2, m=0)"]) == ["f(n=1)", "f(n=2)"]
    assert only_different(["f(1)", "f(1, 2)"]) == ["f(1)", "f(1, 2)"]
    assert only_different(["load.cu", "store.cu"]) == ["load.cu", "store.cu"]


def test_arguments_are_split_outside_of_brackets_and_strings():
    assert split_arguments("1, (2, 3), a=[4, {5: 6, 7: 8}], b='x, \\'y', c=\"(\"") == [
        "1",
        "(2, 3)",
        "a=[4, {5: 6, 7: 8}]",
        "b='x, \\'y'",
        'c="("',
    ]

# SPDX-License-Identifier: BSD-2-Clause
"""Sources that may share a translation unit are compiled as one."""

from __future__ import annotations

import pytest
from autolink_support import build, symbols
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError, LinkPlan
from numba.cuda.cudadrv.external_code.platform.target import Target


class Term(autolink.DeviceCallable):
    """x + n in C++, as one of the sources of a unit."""

    def __init__(self, n, body="return x + {n};", **options):
        self.n = n
        self.body = body.format(n=n)
        self.options = options

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"term_{self.n}", returns=x)

    def __numba_cuda_link__(self, x):
        code = f'#include "shared.h"\nextern "C" __device__ int term_{self.n}(int x) {{\n    {self.body}\n}}'
        return autolink.CUDASource(code, **{"name": f"term_{self.n}.cu", **self.options})


def kernel_of(terms):
    """A kernel that calls all *terms*."""
    calls = "\n".join(f"    x = term{i}(x)" for i in range(len(terms)))
    scope = {f"term{i}": term for i, term in enumerate(terms)}
    exec(f"def kernel(data):\n    x = data[0]\n{calls}\n    data[0] = x", scope)
    return cuda.jit(scope["kernel"], lto=False)


@pytest.fixture
def compiles(monkeypatch):
    """The sources that NVRTC is given."""
    seen = []
    original = nvrtc_processes.run_in_child

    def run(child, unit, code, *others):
        seen.append(code)
        return original(child, unit, code, *others)

    monkeypatch.setattr(nvrtc_processes, "run_in_child", run)
    return seen


@pytest.fixture
def options(tmp_path):
    (tmp_path / "shared.h").write_text(f"#define HERE {str(tmp_path)!r}\n")  # another text in each test
    return {"include_paths": [tmp_path]}


def test_a_hundred_sources_of_a_unit_take_one_compile(compiles, options):
    linked = build(kernel_of([Term(n, unit="terms", **options) for n in range(100)]))
    assert len(compiles) == 1
    assert {f"term_{n}" for n in range(100)} <= symbols(linked.code)
    assert len(linked.inputs) == 100


@pytest.mark.parametrize(("unit", "expected"), [({"unit": "terms"}, 1), ({}, 20)], ids=["one unit", "a unit each"])
def test_a_unit_is_one_compile_whatever_the_number_of_its_sources(compiles, options, unit, expected):
    target = autolink.Target((9, 0), lto=True)

    terms = [Term(n, **options, **unit) for n in range(20)]
    sources = [("", from_item(term.__numba_cuda_link__(None))) for term in terms]
    for planned in LinkPlan.of("kernel", target, sources).units:
        compile_unit(TranslationUnit.of(planned.input, target))
    assert len(compiles) == expected


def test_what_is_compiled_together_has_the_same_options(compiles, options):
    terms = [
        Term(1, unit="a", **options),
        Term(2, unit="b", **options),
        Term(3, unit="a", **options),
        Term(4, unit="a", defines={"MORE": 1}, **options),
        Term(5, **options),
        Term(6, **options),
    ]
    build(kernel_of(terms))
    together = [[n for n in range(1, 7) if f"term_{n}(int" in code] for code in compiles]
    assert sorted(together) == [[1, 3], [2], [4], [5], [6]]


def test_the_same_source_is_in_a_unit_once(compiles, options):
    build(kernel_of([Term(1, unit="a", **options), Term(2, unit="a", **options), Term(1, unit="a", **options)]))
    (code,) = compiles
    assert code.count("int term_1(int x)") == 1


def test_messages_name_the_source_and_its_line(options):
    terms = [Term(n, unit="terms", **options) for n in range(3)]
    terms.append(Term(3, body="return undeclared;", unit="terms", **options))
    with pytest.raises(LinkError, match=r'term_3\.cu\(3\): error: identifier "undeclared" is undefined') as error:
        build(kernel_of(terms))
    assert "terms.cu" in str(error.value)
    assert f"{__file__}" in str(error.value) or "called at" in str(error.value)


def test_sources_of_one_name_are_told_apart(options):
    terms = [Term(n, unit="terms", name="same.cu", **options) for n in range(2)]
    bad = Term(2, body="return undeclared;", unit="terms", name="same.cu", **options)
    with pytest.raises(LinkError, match=r"same\.cu \(3\)\(3\): error"):
        build(kernel_of([*terms, bad]))


def test_one_source_of_a_unit_is_compiled_as_it_is(compiles, options):
    build(kernel_of([Term(1, unit="terms", **options)]))
    assert compiles[0].startswith('#include "shared.h"\n')


def test_the_unit_of_a_source_has_a_name():
    with pytest.raises(TypeError, match="name of a translation unit as a str, got int"):
        autolink.CUDASource("", unit=1)


def test_equal_sources_of_two_names_are_one_unless_the_name_is_in_the_code():
    for text, expected in (
        ('extern "C" __device__ void f() {}', 1),
        ("__device__ const char *f() { return __FILE__; }", 2),
    ):
        sources = [("call", from_item(autolink.CUDASource(text, name=name))) for name in ("a.cu", "b.cu", "a.cu")]
        assert len(LinkPlan.of("kernel", Target((9, 0)), sources).inputs) == expected

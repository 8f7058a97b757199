# SPDX-License-Identifier: BSD-2-Clause
"""Functions of real libraries resolve to the type that C++ gives them, which a separate compile prints."""

from __future__ import annotations

import dataclasses
import re

import pytest
from autolink_support import CC, build, symbols
from cuda.core import Program, ProgramOptions
from cxx_corpus import CORPORA, Corpus
from numba.cuda import autolink, types
from numba.cuda.autolink.c_abi.c_types import cxx_type, memory_layout
from numba.cuda.cudadrv.external_code.compile.translation_unit import toolkit_include_paths

# What does not resolve, and why.
UNRESOLVED = {
    "boxed": "returns a class with a constructor, which only C++ knows",
}
_LETTERS = {
    "v": types.none,
    "b": types.boolean,
    "a": types.int8,
    "c": types.int8,
    "h": types.uint8,
    "s": types.int16,
    "t": types.uint16,
    "i": types.int32,
    "j": types.uint32,
    "l": types.int64,
    "m": types.uint64,
    "x": types.int64,
    "y": types.uint64,
    "f": types.float32,
    "d": types.float64,
}


def calls_of(corpus: Corpus):
    return [(name, argtypes) for name, calls in corpus.functions for argtypes in calls]


def argument(numba_type) -> str:
    """An expression of the C++ type that stands for *numba_type*."""
    if isinstance(numba_type, types.Array):
        return f"made<{argument_type(numba_type.dtype)}*>()"
    return f"made<{argument_type(numba_type)}&>()"


def argument_type(numba_type) -> str:
    if isinstance(numba_type, types.Complex):
        return f"cuda::std::complex<{cxx_type(numba_type.underlying_float)}>"
    return cxx_type(numba_type)


def printed(corpus: Corpus, calls) -> list[tuple[str, int]]:
    """The mangled name and the size of the type of each call, from a compile that knows nothing of this project."""
    lines = [corpus.source, "#include <cuda_fp16.h>\n#include <cuda_bf16.h>"]
    lines.append("template <class T> __device__ T&& made(); template <class T> struct bare { using type = T; };")
    lines.append(
        "template <class T> struct bare<T&> { using type = T; }; template <class T> struct bare<T&&> : bare<T&> {};"
    )
    lines.append(
        "template <class T> struct bare<const T> : bare<T> {}; template <class T> struct bare<const T&> : bare<T> {};"
    )
    lines.append(
        "template <class T> struct size { enum { is = sizeof(T) }; };"
        "template <> struct size<void> { enum { is = 0 }; };"
    )
    lines.append("template <class T, int S> extern __device__ char told;")
    lines.append(f"namespace {corpus.namespace} {{" if corpus.namespace else "namespace corpus_space {")
    for number, (name, argtypes) in enumerate(calls):
        if name.startswith("["):
            lines.append(f"inline __device__ auto made_{number}() {{ return {name}; }}")
            name = f"made_{number}()"
        arguments = ", ".join(map(argument, argtypes))
        lines.append(f"using told_{number} = typename bare<decltype({name}({arguments}))>::type;")
    lines.append("}")
    space = corpus.namespace or "corpus_space"
    names = [f"&told<{space}::told_{n}, size<{space}::told_{n}>::is>" for n in range(len(calls))]
    options = ProgramOptions(
        name="corpus.cu",
        arch="sm_90",
        relocatable_device_code=True,
        link_time_optimization=True,
        device_as_default_execution_space=True,
        include_path=list(toolkit_include_paths()),
    )
    made = Program("\n".join(lines), "c++", options=options).compile("ltoir", name_expressions=tuple(names))
    found = []
    for name in names:
        lowered = made.symbol_mapping[name]
        lowered = lowered.decode() if isinstance(lowered, bytes) else lowered
        mangled, size = re.fullmatch(r"_Z4toldI(.+)Li(\d+)EE", lowered).groups()
        found.append((mangled, int(size)))
    return found


def agrees(numba_type, mangled: str, size: int) -> bool:
    if mangled in _LETTERS:
        return numba_type == _LETTERS[mangled]
    if mangled.startswith("P"):
        pointee = _LETTERS.get(mangled.removeprefix("P").removeprefix("K"))
        return numba_type == (types.voidptr if pointee in (None, types.none) else types.CPointer(pointee))
    named = {"6__half": types.float16, "13__nv_bfloat16": types.bfloat16}
    if mangled in named:
        return numba_type == named[mangled]
    for part, numba_complex in (("f", types.complex64), ("d", types.complex128)):
        if re.search(rf"7complexI{part}EE$", mangled):
            return numba_type == numba_complex
    return numba_type != types.none and memory_layout(numba_type).size == size


def resolved(lib, name, argtypes):
    function = lib.expr(name) if name.startswith("[") else lib[name]
    return function.signature(*argtypes, cc=CC).return_type


def check(corpus: Corpus) -> None:
    calls = calls_of(corpus)
    lib = autolink.cxx(corpus.source, namespace=corpus.namespace)
    declared = [(lib.expr(n) if n.startswith("[") else n, a) for n, a in calls if n not in UNRESOLVED]
    lib.declare(declared, cc=CC)
    wrong = []
    for (name, argtypes), (mangled, size) in zip(calls, printed(corpus, calls), strict=True):
        if name in UNRESOLVED:
            with pytest.raises(autolink.CxxError):
                resolved(lib, name, argtypes)
            continue
        found = resolved(lib, name, argtypes)
        if not agrees(found, mangled, size):
            wrong.append((name, argtypes, found, mangled, size))
    assert wrong == []


@pytest.mark.parametrize("corpus", [each for each in CORPORA if each.is_quick], ids=lambda each: each.name)
def test_each_function_has_the_type_that_cxx_prints(corpus, thorough):
    """Of many functions every third in the short form."""
    step = 1 if thorough or len(corpus.functions) < 100 else 3
    check(dataclasses.replace(corpus, functions=corpus.functions[::step]))


@pytest.mark.thorough
@pytest.mark.parametrize("corpus", [each for each in CORPORA if not each.is_quick], ids=lambda each: each.name)
def test_each_function_of_a_large_library_has_the_type_that_cxx_prints(corpus):
    check(corpus)


@pytest.mark.thorough
@pytest.mark.parametrize("corpus", [each for each in CORPORA if "half" not in each.name], ids=lambda each: each.name)
def test_each_call_is_inlined(corpus):
    """Those with numbers as results, all in one kernel."""
    lib = autolink.cxx(corpus.source, namespace=corpus.namespace)
    calls = [(n, a) for n, a in calls_of(corpus) if n not in UNRESOLVED and not {types.float16, types.bfloat16} & {*a}]
    functions = [(lib.expr(name) if name.startswith("[") else lib[name], argtypes) for name, argtypes in calls]
    lib.declare(functions, cc=CC)
    names, lines, parameters = {}, [], {}
    for number, (function, argtypes) in enumerate(functions):
        returns = function.signature(*argtypes, cc=CC).return_type
        if isinstance(returns, (types.Integer, types.Float, types.Boolean)) and returns != types.float16:
            for each in argtypes:
                parameters.setdefault(each, f"p{len(parameters)}")
            given = [parameters[t] if isinstance(t, types.Array) else f"{parameters[t]}[0]" for t in argtypes]
            names[f"f{number}"] = function
            lines.append(f"    r[{number}] = f{number}({', '.join(given)})")
    exec(f"def kernel(r, {', '.join(parameters.values())}):\n" + "\n".join(lines), names)
    arrays = [each if isinstance(each, types.Array) else each[::1] for each in parameters]
    code = build(names["kernel"], (types.float64[::1], *arrays)).code
    assert lines and [name for name in symbols(code) if name.startswith("cxx_")] == []


def test_the_corpus_is_large_and_nearly_all_of_it_resolves():
    functions = {(corpus.name, name) for corpus in CORPORA for name, _ in corpus.functions}
    assert len(functions) >= 200 and len(CORPORA) >= 7
    assert len([name for _, name in functions if name in UNRESOLVED]) / len(functions) <= 0.05

# SPDX-License-Identifier: BSD-2-Clause
"""Calls that are drawn at random compute what a compiler of the host makes of them, or are refused with a true
reason."""

from __future__ import annotations

import ctypes
import enum
import random
import shutil
import subprocess
import tempfile
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from cxx_draws import ELEMENTS, LENGTH, Argument, Batch, Draw, Type
from front_ends import FrontEndUnderTest, front_end_named
from numba import cuda, from_dtype
from numba.cuda import autolink, types
from numba.cuda.autolink.c_abi.c_types import CABIError
from numba.cuda.autolink.c_abi.extern import prototype
from numba.cuda.autolink.c_abi.record_values import result_type
from numba.cuda.autolink.cxx_by_name import results
from numba.cuda.autolink.cxx_by_name.call_rewrites import name_results
from numba.cuda.autolink.cxx_by_name.questions import resolve_for
from numba.cuda.autolink.cxx_by_name.results import WrittenArgumentError
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.prototype_assertions import (
    PrototypeError,
    raise_understood,
    with_assertions,
)
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
from numba.cuda.descriptor import cuda_target
from numba.cuda.typing.typeof import Purpose, typeof

CC = "9.0"


def draw_arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return an array of each dtype: of all integers, and of real numbers that every integer type has."""
    arrays = {}
    for dtype in ELEMENTS:
        if dtype[0] in "iu":
            info = np.iinfo(dtype)
            arrays[dtype] = rng.integers(info.min, info.max, LENGTH, dtype, endpoint=True)
        elif dtype == "b1":
            arrays[dtype] = rng.integers(0, 2, LENGTH).astype(bool)
        else:
            parts = rng.integers(0, 400, (2, LENGTH)) / 4
            arrays[dtype] = (parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)
    return arrays


def make_array(dtype: np.dtype) -> np.ndarray:
    """Return an array in memory that is aligned to more than any struct."""
    memory = np.zeros(LENGTH * dtype.itemsize + 128, "u1")
    start = -memory.ctypes.data % 128
    return memory[start : start + LENGTH * dtype.itemsize].view(dtype)


class CFunction(autolink.DeviceCallable):
    """A function of C that is drawn."""

    def __init__(self, symbol: str, returns, ways, text: str):
        self.extern = autolink.Extern(symbol, returns=returns, args=ways)
        self.text = text

    def __numba_cuda_call__(self, *args):
        return self.extern

    def __numba_cuda_link__(self, *args):
        return autolink.CUDASource(self.text, options={"device_as_default_execution_space": True})


class Host:
    """The calls of a batch as a compiler of the host makes them."""

    def __init__(self, batch: Batch, folder: Path):
        folder = Path(tempfile.mkdtemp(dir=folder))  # a library is loaded once from a path
        source, library = folder / "calls.cpp", folder / "calls.so"
        source.write_text(batch.write_host())
        command = [
            "g++",
            "-std=c++20",
            "-w",
            "-Wno-psabi",
            "-shared",
            "-fPIC",
            "-fno-strict-aliasing",
            "-o",
            library,
            source,
        ]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(library))

    def sizes(self, count: int) -> list[int]:
        return list((ctypes.c_ulong * count).in_dll(self.library, "sizes"))

    def call(self, name: str, arrays: list[np.ndarray], *others: np.ndarray) -> None:
        addresses = (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays))
        getattr(self.library, name)(addresses, *(ctypes.c_void_p(each.ctypes.data) for each in others))


@dataclass
class Trial:
    """A batch as the host and the kernel make its calls."""

    batch: Batch
    folder: Path
    front_end: FrontEndUnderTest

    def __post_init__(self) -> None:
        self.library = autolink.cxx(self.batch.text)
        self.host = Host(self.batch, self.folder)
        self.structs = [each for each in self.batch.types if each.is_record]
        self.arrays = draw_arrays(np.random.default_rng(self.batch.rng.randrange(2**32)))
        for struct, size in zip(self.structs, self.host.sizes(len(self.structs)), strict=True):
            self.arrays[f"{struct.cxx}s"] = make_array(self.make_dtype(struct, size))
        self.host.call("prepare", list(self.arrays.values()))
        enums = [each for each in self.batch.types if each.kind == "enum"]
        self.names = {
            **self.arrays, "np": np, "squared": self.library.squared, "doubled": self.library["Doubled{}"],
            **{f"N{n}": namedtuple(f"N{n}", [f"p{i}" for i in range(n)]) for n in range(1, 4)},
            **{each.cxx: enum.IntEnum(each.cxx, {"V0": 0, "V1": 1}) for each in enums},
            **{f"keep_{each.cxx}": self.library[f"keep_{each.cxx}"] for each in enums},
            **{f"give_{each.cxx}": self.library[f"give_{each.cxx}"] for each in self.batch.types},
            **{each.name: self.make_function(each) for each in self.batch.draws},
        }  # fmt: skip

    def make_dtype(self, struct, size: int) -> np.dtype:
        """Return the dtype of a struct, which C++ tells; of bytes, where it has bit-fields and so none."""
        if struct.has_bits:
            with pytest.raises(autolink.CxxError, match="bit-field"):
                self.library.record(struct.cxx, cc=CC)
            return np.dtype([("bytes", "u1", (size,))])
        found = self.library.record(struct.cxx, cc=CC)
        assert found.itemsize == size, struct.declare()
        return found

    def make_function(self, draw: Draw):
        if not draw.parameters:
            return self.library[draw.name]
        ways = {}
        for number, way in enumerate(draw.ways):
            kind, _, dtype = way.partition(" ")
            target = from_dtype(np.dtype(dtype)) if dtype else None
            found = {"by_value": autolink.by_value, "cast": target}.get(kind)
            ways[f"args_{number}"] = autolink.by_reference(target) if kind == "by_reference" else found
        return CFunction(draw.name, self.find_result(draw.returns), ways, self.batch.text)

    def find_result(self, returns: Type) -> types.Type | None:
        if returns.kind == "struct":
            return from_dtype(self.arrays[f"{returns.cxx}s"].dtype)
        if returns.kind == "tuple":
            return types.BaseTuple.from_types([self.find_result(each) for each in returns.elements])
        return None if returns.kind == "void" else from_dtype(np.dtype(returns.dtype))

    def find_disagreements(self) -> dict[str, str]:
        """Return why calls of functions of C are refused, by the names of the functions: all of one compilation."""
        called, refused = [], {}
        for draw in self.batch.draws:
            named = {f"args_{n}": each for n, each in enumerate(self.find_types(draw))}
            try:
                found = prototype(self.names[draw.name].__numba_cuda_call__(), named, cuda_target.typing_context)
                called.append(CalledFunction(draw.name, found.c_prototype))
            except CABIError as error:
                refused[draw.name] = str(error)
        source = from_item(self.names["g0"].__numba_cuda_link__())
        unit = TranslationUnit.of(source, autolink.Target((9, 0), lto=True))
        try:
            compile_unit(with_assertions(unit, called))
        except CompileError as error:
            with pytest.raises(PrototypeError) as caught:
                raise_understood(error, "drawn", called)
            refused |= {each.called.symbol: f"{each.declaration} is not {each.called}" for each in caught.value.wrong}
        return refused

    def find_types(self, draw: Draw) -> list[types.Type]:
        return [self.find_type(each) for each in draw.arguments]

    def find_type(self, argument: Argument) -> types.Type:
        if argument.form == "returned":
            return results.make_enumerator_type(argument.type.cxx, from_dtype(np.dtype(argument.type.dtype)))
        if argument.form == "given":
            function = name_results(self.library[argument.python.removesuffix("()")])
            return result_type(function.signature(cc=CC).return_type)
        value = eval(argument.python, self.names)
        return types.literal(value) if isinstance(value, str) else typeof(value, Purpose.constant)

    def find_refusals(self) -> dict[str, str]:
        """Return why calls are refused, by the names of the functions."""
        if self.batch.draws[0].parameters:
            return self.find_disagreements()
        calls, refused = {}, {}
        for draw in self.batch.draws:
            try:
                calls[draw.name] = self.names[draw.name]._call(self.find_types(draw))
            except CABIError as error:
                refused[draw.name] = str(error)
        with resolve_for(CC) as target:
            of_cxx = self.names["g0"]._source.resolver.find_refusals(list(calls.values()), target)
        for name, call in calls.items():
            refusal = of_cxx.get(call.symbol)
            draw = next(each for each in self.batch.draws if each.name == name)
            written = refusal.written if isinstance(refusal, WrittenArgumentError) else ()
            # A kernel passes variables and elements of arrays in another way.
            if refusal and not (written and all(draw.arguments[n].form == "element" for n in written)):
                refused[name] = str(refusal)
        return refused

    def check(self) -> int:
        """Compare all calls. Return how many were made."""
        expected = {name: make_array(each.dtype) for name, each in self.arrays.items()}
        for name, each in self.arrays.items():
            expected[name][:] = each
        made, results = np.zeros(len(self.batch.draws), bool), np.zeros(64 * len(self.batch.draws), np.uint64)
        refused = self.find_refusals()
        self.host.call("run", list(expected.values()), results, made)
        wrong = []
        for draw, is_valid in zip(self.batch.draws, made, strict=True):
            reason = refused.get(draw.name)
            if is_valid and reason and not any(each in reason for each in draw.excuses):
                wrong.append(f"refused: {draw}\n    {reason}")
            if reason is None and draw.lost:
                wrong.append(f"made, but CUDA's compiler loses bytes: {draw}")
            if not is_valid and reason is None:
                wrong.append(f"made, but C++ refuses it: {draw}")
        assert not wrong, "\n".join(wrong)
        calls = [draw for draw in self.batch.draws if draw.name not in refused]
        self.host.call("run", list(expected.values()), results, np.array([each in calls for each in self.batch.draws]))
        integers, reals = self.launch(calls)
        start = 0
        for draw in calls:
            leaves = list((draw.returns or draw.result).list_leaves("r"))
            stored = results[start : start + len(leaves)]
            for n, (path, dtype) in enumerate(leaves):
                value = stored[n : n + 1].view(dtype)[0]
                if dtype[0] in "iub" and int(integers[start + n]) != int(
                    np.int64(np.uint64(int(value) & 2**64 - 1).view(np.int64))
                ):
                    wrong.append(f"{path} is {integers[start + n]}, not {value}: {draw}")
                elif reals[start + n] != np.float64(value):
                    wrong.append(f"{path} is {reals[start + n]}, not {value}, a {dtype}: {draw}")
            start += len(stored)
        for name, array in self.arrays.items():
            if (differ := np.flatnonzero(array.view("u1") != expected[name].view("u1"))).size:
                wrong.append(f"{name} differs in bytes {differ[:9]}, from element {differ[0] // array.itemsize}")
        assert not wrong, "\n".join(wrong)
        return len(calls)

    def launch(self, calls: list[Draw]) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers in the results of *calls*, as integers and as real numbers."""
        lines, number = [], 0
        for draw in calls:
            result = f"r_{draw.name}"  # a variable has one type
            of_call = draw.returns or draw.result
            leaves = list(of_call.list_leaves(result, draw.named and not of_call.has_bits))
            lines.append(f"{result} = {draw.python}" if leaves else draw.python)
            for path, dtype in leaves:
                lines += [f"integers[{number}] = {path}"] * (dtype[0] in "iub") + [f"reals[{number}] = {path}"]
                number += 1
        integers, reals = np.zeros(number + 1, np.int64), np.zeros(number + 1)
        parameters = ", ".join([*self.arrays, "integers", "reals"])
        code = "\n    ".join([f"def kernel({parameters}):", *lines])
        exec(compile(code, "drawn", "exec"), self.names)
        arrays = [*self.arrays.values(), integers, reals]
        kernel = self.names["kernel"]
        compiled = self.front_end.cuda.jit(kernel)
        if cuda.is_available():
            compiled[1, 1](*arrays)
        else:
            linked = autolink.build(compiled, tuple(typeof(each) for each in arrays), cc=CC)
            linked.emulate[1, 1](*arrays)
        return integers, reals


# Of 500 draws in all: those by name, those with types of libcu++, and those of functions of C.
DRAWN = {"by name": (150, 50), "with libcu++": (50, 50), "of C": (300, 100)}


def check_batch(kind: str, seed: int, folder: Path, most: int = 100, front_end: str = "numba-cuda") -> int:
    """Draw the calls of one kernel of a *front_end*, *most* or fewer, and compare them. Return how many it makes: the
    others are refused."""
    with_std, of_c = kind == "with libcu++", kind == "of C"
    batch = Batch.draw(random.Random(f"{kind} {seed}"), min(most, DRAWN[kind][1]), of_c=of_c, with_std=with_std)
    return Trial(batch, folder, front_end_named(front_end)).check()


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compare with")
# .ci/run runs those with libcu++ too, in its step of random programs.
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.thorough] if "libcu" in kind else []) for kind in DRAWN]
)
def test_calls_compute_what_the_host_computes(kind, request, thorough, tmp_path):
    """``--draws`` calls, on the GPU if there is one."""
    share, of_kernel = DRAWN[kind]
    count = (request.config.getoption("--draws") or (20_000 if thorough else 150)) * share // 500
    made = sum(check_batch(kind, seed, tmp_path, count) for seed in range(-(-count // of_kernel)))
    assert made > count / 4


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compare with")
@pytest.mark.parametrize("kind", DRAWN)
def test_so_do_those_of_numba_cuda_mlir(kind, tmp_path):
    assert check_batch(kind, 0, tmp_path, 50, "numba-cuda-mlir") > 10

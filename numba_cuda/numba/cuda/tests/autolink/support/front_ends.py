# SPDX-License-Identifier: BSD-2-Clause
"""The front ends that tests run against, and fixtures of them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from typing import Any

import pytest

MODULES = {
    "numba-cuda": ("numba.cuda", "numba.cuda.types", "numba_cuda.activation"),
    "numba-cuda-mlir": ("numba_cuda_mlir.cuda", "numba_cuda_mlir.types", "mlir.activation"),
}


@dataclass(frozen=True)
class FrontEndUnderTest:
    """A front end: its ``cuda``, its Numba types, and the module with its seams."""

    name: str
    cuda: Any
    types: Any
    seams: Any

    def needs(self, oldest: str, feature: str) -> None:
        """Skip the test where numba-cuda-mlir is older than *oldest*, a version as ``0.6``, for want of a *feature*."""
        if self.name == "numba-cuda-mlir":
            installed = importlib.metadata.version(self.name)
            if tuple(map(int, installed.split(".")[:2])) < tuple(map(int, oldest.split("."))):
                pytest.skip(f"numba-cuda-mlir {installed} has no {feature}")


def front_end_named(name: str) -> FrontEndUnderTest:
    if importlib.util.find_spec(MODULES[name][0].partition(".")[0]) is None:
        pytest.skip(f"{name} is not installed (the extras mlir-cu12 and mlir-cu13 bring numba-cuda-mlir)")
    cuda, types, seams = MODULES[name]
    found = importlib.import_module(cuda), importlib.import_module(types)
    if name == "numba-cuda-mlir":
        importlib.import_module("numba_cuda_mlir.mlir_compiler")  # which activates
    return FrontEndUnderTest(name, *found, importlib.import_module(f"numba.cuda.autolink.frontends.{seams}"))


@pytest.fixture(params=list(MODULES))
def front_end(request: pytest.FixtureRequest) -> FrontEndUnderTest:
    """Each front end in turn."""
    return front_end_named(request.param)


@pytest.fixture
def cuda(front_end: FrontEndUnderTest) -> Any:
    """Its module ``cuda``."""
    return front_end.cuda


@pytest.fixture
def mlir() -> FrontEndUnderTest:
    """numba-cuda-mlir alone."""
    return front_end_named("numba-cuda-mlir")

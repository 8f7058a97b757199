# SPDX-License-Identifier: BSD-2-Clause
"""The public names of `numba.cuda.autolink`, and that getting at one imports no more than it needs."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import pydoc
import re
import subprocess
import sys
import typing
from importlib.util import find_spec

import pytest
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv import external_code

import numba_cuda_autolink

# Errors that users do not meet: caught inside, of the command line, or turned into a public one. An AskedAgainError is
# a HookError, an ArgumentError a TypeError of `testing.ask`.
INTERNAL = {
    "ArgumentError",
    "AskedAgainError",
    "ChildEndedError",
    "ChildError",
    "ChildStartError",
    "CommandError",
    "DamagedEntryError",
    "DeferredCallError",
    "DefinedTwiceError",
    "EntryFileError",
    "FailedError",
    "FailedRunError",
    "FormatError",
    "GuessedFunction",
    "JobListError",
    "KernelChangedError",
    "LinkFailedError",
    "PrototypeError",
    "RemoteSettingsError",
    "RequestError",
    "SkippedError",
    "SourceError",
    "TrialError",
    "TypesDifferError",
    "UnknownFormError",
    "UnknownTextError",
    "UnknownValueError",
    "UntrustedEntryError",
    "WrittenArgumentError",
}


@pytest.mark.parametrize("name", [*autolink.__all__, "__version__"])
def test_every_public_name_is_there_and_listed(name):
    assert getattr(autolink, name) == getattr(autolink, name)
    assert name in dir(autolink)


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match=r"module 'numba\.cuda\.autolink' has no attribute 'LinkEror'") as error:
        _ = autolink.LinkEror
    assert (error.value.name, error.value.obj) == ("LinkEror", autolink)  # of which Python makes a suggestion
    with pytest.raises(AttributeError, match="no attribute 'version'"):
        _ = numba_cuda_autolink.version


def test_the_version_is_that_of_the_distribution():
    expected = importlib.metadata.version("numba-cuda-autolink")
    assert (autolink.__version__, numba_cuda_autolink.__version__) == (expected, expected)


# Importing them imports numba-cuda-mlir.
OF_MLIR = f"{autolink.__name__}.frontends.mlir."


def test_every_error_and_warning_that_a_user_may_catch_is_public():
    missing = []
    for package in autolink, external_code:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            is_of_mlir = found.name.startswith(OF_MLIR)
            if found.name.endswith(("__main__", "_child")) or (is_of_mlir and not find_spec("numba_cuda_mlir")):
                continue
            module = importlib.import_module(found.name)
            missing += [
                f"{name} of {found.name}"
                for name, value in vars(module).items()
                if inspect.isclass(value)
                and issubclass(value, BaseException)
                and value.__module__ in (found.name, autolink.__name__)
                and not name.startswith("_")
                and name not in INTERNAL
                and getattr(autolink, name, None) is not value
            ]
    assert missing == []


def test_errors_are_what_they_were_before_they_were_public():
    assert issubclass(autolink.LinkError, cuda.cudadrv.driver.LinkerError)
    assert issubclass(autolink.CallError, cuda.core.errors.TypingError)
    assert issubclass(autolink.CABIError, TypeError) and issubclass(autolink.PrebuiltError, ValueError)
    assert issubclass(autolink.LinkInputError, ValueError) and issubclass(autolink.CacheWarning, RuntimeWarning)
    for error in autolink.LinkError, autolink.CallError, autolink.CxxError:
        assert error.__module__ == autolink.__name__  # what a traceback names
    assert autolink.NotLinkableError is autolink.testing.NotLinkableError
    assert autolink.CacheWarning is autolink.cache.CacheWarning


class WithHooks:
    def __numba_cuda_link__(self, x): ...

    def __numba_cuda_link_key__(self, x): ...


class TestProtocols:
    def test_an_object_has_a_hook_without_knowing_the_protocol(self):
        assert isinstance(WithHooks(), autolink.SupportsLink)
        assert isinstance(WithHooks(), autolink.SupportsLinkKey)
        assert not isinstance(WithHooks(), autolink.SupportsCall)
        assert not isinstance(cuda.declare_device("plain", "int32(int32)"), autolink.SupportsLink)

    def test_device_callables_support_calls(self):
        assert isinstance(autolink.DeviceCallable(), autolink.SupportsCall)

    def test_a_hook_may_be_an_attribute(self):
        function = cuda.declare_device("hooked", "int32(int32)")
        function.__numba_cuda_link__ = lambda x: None
        assert isinstance(function, autolink.SupportsLink)

    @pytest.mark.parametrize("name", ["SupportsLink", "SupportsLinkKey", "SupportsCall"])
    def test_each_hook_is_documented(self, name):
        protocol = getattr(autolink, name)
        (hook,) = [value for attribute, value in vars(protocol).items() if attribute.startswith("__numba_cuda_")]
        assert "Return" in inspect.getdoc(hook) and inspect.getdoc(protocol)

    def test_link_items_are_what_the_linker_takes(self):
        accepted = {getattr(each, "__forward_arg__", each) for each in typing.get_args(autolink.LinkItem)}
        assert accepted == {"LinkableCode", "ObjectCode", "DeviceFunction", str, "os.PathLike[str]"}


def facts(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, cwd=os.sep
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_imports_no_public_module():
    script = """
import sys
from numba.cuda import autolink
dir(autolink), autolink.__all__
print(sorted({module for module in autolink._WHERE.values() if f"numba.cuda.{module}" in sys.modules}))
"""
    imported = facts(script)
    assert imported == str(
        [
            "autolink.compilation.context",
            "autolink.frontend_api.jit_options",
            "autolink.frontends.numba_cuda.activation",
            "cudadrv.external_code.platform.target",
        ]
    )


def named(obj) -> list[str]:
    return [name for name in dir(obj) if not name.startswith("__")]


def with_those_of_the_class(obj) -> set[str]:
    """Return what IPython completes: what the class has, too."""
    return {name for name in (*dir(obj), *dir(type(obj))) if not name.startswith("_")}


def test_completion_has_the_names_for_users(tmp_path):
    lib = autolink.cxx("struct Pair { int x, y; }; __device__ float f(float x) { return x; }")

    def kernel(x):
        x[0] = lib.f(x[0])

    assert named(numba_cuda_autolink) == numba_cuda_autolink.__all__
    assert "__version__" in dir(numba_cuda_autolink)
    assert named(lib.f) == ["passing", "python", "signature"]
    assert named(lib.type("Pair")) == sorted([*named(lib.f), "align", "alignment", "dtype", "method", "nested", "size"])
    linked = autolink.build(kernel, "void(float32[::1])", cc="9.0")
    launch = ["configure", "name", "signatures"]
    assert named(linked.emulate) == sorted([*launch, "close", "with_checks", "with_limit"])
    of_record = [
        "call_sites",
        "called_functions",
        "cc",
        "code",
        "entry_name",
        "inputs",
        "launch_facts",
        "options",
        "output",
    ]
    made = ["emulate", "prototypes", "report", "save", "signature"]
    assert [name for name in named(linked) if not name.startswith("_")] == sorted([*of_record, *made])
    linked.save(tmp_path / "kernel.kernels")
    with numba_cuda_autolink.load(tmp_path / "kernel.kernels") as library:
        assert named(library) == ["close", "describe", "kernel", "made_by", "variables"]
        assert named(library.kernel) == launch
        assert with_those_of_the_class(library.kernel) == {*launch}
    source, table = autolink.CUDASource(""), autolink.Variable("table", "float32")
    assert named(source) == ["data", "from_file", "name", "path"]
    assert named(table) == sorted([*named(source), "declaration", "dtype", "get", "set", "shape", "space"])
    objects = (lib.f, lib.type("Pair"), linked, source, table)
    assert all(hasattr(each, name) for each in objects for name in named(each))
    of_variable = ["dtype", "get", "initial", "name", "set", "shape", "space"]
    assert [name for name in dir(numba_cuda_autolink.Variable) if not name.startswith("_")] == of_variable
    for each in (lib, lib.f, lib.type("Pair"), linked, linked.emulate):
        assert with_those_of_the_class(each) <= {*named(each)}


def test_help_of_a_function_of_cxx_says_what_it_is_and_names_no_constructor():
    lib = autolink.cxx("struct Pair { int x, y; }; __device__ float f(float x) { return x; }")
    for function, what in (lib.f, "A function of C++"), (lib.type("Pair"), "A class of C++"):
        shown = pydoc.plain(pydoc.render_doc(function))
        assert what in shown and "LibrarySource" not in shown
        assert all(name in shown for name in named(function) if name not in named(lib.f))


@pytest.mark.parametrize("cls", [autolink.CxxFunction, autolink.CxxLibrary, autolink.CxxType, autolink.LinkedKernel])
def test_help_of_an_object_has_the_names_for_users(cls):
    shown = re.findall(r"^ \|  (\w+)(?:\(|$)", pydoc.plain(pydoc.render_doc(cls)), re.MULTILINE)
    internal = r"ask_together|call|change|cxx_\w+|get_refusal|guess_result|library_source|of|pattern|register|with_link"
    assert shown and not [name for name in shown if re.fullmatch(internal, name)]


@pytest.mark.parametrize("module", [autolink, numba_cuda_autolink], ids=lambda module: module.__name__)
def test_exceptions_are_printed_with_the_package_that_has_them(module):
    public = [getattr(module, name) for name in module.__all__]
    errors = [each for each in public if isinstance(each, type) and issubclass(each, Exception)]
    assert len(errors) > 7 and {each.__module__ for each in errors} == {module.__name__}


def test_the_errors_of_the_emulator_are_public_and_imported_late():
    code = (
        "import sys, numba_cuda_autolink as n; assert 'numba_cuda_autolink.emulator' not in sys.modules;"
        " assert issubclass(n.FaultError, n.EmulationError)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("function", [cuda.jit, autolink.build])
def test_help_and_editors_have_the_options_of_jit_by_name(function):
    parameters = inspect.signature(function).parameters
    assert {*typing.get_type_hints(autolink.JitOptions)} <= {*parameters}
    assert [*parameters.values()][-1].kind is inspect.Parameter.VAR_KEYWORD  # those of other front ends


def test_the_options_of_programs_are_those_that_a_source_can_set():
    keys = {*typing.get_type_hints(autolink.ProgramOptions)}
    assert "use_fast_math" in keys and not keys & {"arch", "include_path", "define_macro"}
    assert all(re.search(rf"^{key} :$", autolink.ProgramOptions.__doc__, re.MULTILINE) for key in keys)

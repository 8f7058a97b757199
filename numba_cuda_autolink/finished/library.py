# SPDX-License-Identifier: BSD-2-Clause
"""The kernels of a file, loaded when they are first launched."""

from __future__ import annotations

import difflib
import importlib
import operator
import os
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..emulated_driver.activation import is_active
from ..errors import KernelFileError, LaunchError, at_call, flag
from ..launch.driver import Device
from ..launch.kernel import Kernel
from ..launch.loaded_kernel import Loaded, LoadedCode
from ..plain_types import VariableType, place_leaves
from ..printable_texts import public_names
from ..short_tracebacks import print_short
from .kernel_file import Block, Image, KernelFile, Signature, best
from .variables import Variable

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..launch.emulated_kernel import EmulatedCode


class KernelLibrary:
    """The kernels of a file: ``library.name`` or ``library["name"]``. Iterating gives the names.

    Kernels with the name of an attribute of the library (``close``, ``describe``, ``made_by``), or with a name that
    begins with an underscore, are found in brackets alone: ``library["close"]``.

    Code is read and loaded into a context when a kernel is first launched there. `close` unloads it all.
    """

    def __init__(self, path: str | bytes | os.PathLike[Any], *, emulate: bool = False):
        self._is_emulated = flag("emulate= of load()", emulate)
        self._file = KernelFile(path)
        self._kernels: dict[str, Kernel] = {}
        self._unload: list[weakref.finalize] = []
        self._lock = threading.Lock()
        self._variables: dict[str, Variable] = {}

    def __getitem__(self, name: str) -> Kernel:
        """Return the kernel *name*. Raise `KeyError` if there is none."""
        kernel = self._kernels.get(name) if isinstance(name, str) else None
        if kernel is None:
            self._check(name)
            kernel = self._kernels.setdefault(name, self._make(name))
        return kernel

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):  # what Python and others look for on every object
            raise AttributeError(f"a library has no attribute {name!r}; a kernel of this name is library[{name!r}]")
        try:
            return self[name]
        except KeyError as error:
            missing = AttributeError(error.args[0], name=name, obj=None)  # for which Python suggests no other
            print_short(missing)
            raise missing from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.names)

    def __len__(self) -> int:
        return len(self._file.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._file.names

    def __dir__(self) -> list[str]:
        return sorted({*public_names(super().__dir__()), *self})

    def _ipython_key_completions_(self) -> list[str]:
        """Return what IPython completes in brackets."""
        return list(self)

    def __repr__(self) -> str:
        return f"<{len(self)} kernels of {self._file.path}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"the library of {self._file.path} cannot be pickled or copied; load the file in each process")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def made_by(self) -> dict[str, str]:
        """The versions of the packages and libraries that built its kernels."""
        return dict(self._file.made_by)

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables of its kernels that the host sets, by name: ``library.variables["table"].set(array)``. Kernels
        with a variable of one name have each a copy of it, and `Variable.set` sets them all."""
        for name in self:
            for signature in self._file.signatures(name):
                for image in signature.images:
                    for variable, value in image.variables:
                        self._variable(variable, value)
        return types.MappingProxyType(self._variables)

    def describe(self, name: str) -> list[dict[str, Any]]:
        """Return what is known of the code of a kernel: a dictionary for each signature and architecture.

        ==================  =====================================================================================
        ``signature``       Numba's types of its parameters
        ``runs_on``         the architecture: ``sm_90``, ``sm_90a``; ``compute_90`` for PTX
        ``entry``           the kernel's name in the code
        ``shared``          bytes of static shared memory
        ``registers``       registers of a thread
        ``launch_bounds``   the most threads in a block that it was built for
        ``cooperative``     whether it synchronizes its grid, so that all blocks run at a time
        ``carveout``        the share of shared memory that it prefers, in percent
        ``setup``           the callbacks that run when the code was loaded, as ``module:function``
        ``teardown``        those that run before it is unloaded
        ``variables``       the types of the variables that the host sets, by name
        ``report``          the report of its build, in the form of ``Report.to_json``
        ==================  =====================================================================================

        What the code does not tell (PTX has no registers) or the kernel does not set is ``None``.

        Raises `KeyError` if the file holds no kernel *name*; `KernelFileError` if the description of the kernel or a
        report is damaged.
        """
        self._check(name)
        described = []
        for signature in self._file.signatures(name):
            for image in signature.images:
                facts = {"signature": signature.text, **image._asdict(), "runs_on": str(image.runs_on)}
                facts["variables"] = {variable.name: str(variable) for variable, _ in image.variables}
                facts["report"] = self._file.json_of(image.report) if image.report.size else None
                described.append({key: value for key, value in facts.items() if key not in ("code", "layout")})
        return described

    def close(self) -> None:
        """Run the teardown callbacks of its kernels, unload them, and close the file. Launches must have ended."""
        for kernel in self._kernels.values():
            kernel._close()
        for variable in tuple(self._variables.values()):
            variable._unload_all()
        for finalizer in self._unload:
            finalizer()
        self._file.close()

    def _check(self, name: object) -> None:
        """Raise `KeyError` if the file holds no kernel *name*."""
        if name not in self:
            near = difflib.get_close_matches(str(name), self._file.names, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise KeyError(f"{self._file.path} has no kernel {name!r}{hint}")

    def _make(self, name: str) -> Kernel:
        if not self._is_emulated:
            return Kernel(name, lambda: [_SavedCode(self, name, each) for each in self._file.signatures(name)])
        from ..launch.emulated_kernel import EmulatedKernel

        return EmulatedKernel(name, lambda: [self._emulate(name, each) for each in self._file.signatures(name)])

    def _emulate(self, name: str, signature: Signature) -> EmulatedCode:
        """Return the code of a kernel and signature for the emulator: of its PTX, that for the latest architecture."""
        from ..launch.emulated_kernel import EmulatedCode

        image = max(signature.images, key=_emulated_first)
        own = place_leaves(signature.parameters, image.layout)
        assert own is not None

        def texts() -> list[str]:
            _require_ptx(image, signature.images, f"{name}{signature.text}", self._file.path)
            return [self._file.read(image.code).decode().rstrip("\0")]

        return EmulatedCode(
            signature.text,
            signature.parameters,
            own,
            image.entry,
            (image.runs_on.major, image.runs_on.minor),
            image.cooperative,
            texts,
            [import_callback(each, name) for each in image.setup],
            [import_callback(each, name) for each in image.teardown],
            [self._variable(described, value) for described, value in image.variables],
        )

    def _variable(self, described: VariableType, value: Block | None) -> Variable:
        """Return the variable that is *described* so. Its first *value* is read when it is first asked for."""
        with self._lock:
            found = self._variables.get(described.name)
            if found is None:
                found = Variable(described, None if value is None else self._file.read(value))
                self._variables[described.name] = found
        return found


class _SavedCode:
    def __init__(self, library: KernelLibrary, kernel: str, signature: Signature):
        self.text, self.parameters = signature.text, signature.parameters
        self._library, self._file, self._kernel, self._images = library, library._file, kernel, signature.images

    def load(self, device: Device) -> Loaded:
        """Load the code that fits *device* best into the current context, run the setup callbacks, and set the
        variables."""
        image = self._find_image(device.compute_capability)
        callbacks = ([import_callback(name, self._kernel) for name in each] for each in (image.setup, image.teardown))
        code = LoadedCode(self._file.read(image.code), *callbacks, is_ptx=image.runs_on.kind == "ptx")
        self._library._unload.append(code.unload)
        function = code.function(image.entry, image.carveout)
        for described, value in image.variables:
            self._library._variable(described, value)._load(code)
        own = place_leaves(self.parameters, image.layout)
        assert own is not None
        return Loaded.of(function, own, image.cooperative, code)

    def _find_image(self, device: tuple[int, int]) -> Image:
        """Return the code that fits a GPU of compute capability *device* best; in the emulator, the latest PTX."""
        if is_active():
            image = max(self._images, key=_emulated_first)
            _require_ptx(image, self._images, f"{self._kernel}{self.text}", self._file.path)
            return image
        number = best([image.runs_on for image in self._images], device)
        if number is not None:
            return self._images[number]
        named = "{}.{}".format(*device)
        raise LaunchError(
            at_call(
                f"{self._kernel} has no code for this GPU, of compute capability {named}"
                f"\n  file: {self._file.path}\n  it has: {', '.join(str(image.runs_on) for image in self._images)}"
                f"\n  what to do: build it with cc=[..., ({', '.join(map(str, device))})]"
            )
        )


def _emulated_first(image: Image) -> tuple[bool, object]:
    """Sort the PTX for the latest architecture last: the emulator runs it."""
    return image.runs_on.kind == "ptx", image.runs_on.preference


def _require_ptx(image: Image, images: Sequence[Image], what: str, path: str) -> None:
    """Raise `LaunchError` unless the best of *images* for the emulator is PTX."""
    if image.runs_on.kind != "ptx":
        raise LaunchError(
            at_call(
                f"{what} has no PTX, and the emulator runs nothing else"
                f"\n  file: {path}\n  it has: {', '.join(str(each.runs_on) for each in images)}"
                "\n  what to do: save it as PTX too: save(path, [build(...), build(..., output='ptx')]), or build --ptx"
            )
        )


def import_callback(name: str, kernel: str) -> Callable[[Any], None]:
    """Return the callback that ``module:function`` names. Raise `KernelFileError` if it cannot be imported."""
    module, _, function = name.partition(":")
    try:
        found: Callable[[Any], None] = operator.attrgetter(function)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise KernelFileError(
            f"{kernel} needs the callback {name}, which cannot be imported: {error}"
            "\n  what to do: install the module that has it"
        ) from error
    return found

# SPDX-License-Identifier: BSD-2-Clause
"""The import hook, which ``numba_cuda_autolink.pth`` installs when Python starts.

- It finds this project's packages (``numba.cuda.autolink`` and ``numba.cuda.cudadrv.external_code``) where they are in
  another ``sys.path`` entry than numba-cuda: in an editable install, or a layered virtual environment.
- It starts the emulated driver before ``numba.cuda`` looks for one, if ``NUMBA_CUDA_AUTOLINK_EMULATE`` asks for it.
- It imports ``numba.cuda.autolink`` after ``numba.cuda``, which activates the project, unless
  ``NUMBA_CUDA_AUTOLINK=0``. If that fails, it warns once, and numba-cuda works without this project.
- It activates the project in numba-cuda-mlir after that imports its compiler, which it does when it first compiles a
  kernel. Only then are Numba and numba-cuda imported, which the rest of the project needs.
"""

import os
import sys
import warnings

AUTOLINK = "numba.cuda.autolink"
_DOTTED = (f"{AUTOLINK}.", "numba.cuda.cudadrv.external_code.")  # the packages that this project adds
_MLIR_COMPILER = "numba_cuda_mlir.mlir_compiler"


class Finder:
    """The first entry of ``sys.meta_path``."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "numba.cuda":
            return cls._find(name, path, target, Activator)
        if name == _MLIR_COMPILER and os.environ.get("NUMBA_CUDA_AUTOLINK") != "0":
            return cls._find(name, path, target, MLIRActivator)
        if not f"{name}.".startswith(_DOTTED):
            return None
        from importlib.machinery import PathFinder

        # numba-cuda's redirector, later in sys.meta_path, would recurse without end for the submodules of a package
        # outside numba-cuda's own directory, and for names that none has. So the ordinary lookup is done here, alone.
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            for entry in sys.path:
                folder = os.path.join(str(entry), "numba_cuda", "numba", "cuda")
                ours = PathFinder.find_spec(AUTOLINK, [folder])
                if ours is not None and ours.loader is not None:
                    below = name.split(".")[2:-1]
                    spec = PathFinder.find_spec(name, [os.path.join(folder, *below)], target)
                    break
        if spec is None and name.startswith(_DOTTED):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec

    @classmethod
    def _find(cls, name, path, target, activator):
        if sys.meta_path[0] is not cls:
            sys.meta_path.remove(cls)
            sys.meta_path.insert(0, cls)
        for finder in sys.meta_path[1:]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is None:
                continue
            if spec.loader is not None and not isinstance(spec.loader, Activator):
                spec.loader = activator(spec.loader)
            return spec
        return None


class Activator:
    """Loads ``numba.cuda``, leaves its original loader in the module, and activates the project."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, attribute):
        return getattr(self._loader, attribute)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        is_on = os.environ.get("NUMBA_CUDA_AUTOLINK") != "0"
        if is_on and os.environ.get("NUMBA_CUDA_AUTOLINK_EMULATE"):
            from .emulated_driver import activation

            activation.start_if_wanted()
        self._loader.exec_module(module)
        if not is_on:
            return
        try:
            import numba.cuda.autolink  # noqa: F401
        except Exception as error:
            _warn(error, "numba.cuda")


class MLIRActivator(Activator):
    """Loads the compiler of numba-cuda-mlir, and activates the project there."""

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            from numba.cuda.autolink.frontends.mlir import activation

            activation.activate()
        except Exception as error:
            _warn(error, "numba_cuda_mlir")


def _warn(error, front_end):
    warnings.warn(
        f"numba-cuda-autolink is not active: {type(error).__name__}: {error}\n"
        f"{front_end} works without it; NUMBA_CUDA_AUTOLINK=0 turns this warning off.",
        RuntimeWarning,
        stacklevel=3,
    )


sys.meta_path.insert(0, Finder)

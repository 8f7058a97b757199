# SPDX-License-Identifier: BSD-2-Clause
"""The import hook, which ``numba_cuda_autolink.pth`` installs when Python starts.

- It finds this project's packages (``numba.cuda.autolink`` and ``numba.cuda.cudadrv.external_code``) where they are in
  another ``sys.path`` entry than numba-cuda: in an editable install, or a layered virtual environment.
- It imports ``numba.cuda.autolink`` after ``numba.cuda``, which activates the project, unless
  ``NUMBA_CUDA_AUTOLINK=0``. If that fails, it warns once, and numba-cuda works without this project.
"""

import os
import sys
import warnings

AUTOLINK = "numba.cuda.autolink"
_DOTTED = (f"{AUTOLINK}.", "numba.cuda.cudadrv.external_code.")  # the packages that this project adds


class Finder:
    """The first entry of ``sys.meta_path``."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "numba.cuda":
            return cls._find_numba_cuda(name, path, target)
        if not f"{name}.".startswith(_DOTTED):
            return None
        from importlib.machinery import PathFinder

        # numba-cuda's redirector, later in sys.meta_path, would recurse without end for the submodules of a package
        # outside numba-cuda's own directory. So the ordinary lookup is done here.
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            for entry in sys.path:
                folder = os.path.join(str(entry), "numba_cuda", "numba", "cuda")
                ours = PathFinder.find_spec(AUTOLINK, [folder])
                if ours is not None and ours.loader is not None:
                    below = name.split(".")[2:-1]
                    return PathFinder.find_spec(name, [os.path.join(folder, *below)], target)
        return spec

    @classmethod
    def _find_numba_cuda(cls, name, path, target):
        if sys.meta_path[0] is not cls:
            sys.meta_path.remove(cls)
            sys.meta_path.insert(0, cls)
        for finder in sys.meta_path[1:]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is None:
                continue
            if spec.loader is not None and not isinstance(spec.loader, Activator):
                spec.loader = Activator(spec.loader)  # type: ignore[assignment]
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
        self._loader.exec_module(module)
        if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
            return
        try:
            import numba.cuda.autolink  # noqa: F401
        except Exception as error:
            warnings.warn(
                f"numba-cuda-autolink is not active: {type(error).__name__}: {error}\n"
                "numba.cuda works without it; NUMBA_CUDA_AUTOLINK=0 turns this warning off.",
                RuntimeWarning,
                stacklevel=2,
            )


sys.meta_path.insert(0, Finder)

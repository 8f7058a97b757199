# SPDX-License-Identifier: BSD-2-Clause
"""Import hook, loaded by ``numba_cuda_autolink_finder.pth`` when Python starts.

It does two things and imports nothing else:

- It answers for modules of this project that lie in another ``sys.path`` entry than numba-cuda's own
  (``numba.cuda.autolink`` and what the project adds to ``numba.cuda.cudadrv``).
- It imports ``numba.cuda.autolink`` as soon as ``numba.cuda`` has been imported, unless
  ``NUMBA_CUDA_AUTOLINK=0``.
"""

import os
import sys
from importlib.machinery import PathFinder


class ModuleFinder:
    """Finds ``numba.cuda.*`` modules below ``numba_cuda/numba/cuda`` in any entry of ``sys.path``."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("numba.cuda."):
            return None
        folder = os.path.join("numba_cuda", *name.split(".")[:-1])
        return PathFinder.find_spec(name, [os.path.join(entry or os.getcwd(), folder) for entry in sys.path], target)


class AutolinkFinder:
    """Answers for ``numba.cuda.autolink`` and below before numba-cuda's redirector does, which would ask itself without
    end for modules of a package that lies outside of numba-cuda's directory."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "numba.cuda.autolink" or name.startswith("numba.cuda.autolink."):
            return ModuleFinder.find_spec(name, path, target)
        return None


class Activator:
    """Lets the import of ``numba.cuda`` end with the import of ``numba.cuda.autolink``."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "numba.cuda" or os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
            return None
        for finder in sys.meta_path:
            if finder is cls or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    cls._extend(spec.loader)
                return spec
        return None

    @staticmethod
    def _extend(loader):
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            from numba.cuda import autolink  # noqa: F401

        loader.exec_module = exec_module


sys.meta_path[:0] = [AutolinkFinder, Activator]
sys.meta_path.append(ModuleFinder)

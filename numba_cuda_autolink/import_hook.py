# SPDX-License-Identifier: BSD-2-Clause
"""The import hook: `install` is all that Python's start runs of this project.

- `Finder` finds ``numba.cuda.autolink`` and ``numba.cuda.cudadrv.external_code``, this project's packages, where they
  are in another ``sys.path`` entry than numba-cuda: in an editable install, or a layered virtual environment.
- It starts the emulated driver before a front end looks for one, if ``NUMBA_CUDA_AUTOLINK_EMULATE`` asks for it.
- It imports ``numba.cuda.autolink`` after ``numba.cuda``, which activates the project, unless
  ``NUMBA_CUDA_AUTOLINK=0``. If that fails, it warns once, and numba-cuda works without this project.
- Where Numba or a front end cannot be imported, the error says why, and what to do.
- In numba-cuda-mlir it activates the project when a kernel uses the first object or type with a hook (`Watch`), or when
  ``numba.cuda.autolink`` is imported. Until then, Numba and numba-cuda, which the rest of the project needs, are not.
"""

import os
import sys

AUTOLINK = "numba.cuda.autolink"
_DOTTED = (f"{AUTOLINK}.", "numba.cuda.cudadrv.external_code.")  # the packages that this project adds
_FRONT_ENDS = ("numba.cuda", "numba_cuda_mlir")
_MLIR_COMPILER = "numba_cuda_mlir.mlir_compiler"
_EXPLAINED = {  # of modules that are only loaded: the package of each, whose failed import is explained
    "numba": "numba",
    "numba_cuda_mlir": "numba-cuda-mlir",
    "numba_cuda_mlir.cuda": "numba-cuda-mlir",
    _MLIR_COMPILER: "numba-cuda-mlir",
}
_IS_EXPLAINED = "_numba_cuda_autolink_is_explained"  # an attribute of an error


def install():
    """Put `Finder` into ``sys.meta_path``, if it is not there."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)


class Finder:
    """The first entry of ``sys.meta_path``."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in _FRONT_ENDS and _is_on() and os.environ.get("NUMBA_CUDA_AUTOLINK_EMULATE"):
            from .emulated_driver import activation

            activation.start_if_wanted()
        if name == "numba.cuda":
            return cls._find(name, path, target, Activator)
        if name == _MLIR_COMPILER and _is_on():
            return cls._find(name, path, target, MLIRActivator)
        if name in _EXPLAINED and _is_on():
            return cls._find(name, path, target, Explainer)
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
            try:
                spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            except Exception as error:  # of the one of numba-cuda, where Numba is not installed
                _explain(error, name)
                raise
            if spec is None:
                continue
            if spec.loader is not None and not isinstance(spec.loader, Explainer):
                spec.loader = activator(spec.loader)
            return spec
        return None


class Explainer:
    """Loads a front end, and leaves its original loader in the module. If that fails, the error says why."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, attribute):
        return getattr(self._loader, attribute)

    def get_source(self, name):  # which editors look for in the class
        return self._loader.get_source(name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        try:
            self._loader.exec_module(module)
        except Exception as error:
            _explain(error, module.__name__)
            raise


class Activator(Explainer):
    """Loads ``numba.cuda``, and activates the project."""

    def exec_module(self, module):
        super().exec_module(module)
        if not _is_on():
            return
        try:
            import numba.cuda.autolink  # noqa: F401
        except Exception as error:
            _warn(error, "numba.cuda")


class MLIRActivator(Explainer):
    """Loads the compiler of numba-cuda-mlir, and activates the project there as soon as it is needed."""

    def exec_module(self, module):
        super().exec_module(module)
        try:
            if os.environ.get("NUMBA_CUDA_AUTOLINK_EMULATE", "0").strip() != "0":
                import numba.cuda.autolink  # noqa: F401
            if AUTOLINK in sys.modules:
                activate_in_mlir()
            else:
                Watch.start(module)
        except Exception as error:
            _warn(error, "numba_cuda_mlir")


def activate_in_mlir():
    """Activate the project in numba-cuda-mlir, if it has imported its compiler. If that fails, warn."""
    if _MLIR_COMPILER not in sys.modules:
        return
    Watch.stop()
    try:
        from numba.cuda.autolink.frontends.mlir import activation

        activation.activate()
    except Exception as error:
        _warn(error, "numba_cuda_mlir")


class HookFound(BaseException):
    """The kernel that is being compiled uses an object or type with a hook, and is compiled again from the start."""


class Watch:
    """Looks for hooks in the kernels that numba-cuda-mlir compiles, and otherwise changes nothing there."""

    stop = staticmethod(lambda: None)
    is_on = False

    @classmethod
    def start(cls, compiler):
        """Look from now on at all values and called types of which the module *compiler* infers types."""
        context = sys.modules["numba_cuda_mlir.descriptor"].MLIRTypingContext
        compile_mlir, lock = compiler.compile_mlir, compiler.global_compiler_lock
        resolve_value, resolve_function = context.resolve_value_type, context.resolve_function_type
        is_own = "resolve_function_type" in vars(context)
        watched: list = []  # the outermost compilation in progress: its function, while the lock is held

        def compile_watched(pyfunc, return_type, args, targetoptions):
            with lock:
                if watched:
                    return compile_mlir(pyfunc, return_type, args, targetoptions)
                given = dict(targetoptions)  # which a compilation changes
                watched.append(pyfunc)
                try:
                    compiled = compile_mlir(pyfunc, return_type, args, targetoptions)
                    if cls.is_on:
                        return compiled
                except HookFound:
                    activate_in_mlir()
                finally:
                    watched.clear()
                targetoptions.clear()
                targetoptions.update(given)
                return compiler.compile_mlir(pyfunc, return_type, args, targetoptions)

        def look_at(*values):
            if watched and cls.is_on and any(map(_has_hook, values)):
                raise HookFound

        def value_type(context, value):
            look_at(value)
            numba_type = resolve_value(context, value)
            look_at(numba_type)
            return numba_type

        def function_type(context, called, args, kws):
            look_at(called, getattr(called, "this", None), getattr(called, "typing_key", None))
            return resolve_function(context, called, args, kws)

        def stop():
            cls.is_on, cls.stop = False, staticmethod(lambda: None)
            compiler.compile_mlir, context.resolve_value_type = compile_mlir, resolve_value
            if is_own:
                context.resolve_function_type = resolve_function
            else:
                del context.resolve_function_type

        compiler.compile_mlir = compile_watched
        context.resolve_value_type, context.resolve_function_type = value_type, function_type
        cls.is_on, cls.stop = True, staticmethod(stop)


def _has_hook(value):
    """Whether calls of *value*, an object or a Numba type, may link code: also one that raises when it is asked."""
    if isinstance(value, tuple):
        return any(map(_has_hook, value))
    try:
        return any(
            hasattr(each, "__numba_cuda_link__") or hasattr(each, "numba_cuda_link_object")
            for each in (value, getattr(value, "__self__", None), getattr(value, "py_func", None))
            if not isinstance(each, type(sys))
        )
    except Exception:
        return True


def _is_on():
    return os.environ.get("NUMBA_CUDA_AUTOLINK") != "0"


def _explain(error, module):
    """Let *error*, with which a *module* of Numba or a front end cannot be imported, say why and what to do."""
    if not _is_on() or vars(error).get(_IS_EXPLAINED):
        return
    from .failed_imports import add_note, explain

    vars(error)[_IS_EXPLAINED] = True
    package = _EXPLAINED.get(module, "numba-cuda")
    add_note(error, f"numba-cuda-autolink: {package} cannot be imported: {explain(error, package)}")


def _warn(error, front_end):
    import warnings

    warnings.warn(
        f"numba-cuda-autolink is not active: {type(error).__name__}: {error}\n"
        f"{front_end} works without it; NUMBA_CUDA_AUTOLINK=0 turns this warning off.",
        RuntimeWarning,
        stacklevel=3,
    )

# SPDX-License-Identifier: BSD-2-Clause
"""The failures of the catalogue of errors: each is user's code that fails, when that happens, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """One failure. ``code`` fails, or leaves what is to be shown in ``said``; ``setup`` makes the files that it reads.

    ``without_library`` is a library that is hidden while it runs. With ``shown``, the page shows that part alone.
    """

    section: str
    title: str
    when: str
    code: str
    remedy: str
    setup: Callable[[], None] | None = None
    teardown: Callable[[], None] | None = None
    without_library: str = ""
    shown: str = ""


_SCALE = 'extern "C" __device__ float scale(float x) { return 2 * x; }'
_PTX = """\
.version 8.0
.target sm_80
.address_size 64

.visible .func (.param .b32 result) scale(.param .b32 x)
{
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [x];
    add.f32 %f2, %f1, %f1;
    st.param.f32 [result], %f2;
    ret;
}
"""


def _compiled(kind: str, source: str = _SCALE, arch: str = "sm_90", relocatable: bool = True) -> bytes:
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(
        arch=arch,
        relocatable_device_code=relocatable,
        link_time_optimization=(kind == "ltoir") or None,
        name="scale.cu",
    )
    return bytes(Program(source, "c++", options=options).compile(kind).code)


def _write(name: str, make: Callable[[], bytes]) -> Callable[[], None]:
    """What writes the file *name* when it is called."""

    def write() -> None:
        Path(name).write_bytes(make())

    return write


def _newer(code: bytes) -> bytes:
    """LTO-IR as a toolkit to come would mark it: with a later minor version of the container and of the IR."""
    return code[:5] + bytes([code[5] + 16]) + code[6:7] + bytes([code[7] + 16]) + code[8:]


def _verify() -> None:
    from numba.cuda.cudadrv.external_code.cache.store import reset_store

    os.environ["NUMBA_CUDA_AUTOLINK_CACHE"] = "verify"
    reset_store()


def _verify_no_more() -> None:
    from numba.cuda.cudadrv.external_code.cache.store import reset_store

    del os.environ["NUMBA_CUDA_AUTOLINK_CACHE"]
    reset_store()


FRAME = """
class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("scale", returns=x)

    def __numba_cuda_link__(self, x):
        return ...


scale = Scale()


def kernel(data):
    data[0] = scale(data[1])


autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""


def _returning(section: str, title: str, when: str, returned: str, remedy: str, **more: Any) -> Case:
    """A case of an object that returns *returned*."""
    shown = more.pop("shown", f"return {returned}")
    return Case(section, title, when, FRAME.replace("...", returned), remedy, shown=shown, **more)


_ASKING = "When the object is asked"
_COMPILING = "When CUDA C++ is compiled"
_SYMBOLS = "When symbols do not meet"
_FITTING = "When code does not fit the kernel"
_DAMAGED = "When code is damaged, or is not what it is called"
_INSTALLED = "When a library is missing"

CASES = (
    Case(
        _ASKING,
        "The hook raises",
        "An object refuses the types that it is called with by raising from `__numba_cuda_link__`, or has a fault.",
        """
        class Scale(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                raise ValueError(f"Scale knows float64 only, not {x}")


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Read the object's own message. `called at` is the call to change, `raised at` the line that raised; the"
        " object's exception is the error's `__cause__`.",
    ),
    Case(
        _ASKING,
        "The hook takes other parameters",
        "`__numba_cuda_link__` gets one Numba type for each argument of the call, in the order of the parameters.",
        FRAME.replace("...", "None").replace("_link__(self, x)", "_link__(self, x, y)"),
        "Give `__numba_cuda_link__` the parameters of the call.",
    ),
    Case(
        _ASKING,
        "The hook is not callable",
        "`__numba_cuda_link__` is there, and is something else than a method.",
        """
        class Scale(autolink.DeviceCallable):
            __numba_cuda_link__ = "scale.ltoir"

            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Make it a method that returns the code.",
    ),
    _returning(
        _ASKING,
        "The hook returns something else than code",
        "Bytes alone do not tell what they are. The same is said of numbers, dictionaries and the like.",
        'b"..."',
        "Wrap the bytes: `cuda.LTOIR(data)`, `cuda.Cubin(data)`, and so on; for several pieces return a list.",
    ),
    _returning(
        _ASKING,
        "A file of unknown kind",
        "A path's suffix tells what the file holds.",
        '"scale.bin"',
        "Rename the file, or read it and wrap its content: `cuda.Cubin(data)`.",
    ),
    _returning(
        _ASKING,
        "A file that is not there",
        "A path that is returned is read at once.",
        '"scale.ltoir"',
        "Return the full path, such as `pathlib.Path(__file__).with_name('scale.ltoir')`: a relative one is looked for"
        " in the directory in which Python runs.",
    ),
    Case(
        _ASKING,
        "The hook compiles a call of itself",
        "A hook may compile kernels and device functions. If these call the object itself with the same types, it would"
        " have to know its answer before it gives it.",
        'autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).code',
        "Let what the hook compiles call another object, or return CUDA C++.",
    ),
    Case(
        _ASKING,
        "The hook changes its answer",
        "An object is asked once per process for each signature and target, and what it answers is cached. If the code"
        " depends on anything else, such as a counter, a kernel gets one of several codes. With"
        " `NUMBA_CUDA_AUTOLINK_CACHE=verify` each object is asked again, and the answers are compared.",
        """
        class Scale(autolink.DeviceCallable):
            calls = 0

            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                self.calls += 1
                return autolink.CUDASource(
                    'extern "C" __device__ float scale(float x) { return x * %d; }' % self.calls
                )


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Make the code from the object's constant attributes, the types and `autolink.current_target()` alone.",
        setup=_verify,
        teardown=_verify_no_more,
    ),
    Case(
        _COMPILING,
        "CUDA C++ that does not compile",
        "NVRTC finds an error. Its messages give the line in the source and show it; the source is saved as the file"
        " that the message names, so that it can be looked at in an editor.",
        '''
        class Scale(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource("""
                    extern "C" __device__ float scale(float x) {
                        float factor = FACTOR;
                        return factor * x
                    }""")


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        ''',
        "Mend the source. The exception's `.log` has everything that NVRTC printed, and `.source_path` is the file.",
    ),
    _returning(
        _COMPILING,
        "A header that is not found",
        "Headers are looked for in the source's `include_paths` and the toolkit's directories; for a source that is a"
        " file, beside it as well.",
        """autolink.CUDASource('#include "tables.h"')""",
        "`autolink.CUDASource(code, include_paths=[...])`.",
    ),
    _returning(
        _SYMBOLS,
        'A function without `extern "C"`',
        'C++ puts the types of a function\'s parameters into its name in the code, unless it is declared `extern "C"`.',
        'autolink.CUDASource("__device__ float scale(float x) { return 2 * x; }")',
        'Write `extern "C" __device__ float scale(float x)`.',
    ),
    _returning(
        _SYMBOLS,
        "A misspelled symbol",
        "The call wants a function by a name that no code defines, and a similar one is there.",
        """autolink.CUDASource('extern "C" __device__ float scale_f32(float x) { return 2 * x; }')""",
        "Use one name in `Extern` and in the source.",
    ),
    _returning(
        _SYMBOLS,
        "A symbol that nobody defines",
        "Nothing like it is there: usually a piece of code was left out, or is chosen by `#ifdef`.",
        """autolink.CUDASource('extern "C" __device__ float tables[16];')""",
        "Return the code that defines it as well: a hook may return a list. The names that the linked code does define"
        " are in the message, where they can be read.",
    ),
    Case(
        _SYMBOLS,
        "A symbol defined twice",
        "Two objects bring different code under one name. (nvJitLink would take either of them without a word.)",
        """
        class Scale(autolink.DeviceCallable):
            def __init__(self, factor):
                self.factor = factor

            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(
                    'extern "C" __device__ float scale(float x) { return x * %d; }' % self.factor
                )


        double, triple = Scale(2), Scale(3)


        def kernel(data):
            data[0] = double(data[1]) + triple(data[2])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        'Put what distinguishes the two into the name: `f"scale_{self.factor}_{x}"`.',
    ),
    Case(
        _SYMBOLS,
        "A function with another signature than its call",
        "PTX shows how many bytes a function's parameters take. Where they are not those of the call, the function"
        " would read what nobody wrote. (In LTO-IR and machine code this cannot be seen.)",
        FRAME.replace("...", '"scale.ptx"').replace("float32", "float64"),
        "Make one function for each type, with the type in its name.",
        setup=_write("scale.ptx", _PTX.encode),
    ),
    _returning(
        _FITTING,
        "Machine code for another architecture",
        "A cubin runs on the architecture that it was compiled for and on later ones of the same major version.",
        '"scale_sm_80.cubin"',
        "Compile for `autolink.current_target().arch`, or return LTO-IR, PTX or CUDA C++.",
        setup=_write("scale_sm_80.cubin", lambda: _compiled("cubin", arch="sm_80")),
    ),
    _returning(
        _FITTING,
        "LTO-IR for a newer architecture",
        "LTO-IR and PTX can be linked for the architecture that they were made for and for later ones.",
        '"scale_sm_100.ltoir"',
        "Make it for the oldest architecture that your users have.",
        setup=_write("scale_sm_100.ltoir", lambda: _compiled("ltoir", arch="sm_100")),
    ),
    _returning(
        _FITTING,
        "PTX for a newer architecture",
        "The same for PTX, which says in `.target` what it is for.",
        '"scale_sm_100.ptx"',
        "Make it for the oldest architecture that your users have.",
        setup=_write("scale_sm_100.ptx", lambda: _PTX.replace("sm_80", "sm_100").encode()),
    ),
    _returning(
        _FITTING,
        "PTX of a newer version than the toolkit knows",
        "PTX says in `.version` which version of the language it is written in; the installed nvJitLink knows those up"
        " to its own.",
        '"scale_new.ptx"',
        "Make the PTX with the toolkit that your users have, or update nvJitLink.",
        setup=_write("scale_new.ptx", lambda: _PTX.replace("8.0", "99.0").encode()),
    ),
    _returning(
        _FITTING,
        "LTO-IR of a newer toolkit than nvJitLink",
        "The LTO-IR comes from a toolkit that is newer than the installed nvJitLink, often because it was shipped by a"
        " package that was built with it.",
        '"scale_new.ltoir"',
        "Update nvJitLink (`pip install -U nvidia-nvjitlink`, for CUDA 12 `nvidia-nvjitlink-cu12`), or make the LTO-IR"
        " with an older toolkit.",
        setup=_write("scale_new.ltoir", lambda: _newer(_compiled("ltoir"))),
    ),
    _returning(
        _FITTING,
        "A cubin that is not relocatable",
        "Compilers make finished programs unless they are told that the code is to be linked with other code.",
        '"scale.cubin"',
        "Compile with `-rdc=true`.",
        setup=_write("scale.cubin", lambda: _compiled("cubin", relocatable=False)),
    ),
    _returning(
        _DAMAGED,
        "Empty code",
        "A file of no bytes, usually because a build step failed.",
        'cuda.Cubin(b"", name="scale.cubin")',
        "Make the file anew.",
    ),
    _returning(
        _DAMAGED,
        "Code of another kind",
        "The first bytes tell what code is, whatever its suffix or class.",
        '"scale.cubin"',
        "Use the class or suffix of what it is.",
        setup=_write("scale.cubin", lambda: _compiled("ltoir")),
    ),
    _returning(
        _DAMAGED,
        "Code that is cut off",
        "A file ends before the place where its own headers say that it does: a download or a copy that broke off.",
        '"scale.cubin"',
        "Make or fetch the file anew.",
        setup=_write("scale.cubin", lambda: _compiled("cubin")[:1500]),
    ),
    _returning(
        _DAMAGED,
        "Bytes that are no code",
        "What is neither of the kind that it is called nor of another.",
        'cuda.LTOIR(b"<!DOCTYPE html>", name="scale.ltoir")',
        "Look at the file: this one is a web page.",
    ),
    _returning(
        _DAMAGED,
        "PTX with an error in it",
        "PTX is looked at as a whole before it is linked; its instructions are the linker's business.",
        '"scale.ptx"',
        "Mend the line that the message shows.",
        setup=_write("scale.ptx", lambda: _PTX.replace("add.f32", "ad.f32").encode()),
    ),
    _returning(
        _DAMAGED,
        "LTO-IR that is damaged inside",
        "What headers do not show, the linker finds. Where its message names no input, each is tried alone.",
        '"scale.ltoir"',
        "Make or fetch the file anew.",
        setup=_write("scale.ltoir", lambda: _compiled("ltoir")[:-200]),
    ),
    Case(
        _DAMAGED,
        "Damage that might crash the linker",
        "On some damage nvJitLink does not report an error: the process ends. Code that you do not trust can be tried"
        " in a child process first. Here it is refused; where the child is killed, `trial.signal` says by what.",
        """
        from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
        from numba.cuda.cudadrv.external_code.link import trial as link_trial

        doubtful = from_item("scale.ltoir")
        trial = link_trial.try_link([doubtful], autolink.Target((9, 0), lto=True))
        said = f"ok: {trial.ok}\\nculprit: {trial.culprit.name}\\nmessage: {trial.message}"
        """,
        "Make or fetch the file anew.",
        setup=_write("scale.ltoir", lambda: _compiled("ltoir")[:-200]),
    ),
    _returning(
        _INSTALLED,
        "NVRTC is not installed",
        "NVRTC comes with this package's extras `cu12` and `cu13`, or with the CUDA toolkit.",
        """autolink.CUDASource('extern "C" __device__ float scale(float x) { return 2 * x; }')""",
        "Install the extra that fits the driver of your GPU.",
        without_library="nvrtc",
    ),
    _returning(
        _INSTALLED,
        "nvJitLink is not installed",
        "nvJitLink comes from the same places.",
        '"scale.ptx"',
        "Install the extra that fits the driver of your GPU.",
        setup=_write("scale.ptx", _PTX.encode),
        without_library="nvJitLink",
    ),
)

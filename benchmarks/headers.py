# SPDX-License-Identifier: BSD-2-Clause
"""Measure what it costs to know what NVRTC reads: CPU time of this project in a compile, next to NVRTC's own.

Run it with ``python benchmarks/headers.py``, with the beginnings of names of cases as arguments for some of them. Each
round compiles a source in a new child process with an empty cache, and the same source in another that calls NVRTC and
nothing else: that is NVRTC's own time. What a child takes beyond it is for noting what NVRTC looks up. Of the time of
this process, the parts are the record of the headers, the entries of the cache as they are written, and the rest: keys,
locks, messages. "First" includes the load of NVRTC, and of what notes its look-ups; "later" is the second such compile
of the same processes. Each figure is the least of all rounds, as on an idle core. No GPU is used.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from typing import Any

if __name__ != "__main__":  # as the script of a child
    import importlib.util

    spec = importlib.util.spec_from_file_location("nvrtc_child", os.environ["NVRTC_CHILD"])
    assert spec is not None and spec.loader is not None
    nvrtc_child = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = nvrtc_child
    spec.loader.exec_module(nvrtc_child)

WHICH = ("first", "later")
PAUSE = 0.05  # seconds before each compile, after which neither process has an advantage
PARTS = ("NVRTC", "child", "record", "entries", "rest")


def answer(content, blobs):
    """Answer as the child that compiles does, or, without ``packages``, call NVRTC alone; add the CPU seconds. Nothing
    is done for an empty request: what is answered has started."""
    before = time.process_time()
    if not content:
        return {}, []
    if "packages" in content:
        reply, blobs = nvrtc_child.answer(content, blobs)
    else:
        os.chdir(content["folder"])
        nvrtc_child.run_nvrtc(content["library"], blobs[0], **content["run"])
        reply, blobs = {}, []
    return reply | {"seconds": time.process_time() - before}, blobs


FUNCTION = 'extern "C" __device__ int f() { return 1; }\n'


def cases(folder):
    """Return the sources by name; headers of their own are written to *folder*."""
    comments = "".join(f"// {'comment ' * 12}{number}\n" for number in range(1100))
    chained = "#define M0 1\n" + "".join(f"#define M{n + 1} M{n}\n" for n in range(3000))
    probes = "".join(f'#if __has_include("missing_{number}.h")\n#endif\n' for number in range(400))
    for name, text in (("comments.h", comments), ("chained.h", chained), ("probes.h", probes)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
    return {
        "cuda_fp16.h": "#include <cuda_fp16.h>\n",
        "CUB": "#include <cub/block/block_reduce.cuh>\n",
        "120 kB of comments": '#include "comments.h"\n',
        "3,000 chained macros": '#include "chained.h"\n__device__ int last = M3000;\n',
        "cuda/std/cstdint": "#include <cuda/std/cstdint>\n",
        "400 missing headers": '#include "probes.h"\n',
    }


def cpu_clock(pid):
    """Return the CPU seconds of another process until now: its clock, as ``clock_getcpuclockid`` numbers it."""
    return time.clock_gettime((~pid << 3) | 2)


class Watch:
    """CPU seconds of this process by part: while a part is in another, the inner one's clock runs alone."""

    def __init__(self):
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._parts = []
        self._since = 0.0

    @contextlib.contextmanager
    def part(self, name):
        self._stop()
        self._parts.append(name)
        try:
            yield
        finally:
            self._stop()
            self._parts.pop()

    def _stop(self):
        now = time.process_time()
        if self._parts:
            self.seconds[self._parts[-1]] += now - self._since
        self._since = now

    @contextlib.contextmanager
    def method(self, owner, name, part, see=None):
        """Take the time of the method *name* of the class *owner* as that *part*, and *see* what it returns."""
        method = getattr(owner, name)

        def timed(*given, **named):
            with self.part(part):
                result = method(*given, **named)
            if see is not None:
                see(result)
            return result

        setattr(owner, name, timed)
        try:
            yield
        finally:
            setattr(owner, name, method)


class Measured:
    """The compiles of one source, and the least CPU seconds that each part took, in the first and the later ones."""

    def __init__(self, text, folder):
        from numba.cuda import autolink
        from numba.cuda.autolink import Target
        from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

        self.source = from_item(autolink.CUDASource(text + FUNCTION, name="f.cu", include_paths=[folder]))
        self.target = Target((9, 0), lto=True)
        self.least = {}

    def _note(self, which, part, seconds):
        self.least[which, part] = min(seconds, self.least.get((which, part), seconds))

    def alone(self):
        """Have NVRTC alone compile the source twice in a new child."""
        from numba.cuda.cudadrv.external_code.compile import nvrtc, nvrtc_processes
        from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
        from numba.cuda.cudadrv.external_code.platform.child_process import ChildProcess

        unit = TranslationUnit.of(self.source, self.target)
        run = {"name": unit.name, "options": nvrtc_processes.nvrtc_options(unit), "output": unit.output, "names": []}
        content = {"library": nvrtc.library_path(), "folder": os.getcwd(), "run": run}
        with ChildProcess(__file__, has_packages=False) as child:
            child.request({})
            for which in WHICH:
                time.sleep(PAUSE)
                self._note(which, "NVRTC", child.request(content, [unit.code.encode()]).content["seconds"])

    def ours(self):
        """Compile the source twice, each time with an empty cache, in a new child."""
        from numba.cuda.cudadrv.external_code.cache.store import CacheStore, reset_store
        from numba.cuda.cudadrv.external_code.compile import nvrtc_processes, programs
        from numba.cuda.cudadrv.external_code.compile.unit_headers import UnitHeaders
        from numba.cuda.cudadrv.external_code.platform.child_process import ChildProcess

        nvrtc_processes.processes.close()
        with nvrtc_processes.processes.child() as child:
            child.request({})
        for which in WHICH:
            with tempfile.TemporaryDirectory() as cache, contextlib.ExitStack() as watched:
                os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = cache
                reset_store()
                watch = Watch()
                watched.enter_context(watch.method(CacheStore, "put", "entries"))
                watched.enter_context(watch.method(UnitHeaders, "record", "record"))
                replies: list[Any] = []
                watched.enter_context(watch.method(ChildProcess, "request", "rest", replies.append))
                time.sleep(PAUSE)
                before = cpu_clock(child.pid)
                with watch.part("rest"):
                    origin = programs.compiled(self.source, self.target).origin
                watch.seconds["child"] = replies[-1].content["seconds"]
                watch.seconds["rest"] += cpu_clock(child.pid) - before - watch.seconds["child"]
                assert origin == "built" and nvrtc_processes.processes.kept is child and len(replies) == 1
                for part in PARTS[1:]:
                    self._note(which, part, watch.seconds[part])

    def rows(self):
        """Yield the milliseconds of each part, and shares of NVRTC's own time: of noting and record, and of all."""
        for which in WHICH:
            nvrtc, child, *others = (1e3 * self.least[which, part] for part in PARTS)
            noting = child - nvrtc
            yield which, nvrtc, noting, *others, (noting + others[0]) / nvrtc, (noting + sum(others)) / nvrtc


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="beginnings of names of cases")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    from numba.cuda.cudadrv.external_code.compile import nvrtc_child

    os.environ["NVRTC_CHILD"], nvrtc_child.__file__ = nvrtc_child.__file__, __file__
    os.environ["NUMBA_CUDA_AUTOLINK_PCH"] = "0"  # they are made later, in another process
    with tempfile.TemporaryDirectory() as folder:
        Measured("", folder).ours()  # so that this process has imported and found out all that it does once
        print("CPU milliseconds              NVRTC | noting record entries   rest | headers     all")
        for name, text in cases(folder).items():
            if arguments.cases and not name.startswith(tuple(arguments.cases)):
                continue
            measured = Measured(text, folder)
            for number in range(arguments.rounds):
                for step in (measured.alone, measured.ours)[:: 1 if number % 2 else -1]:
                    step()
            for which, nvrtc, noting, record, entries, rest, headers, whole in measured.rows():
                print(
                    f"{name:<21} {which:<5} {nvrtc:>7.1f} | {noting:>6.2f} {record:>6.2f} {entries:>7.2f} {rest:>6.2f}"
                    f" | {headers:>7.1%} {whole:>7.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

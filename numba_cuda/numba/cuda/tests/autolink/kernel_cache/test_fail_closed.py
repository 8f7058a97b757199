# SPDX-License-Identifier: BSD-2-Clause
"""What is compiled into a kernel, or decides what a hook answers, without being reached by name: a change is always
seen, and what cannot be found again is not cached. What changes nothing hits."""

from __future__ import annotations

import shutil

import pytest
from kernel_cache_support import KERNEL, Program


@pytest.fixture
def program(tmp_path, servers):
    return Program(tmp_path / "program", servers)


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    (tmp_path / "program").mkdir()


def test_an_object_without_a_link_key_for_a_call_is_loaded(program):
    program.write("class Keyed(Add):\n    def __numba_cuda_link_key__(self, x): return None\nadd = Keyed(3)")
    assert [program.run().status for _ in range(2)] == ["built", "loaded"]


def test_a_stored_answer_is_asked_again_where_its_file_was_edited(program):
    program.write(
        """
        class Filed(Add):
            def __numba_cuda_link_key__(self, x):
                return 1
            def __numba_cuda_link__(self, x):
                said.append("asked")
                path = os.path.join(os.path.dirname(__file__), "made.cu")
                open(path, "w").write(code("add", 3))
                return path
        add = Filed(3)
        """
    )
    assert program.run().said == ["asked"]
    assert program.run().said == []
    (program.folder / "made.cu").write_text("damaged")
    run = program.run()
    assert (run.status, run.said) == ("loaded", ["asked"])


def test_whether_a_call_is_cooperative_counts_beside_the_link_key(program):
    text = """
    class Synchronised(Add):
        def __numba_cuda_link_key__(self, x):
            return 1
        def __numba_cuda_call__(self, x):
            return autolink.Extern("add", returns=types.int32, cooperative=BOOL)
    add = Synchronised(3)
    """
    program.write(text.replace("BOOL", "False"))
    assert program.run().status == "built"
    run = program.run()
    assert run.status == "loaded", run.log
    program.write(text.replace("BOOL", "True"))
    assert program.run().status == "built"


PTX = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .u32 more = 1;\n"


@pytest.mark.parametrize("option, expected", [("", "loaded"), ("lineinfo=True, ", "built")])
def test_another_checkout_of_the_same_sources_hits_where_no_path_is_in_the_code(program, servers, option, expected):
    (program.folder / "more.ptx").write_text(PTX)
    kernels = KERNEL.replace("cache=True", f"{option}cache=True, link=[os.path.join(HERE, 'more.ptx')]")
    program.write("HERE = os.path.dirname(__file__)\nadd = Add(3)", kernels)
    assert program.run().status == "built"
    other = Program(program.folder.parent / "other", servers)
    shutil.copytree(program.folder, other.folder)
    shared = f"os.environ['NUMBA_CUDA_AUTOLINK_CACHE_DIR'] = {str(program.folder / 'cache')!r}"
    run = other.run(before=shared)
    assert run.status == expected, run.log
    (other.folder / "more.ptx").write_text(PTX.replace("= 1", "= 2"))
    assert other.run(before=shared).status == "linked again"


def test_values_of_python_numba_and_numpy_are_known(program):
    program.write(
        """
        import math, decimal
        add = Add(3, a=math.pi, b=np.float32, c=types.int32, d=math, e=np.add, f=cuda.grid, g=decimal.Decimal(1), h=len)
        """,
        KERNEL.replace("add(x[1])", "add(x[1]) + int(math.sqrt(x[1]))").replace("@cuda", "import math\n@cuda"),
    )
    assert program.run().status == "built"
    run = program.run()
    assert run.status == "loaded", run.log


# What docs/caching.md names as not noticed: a variable of the environment stands for it.
_AMOUNT = "int(os.environ['AMOUNT'])"
NOT_NOTICED = {
    "an attribute of a class of Numba": f"types.Integer.amount = {_AMOUNT}\ndef read(): return types.int32.amount",
    "an attribute of a class of Python": (
        f"import fractions\nfractions.Fraction.amount = {_AMOUNT}\ndef read(): return fractions.Fraction.amount"
    ),
    "a file": "def read(): return int(open(os.environ['PLACE']).read())",
    "the environment": f"def read(): return {_AMOUNT}",
    "a clock": "import time\ndef read(): return time.time_ns() % 1000003",
}
NUMBERED = """
def read{0}():
    return read()
def more{0}(x): pass
@overload(more{0}, target="cuda")
def ol_more{0}(x):
    n = read{0}()
    return lambda x: x + n
class Reading{0}(Add):
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("add", read{0}()))
reads{0} = Reading{0}(3)
"""
USERS = """
@cuda.jit(cache=True)
def overload{0}(x): x[0] = add(x[1]) + more{0}(x[1])
@cuda.jit(cache=True)
def hook{0}(x): x[0] = reads{0}(x[1])
"""


def test_what_is_not_noticed_in_overloads_and_is_in_hooks(program):
    parts, kernels = ["from numba.cuda.extending import overload", "add = Add(3)"], ["from parts import *"]
    for number, read in enumerate(NOT_NOTICED.values()):
        numbered = NUMBERED.format(number).replace(f"def read{number}():\n    return read()\n", "")
        parts.append(read.replace("def read()", f"def read{number}()") + numbered)
        kernels.append(USERS.format(number))
    program.write("\n".join(parts), "\n".join(kernels))
    names = [f"{kind}{number}" for number in range(len(NOT_NOTICED)) for kind in ("overload", "hook")]
    place = program.folder / "amount"
    for amount, of_overload, of_hook in (1, "built", "built"), (2, "loaded", "linked again"):
        place.write_text(str(amount))
        runs = program.runs(*names, before=f"os.environ.update(AMOUNT='{amount}', PLACE={str(place)!r})")
        assert [run.status for run in runs] == [of_overload, of_hook] * len(NOT_NOTICED)


def test_a_program_that_sets_the_clock_is_cached(program):
    program.write("add = Add(3)")
    runs = [program.run(before="import time\ntime.time = lambda: 1") for _ in range(2)]
    assert [run.status for run in runs] == ["built", "loaded"], runs[1].log


def test_a_stored_answer_with_a_relative_path_holds_in_its_working_directory(program):
    for name, amount in ("one", 1), ("two", 2):
        (program.folder / name / "include").mkdir(parents=True)
        (program.folder / name / "include" / "amount.h").write_text(f"#define AMOUNT {amount}\n")
    (program.folder / "where.txt").write_text("one")
    program.write(
        """
        folder = os.path.dirname(__file__)
        os.chdir(os.path.join(folder, open(os.path.join(folder, "where.txt")).read()))
        class Relative(Add):
            def __numba_cuda_link_key__(self, x):
                return 1
            def __numba_cuda_link__(self, x):
                text = '#include "amount.h"\\n' + code("add", "AMOUNT")
                return autolink.CUDASource(text, include_paths=["include"])
        add = Relative(0)
        """
    )
    one, again = program.run(), program.run()
    (program.folder / "where.txt").write_text("two")
    assert (one.cubin, again.status) == (again.cubin, "loaded")
    assert program.run().cubin != one.cubin


@pytest.mark.parametrize("name", ["a folder of headers", "a file"])
def test_a_stored_answer_holds_for_the_files_of_its_own_checkout(program, servers, name):
    answers = {
        "a folder of headers": """autolink.CUDASource('#include "own.h"', include_paths=[HERE])""",
        "a file": "os.path.join(HERE, 'own.h')",
    }
    answers["a file"] = f"autolink.CUDASource.from_file({answers['a file']})"
    program.write(
        f"""
        HERE = os.path.dirname(os.path.abspath(__file__))
        class Located(Add):
            def __numba_cuda_link_key__(self, x):
                return 1
            def __numba_cuda_link__(self, x):
                return {answers[name]}
        add = Located(0)
        """
    )
    text = 'extern "C" __device__ int add(int x) {{ return x + {}; }}'
    (program.folder / "own.h").write_text(text.format(1))
    other = Program(program.folder.parent / "other", servers)
    shutil.copytree(program.folder, other.folder)
    first = program.run()
    before = f"os.environ['NUMBA_CUDA_AUTOLINK_CACHE_DIR'] = {str(program.folder / 'cache')!r}"
    same = other.run(before=before)
    (other.folder / "own.h").write_text(text.format(2))
    changed, back = other.run(before=before), program.run()
    assert (same.status, same.cubin) == ("loaded", first.cubin), same.log
    assert first.cubin == back.cubin != changed.cubin


def test_an_object_with_methods_alone_is_cached(program):
    program.write(
        """
        class Methods(autolink.DeviceCallable):
            @autolink.device_method
            def plus(self, x):
                return autolink.Extern("add", returns=x)
            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(code("add", 3))
        add = Methods()
        """,
        KERNEL.replace("add(x[1])", "add.plus(x[1])"),
    )
    assert [program.run().status for _ in range(2)] == ["built", "loaded"]

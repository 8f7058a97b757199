# SPDX-License-Identifier: BSD-2-Clause
"""``@cuda.jit(cache=True)`` for kernels with external code. See `kernel_cache_support` for how they run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import pytest
from kernel_cache_support import KERNEL, Program, run_script
from numba.cuda.cudadrv.external_code.cache.store import reset_store

from numba_cuda_autolink.commands.main_command import main


@pytest.fixture
def program(tmp_path, servers):
    return Program(tmp_path, servers)


def test_a_kernel_is_saved_and_loaded_without_a_compiler_or_a_linker(program):
    program.write("add = Add(3)")
    built, loaded = program.run(), program.run()
    assert (built.status, loaded.status) == ("built", "loaded")
    assert built.cubin == loaded.cubin
    assert not built.warnings + loaded.warnings


# The ways in which a kernel reaches an object, and values that differ between processes.
WAYS = """
from parts import *
import parts
parts.below = parts
both, whole = (1, add), Add(9, part=add)
class Steps(autolink.DeviceCallable):
    def __init__(self, size):
        self.size = size
    @autolink.device_method
    def up(self, x):
        return autolink.Extern("up", returns=x)
    @up.link
    def up(self, x):
        return autolink.CUDASource(code("up", self.size))
steps = Steps(add.amount)
class Remembers(Add):
    def __numba_cuda_call__(self, x):
        self.memory[str(x), "call"] = True
        return super().__numba_cuda_call__(x)
    def __numba_cuda_link__(self, x):
        self.memory[x] = self.memory.get(x) or code("add", self.amount)
        return autolink.CUDASource(self.memory[x])
    def __getstate__(self):
        return {"amount": self.amount}
holds = Remembers(add.amount, lock=threading.Lock(), memory={}, pid=os.getpid(), s={"a", "b", "c"})
holds.me = holds
def make(f):
    @cuda.jit(cache=True)
    def kernel(x): x[0] = f(x[1])
    return kernel
of_closure, of_holder = make(add), make(holds)
@cuda.jit
def apply(f, x): return f(x)
@cuda.jit(cache=True)
def of_module(x): x[0] = parts.below.add(x[1])
@cuda.jit(cache=True)
def of_tuple(x): x[0] = both[1](x[1])
@cuda.jit(cache=True)
def of_object(x): x[0] = whole.part(x[1])
@cuda.jit(cache=True)
def of_argument(x): x[0] = apply(add, x[1])
@cuda.jit(cache=True)
def of_method(x): x[0] = steps.up(x[1])
@cuda.jit(cache=True)
def of_inner(x):
    def inner(y): return add(y)
    x[0] = inner(x[1])
@cuda.jit(cache=True)
def constant(x):
    memory = cuda.local.array(add.amount, "int32")
    x[0] = len(memory)
"""


def test_an_object_is_found_again_however_a_kernel_reaches_it(program):
    names = [*re.findall(r"def (of_\w+|constant)\(", WAYS), "of_closure", "of_holder"]
    program.write("add = Add(int(os.environ.get('AMOUNT', 3)))", WAYS)
    built, loaded = program.runs(*names), program.runs(*reversed(names))
    assert {run.status for run in built} == {"built"}
    assert {run.status for run in loaded} == {"loaded"}, loaded[0].log
    assert [run.cubin for run in built] == [run.cubin for run in reversed(loaded)]
    # The text of the program is the same.
    assert {run.status for run in program.runs(*names, before="os.environ['AMOUNT'] = '4'")} == {"built"}


def test_kernels_that_take_each_others_place(program):
    for parts in ("add = Add(3)", "@cuda.jit(device=True)\ndef add(x): return x + 3", "add = Add(4)"):
        program.write(parts)
        assert [program.run().status, program.run().status] == ["built", "loaded"]


def test_a_kernel_with_a_value_that_cannot_be_told_apart_is_not_cached(program):
    program.write("add = Add(3, state=(each for each in ()))")
    for _ in range(2):
        run = program.run()
        assert run.status == "built"
        assert "kernel 'kernel' is not cached: kernel.add: TypeError: cannot pickle 'generator' object" in run.log
    assert program.files() == []


OPTIONS = ["fastmath=True", "lto=False", "max_registers=16", "lineinfo=True", "opt=False", "debug=True, opt=False"]


def test_an_option_makes_another_kernel(program):
    # The file stays the same: its content must not decide.
    kernels = """
    import builtins
    from parts import *
    def make(options):
        def kernel(x):
            x[0] = add(x[1])
        return cuda.jit(kernel, cache=True, **options)
    for number, options in enumerate(builtins.options):
        globals()[f"kernel{number}"] = make(options)
    """
    program.write("add = Add(3)", kernels)
    before = f"import builtins; builtins.options = [{', '.join(f'dict({each})' for each in ['', *OPTIONS])}]"
    names = [f"kernel{number}" for number in range(len(OPTIONS) + 1)]
    assert {run.status for run in program.runs(*names, before=before)} == {"built"}
    assert {run.status for run in program.runs(*reversed(names), before=before)} == {"loaded"}


VERSIONS = {
    "numba-cuda": "numba_cuda.__version__ = '99'",
    "numba-cuda-autolink": "import numba_cuda_autolink; numba_cuda_autolink.__version__ = '99'",
    "NVRTC": "toolkit.nvrtc_build = lambda: '99.0'",
    "nvJitLink": "toolkit.nvjitlink_build = lambda: '99.0'",
    "NVVM": "toolkit.nvvm_build = lambda: 'libdevice 99'",
    "toolkit": "magic = codegen.JITCUDACodegen.magic_tuple;"
    " codegen.JITCUDACodegen.magic_tuple = lambda self: ((99, 0), magic(self)[1])",
}


def test_another_version_architecture_or_signature_makes_another_kernel(program):
    program.write("add = Add(3)")
    others = [{"before": each} for each in VERSIONS.values()] + [{"cc": (8, 0, "")}, {"signature": "void(int32[:])"}]
    assert [program.run(**other).status for other in [{}, *others]] == ["built"] * (len(others) + 1)
    assert program.run().status == "loaded"


# Files that are linked

ADD_ONE = 'extern "C" __device__ int add(int x) { return x + 1; }'

FILES = {
    "link=": ("add = cuda.declare_device('add', 'int32(int32)', abi='c')", "link=[FILE]"),
    "declare_device(link=)": ("add = cuda.declare_device('add', 'int32(int32)', abi='c', link=FILE)", ""),
    "a hook": ("Add.__numba_cuda_link__ = lambda self, x: FILE\nadd = Add(3)", ""),
}


@pytest.mark.parametrize("parts, option", FILES.values(), ids=FILES)
def test_linked_files_and_headers_count_by_their_content(program, parts, option):
    file, header = program.folder / "add.cu", program.folder / "two.h"
    file.write_text('#include "one.h"\nextern "C" __device__ int add(int x) { return x + AMOUNT; }')
    (program.folder / "one.h").write_text('#include "two.h"\n')
    header.write_text("#define AMOUNT 1\n")
    program.write(f"FILE = {str(file)!r}\n{parts}", KERNEL.replace("cache=True", f"cache=True, {option}"))
    assert [program.run().status, program.run().status] == ["built", "loaded"]
    os.utime(file, (1, 1))
    assert program.run().status == "loaded"
    for edited in header, file:
        edited.write_text(edited.read_text().replace("AMOUNT 1", "AMOUNT 2").replace("x + A", "2 * x + A"))
        assert [program.run().status, program.run().status] == ["linked again", "loaded"]
    file.unlink()
    with pytest.raises(AssertionError, match="not found"):
        program.run()


def test_another_file_under_link_makes_another_kernel(program):
    for name, amount in ("one", 1), ("two", 2):
        (program.folder / f"{name}.cu").write_text(f'extern "C" __device__ int add(int x) {{ return x + {amount}; }}')
    kernels = KERNEL.replace("cache=True", "cache=True, link=[FILE]")
    declared = "add = cuda.declare_device('add', 'int32(int32)', abi='c')\nFILE = "
    for name, status in ("one", "built"), ("two", "built"), ("one", "loaded"), ("two", "loaded"):
        program.write(declared + repr(str(program.folder / f"{name}.cu")), kernels)
        assert program.run().status == status


# Callbacks

WITH_CALLBACKS = """
def on_load(module): pass
def on_unload(module): pass
class Add(Add):
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("add", self.amount), setup_callback=on_load, teardown_callback=on_unload)
add = Add(3)
"""


def test_a_loaded_kernel_gets_its_callbacks_again(program):
    program.write(WITH_CALLBACKS)
    for status in "built", "loaded":
        run = program.run()
        assert (run.status, run.setup, run.teardown) == (status, ["on_load"], ["on_unload"])


def test_a_declared_functions_callbacks_are_got_again(program):
    declared = "cuda.declare_device('add', 'int32(int32)', abi='c', link=cuda.CUSource(code('add', 1), None, on_load))"
    program.write(f"{WITH_CALLBACKS}\nadd = {declared}")
    for status in "built", "loaded":
        run = program.run()
        assert (run.status, run.setup, run.teardown) == (status, ["on_load"], [])


# The link key

GENERATED = """
from cuda.core import Program, ProgramOptions
class Generated(Add):
    def __numba_cuda_link_key__(self, x):
        return self.amount, str(x)
    def __numba_cuda_link__(self, x):
        said.append("generated")
        options = ProgramOptions(arch="sm_90", relocatable_device_code=True, link_time_optimization=True)
        made = Program(code("add", self.amount), "c++", options=options).compile("ltoir")
        return cuda.LTOIR(bytes(made.code), setup_callback=CALLBACK)
add = Generated(3)
"""


def test_with_a_link_key_the_generator_does_not_run_again(program):
    program.write(GENERATED.replace("CALLBACK", "None"))
    assert program.run().said == ["generated"]
    run = program.run()
    assert (run.status, run.said) == ("loaded", [])


def test_a_generator_with_callbacks_is_asked_for_them(program):
    program.write(GENERATED.replace("CALLBACK", "lambda module: None"))
    assert program.run().status == "built"
    run = program.run()
    assert (run.status, run.said, run.setup) == ("loaded", ["generated"], ["<lambda>"])


# What is not reached by name


def test_an_object_that_no_name_reaches_is_not_cached(program):
    parts = """
    from numba.cuda.extending import overload
    def add(x): pass
    @overload(add, target="cuda")
    def ol_add(x):
        inner = Add(3)
        return lambda x: inner(x)
    """
    program.write(parts)
    for _ in range(2):
        run = program.run()
        assert run.status == "built"
        assert "is not cached: Add(amount=3)(int32) called at " in run.log
        assert "neither a global nor a closure variable" in run.log
    assert program.files() == []


ARGUMENT_TYPE = """
from numba.cuda.datamodel import models
from numba.cuda.extending import overload_method, register_model
class ArgumentType(types.Opaque):
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("add", AMOUNT))
register_model(ArgumentType)(models.OpaqueModel)
declared = cuda.declare_device("add", "int32(int32)", abi="c")
@overload_method(ArgumentType, "add", target="cuda")
def ol_add(self, x):
    return lambda self, x: declared(x)
"""


def test_the_type_of_a_kernels_argument_is_found(program):
    kernels = "from parts import *\n@cuda.jit(cache=True)\ndef kernel(adder, x): x[0] = adder.add(x[1])"
    wanted = "(importlib.import_module('parts').ArgumentType('adder'), types.int32[::1])"
    for amount in "34":
        program.write(ARGUMENT_TYPE.replace("AMOUNT", amount), kernels)
        assert program.run(signature=wanted).status == "built"
        assert program.run(signature=wanted).status == "loaded"


def test_numba_cudas_own_external_code_is_taken_as_it_is(program):
    kernels = """
    from numba import cuda
    from numba.cuda.fp16 import hexp10
    @cuda.jit(cache=True)
    def kernel(x):
        x[0] = hexp10(x[1])
    """
    program.write("", kernels)
    assert program.run(signature="void(float16[::1])").status == "built"
    assert program.run(signature="void(float16[::1])").status == "loaded"


# numba-cuda's own cache

PLAIN = "from parts import *\n@cuda.jit(cache=True)\ndef kernel(x): x[0] = x[1] + 3"


def run_alone(program, check):
    """Without this project: whether upstream finds the kernel."""
    text = f"""
    import sys
    sys.path.insert(0, {str(program.folder)!r})
    from numba import cuda
    from numba.cuda import codegen, config, types
    config.CACHE_DIR = {str(program.folder / "numba")!r}
    codegen.JITCUDACodegen.magic_tuple = lambda self: ((13, 0), (9, 0, "a"))
    import kernels
    assert "numba.cuda.autolink" not in sys.modules or "Add" in {(program.folder / "parts.py").read_text()!r}
    cache = kernels.kernel._cache
    kernel = cache.load_overload((types.int32[::1],), kernels.kernel.targetctx)
    assert {check}, kernel
    """
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(text)], check=True, env=environment)


def test_a_plain_kernel_is_in_numba_cudas_own_files(program):
    program.write("", PLAIN)
    assert program.run().status == "built"
    for file in program.numba_files():  # numba-cuda looks at no modes
        file.chmod(0o666)
    assert program.run().status == "loaded"
    assert [file.suffix for file in program.numba_files()] == [".nbc", ".nbi"]
    assert b"autolink" not in b"".join(file.read_bytes() for file in program.numba_files())
    assert program.files() == []
    run_alone(program, "type(kernel._codelibrary).__name__ == 'CUDACodeLibrary'")


def test_a_kernel_that_needs_numba_cudas_runtime_alone_is_in_its_files(program):
    kernels = """
    from parts import *
    @cuda.jit(cache=True)
    def kernel(x):
        x[0] = np.ones(4, np.int32)[x[1]]
    """
    program.write("", kernels)
    enable = "config.CUDA_ENABLE_NRT = True"
    assert program.run(before=enable).status == "built"
    assert program.run(before=enable).status == "loaded"
    assert [file.suffix for file in program.numba_files()] == [".nbc", ".nbi"]
    assert b"autolink" not in b"".join(file.read_bytes() for file in program.numba_files())
    assert program.files() == []


def test_without_this_project_its_files_are_not_in_the_way(program):
    program.write("add = Add(3)")
    assert program.run().status == "built"
    assert program.file().exists()
    assert program.numba_files() == []
    run_alone(program, "kernel is None")


# Faults


def test_a_damaged_file_costs_one_warning_and_a_build(program):
    program.write("add = Add(3)")
    good, path = program.run(), program.file()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    run = program.run()
    assert (run.status, run.cubin, len(run.warnings)) == ("built", good.cubin, 1)
    assert "found a damaged cache entry and rebuilds it" in run.warnings[0]
    assert program.run().status == "loaded"


def test_the_kernels_are_cleared_and_listed_with_the_rest(program, monkeypatch, capsys):
    program.write("add = Add(3)")
    assert program.run().status == "built"
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(program.folder / "cache"))
    said = []
    for action in ["info"], ["why", "kernel", "--kind", "kernel", "-v"], ["clear"]:
        reset_store()
        assert main(["cache", *action]) == 0
        said.append(capsys.readouterr().out)
    monkeypatch.undo()
    reset_store()
    assert "  kernel: 1 entry, " in said[0]
    assert "kernel (cache=True): first build" in said[1] and "  value kernel.add.amount: 3\n" in said[1]
    assert program.files() == []
    assert program.run().status == "built"


def test_nothing_is_unpickled_that_another_user_could_have_written(program):
    program.write("add = Add(3)")
    assert program.run().status == "built"
    program.file().chmod(0o777)
    run = program.run(
        before="""
import pickle
from numba.cuda.autolink.kernel_cache import stored_kernel
def refuse(*args):
    os._exit(1)
stored_kernel._KernelUnpickler = pickle.loads = refuse
"""
    )
    assert run.status == "built"
    assert ["of its cache: it can be written to by any user" in warning for warning in run.warnings] == [True]


def test_recompile_forgets_the_function_s_kernels(program):
    program.write("add = Add(3)")
    assert program.run().status == "built"
    program.write("add = Add(3)", KERNEL.replace("kernel", "other"))
    program.runs("other")
    program.write("add = Add(3)", KERNEL + KERNEL.replace("kernel", "other"))
    assert [run.status for run in program.runs("kernel", "other")] == ["built", "built"]
    assert len(program.files()) == 4  # two functions, each with an earlier source of its file
    forget = "import kernels; kernels.kernel._cache.flush()"
    assert [run.status for run in program.runs("kernel", "other", before=forget)] == ["built", "loaded"]


def test_a_miss_says_what_differs(program):
    program.write("add = Add(3)")
    program.run()
    program.write("add = Add(4)")
    log = program.run().log
    assert "not cached; kernel: add: Add(amount=3) -> Add(amount=4)" in log and "amount: 3 -> 4" not in log


def test_a_header_that_is_edited_before_it_is_compiled_is_cached_as_it_was_compiled(program):
    (program.folder / "add.cu").write_text('#include "amount.h"\n' + ADD_ONE.replace("1", "AMOUNT"))
    header = program.folder / "amount.h"
    header.write_text("#define AMOUNT 1\n")
    file = str(program.folder / "add.cu")
    program.write(f"FILE = {file!r}\nadd = cuda.declare_device('add', 'int32(int32)', abi='c', link=FILE)")
    edit = f"""
original = link_run.run_link
def link(*args, **kwargs):
    with open({str(header)!r}, "w") as file:
        file.write("#define AMOUNT 2")
    return original(*args, **kwargs)
link_run.run_link = link
"""
    edited, loaded = program.run(before=edit), program.run()
    header.write_text("#define AMOUNT 1\n")
    first = program.run()
    assert [edited.status, loaded.status, first.status] == ["built", "loaded", "linked again"]
    assert edited.cubin == loaded.cubin != first.cubin


def test_the_cache_can_be_turned_off(program):
    program.write("add = Add(3)")
    off = "os.environ['NUMBA_CUDA_AUTOLINK_CACHE'] = '0'"
    assert program.run().status == "built"
    assert program.run(before=off).status == "built"
    assert program.run().status == "loaded"
    program.file().unlink()
    assert program.run(before=off).status == "built"
    assert program.files() == []


def test_verify_mode_builds_again_what_is_cached_and_compares(program):
    parts = """
    from numba.cuda.extending import overload
    add = Add(3)
    """
    hidden = """
    from numba.cuda.extending import overload
    def more(x): pass
    @overload(more, target="cuda")
    def ol_more(x):
        import logging
        amount = logging.getLogger("amount").level
        return lambda x: x + amount
    """
    (program.folder / "hidden.py").write_text(textwrap.dedent(hidden))
    kernels = KERNEL.replace("add(x[1])", "more(add(x[1]))") + "from hidden import more\n"
    program.write(parts, kernels)
    plain = "import logging; logging.getLogger('amount').setLevel(5)"
    verify = f"{plain}; os.environ['NUMBA_CUDA_AUTOLINK_CACHE'] = 'verify'"
    assert program.run(before=plain).status == "built"
    assert program.run(before=verify).status == "built"
    assert program.run(before=plain).status == "loaded"
    # Nothing sees that an overload depends on the level of a logger.
    with pytest.raises(
        AssertionError, match="CacheMismatchError: kernel 'kernel' from disk differs from what is built"
    ):
        program.run(before=verify.replace("5", "6"))


LOOK_UPS = (
    'getattr(settings, "AMO" + "UNT")',
    'operator.attrgetter("AMO" + "UNT")(settings)',
    'vars(settings)["AMO" + "UNT"]',
    'globals()["AMO" + "UNT"]',
    'eval("AMO" + "UNT")',
    'sys.modules["settings"].AMOUNT',
    'importlib.import_module("settings").AMOUNT',
)


def test_a_kernel_is_not_cached_whose_overload_looks_up_what_its_code_does_not_name(program):
    text, kernels = ["AMOUNT = 3"], []
    for number, look_up in enumerate(LOOK_UPS):
        text.append(f"""
            import importlib, operator, sys
            from numba.cuda.extending import overload
            import settings
            def more{number}(x): pass
            @overload(more{number}, target="cuda")
            def ol_more(x):
                amount = {look_up}
                return lambda x: x + amount
        """)
        own = KERNEL.replace("def kernel", f"def kernel{number}").replace("add(x[1])", f"more{number}(add(x[1]))")
        kernels.append(own + f"from looks_up import more{number}\n")
    (program.folder / "settings.py").write_text("AMOUNT = 3\n")
    (program.folder / "looks_up.py").write_text("\n".join(map(textwrap.dedent, text)))
    program.write("add = Add(3)", "".join(kernels))
    names = [f"kernel{number}" for number in range(len(LOOK_UPS))]
    for _ in range(2):
        runs = program.runs(*names)
        assert {run.status for run in runs} == {"built"}
        said = [line for line in runs[0].log.splitlines() if "while a kernel is compiled" in line]
        assert [f"kernel {name!r} is not cached: " in line for name, line in zip(names, said, strict=True)] == [
            True
        ] * 7


WITH_VARIABLE = """
HERE = os.path.dirname(__file__)
class Table(Add):
    def __init__(self, *values):
        self.table = autolink.Variable("table", np.int32, 2, space="SPACE", value=list(values))
    def __numba_cuda_link__(self, x):
        yield self.table
        yield autolink.CUDASource(self.table.declaration + code("add", "table[0]"))
add = Table(*map(int, open(HERE + "/values").read().split(", ")))
"""


def test_a_kernel_with_a_variable_is_loaded_whatever_the_value_and_set(program):
    values = program.folder / "values"
    program.write(WITH_VARIABLE.replace("SPACE", "constant"))
    values.write_text("3, 4")
    built = program.run()
    values.write_text("5, 6")
    loaded = program.run()
    assert (built.status, loaded.status, built.cubin) == ("built", "loaded", loaded.cubin)
    assert built.setup == loaded.setup == ["_set_up"] and built.teardown == loaded.teardown == ["_tear_down"]
    program.write(WITH_VARIABLE.replace("SPACE", "device"))
    assert program.run().status == "built"


# On a GPU


LAUNCH = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.cudadrv.external_code.link import checked_link
    from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
    ran = []
    def spy(module, name):
        original = getattr(module, name)
        setattr(module, name, lambda *args, **kwargs: (ran.append(name), original(*args, **kwargs))[1])
    spy(nvrtc_processes, "run_in_child")
    spy(nvvm, "compile_ir")
    spy(checked_link, "link_here")
    import kernels, parts
    for name in sys.argv[2:]:
        x = cuda.to_device(np.array([0, 10, 20, 30], dtype=np.int32))
        getattr(kernels, name)[1, 1](x)
        hits = sum(getattr(kernels, name).stats.cache_hits.values())
        how = "built" if not hits else "linked" if ran else "loaded"
        print(name, x.copy_to_host()[0], how, *parts.said)
"""


def launch(program, *names):
    """Launch kernels in a process of its own; for each its name, its result, how it was got and what was said."""
    printed = run_script(program.folder, LAUNCH, str(program.folder), *names, CACHE=str(program.folder / "cache"))
    return [tuple(line.split()) for line in printed.splitlines()]


@pytest.mark.gpu
@pytest.mark.parametrize("lto", [True, False])
def test_a_fresh_process_launches_a_cached_kernel(program, lto):
    kernels = KERNEL.replace("cache=True", f"cache=True, lto={lto}")
    program.write("add = Add(3)", kernels)
    assert launch(program, "kernel") == [("kernel", "13", "built")]
    assert launch(program, "kernel") == [("kernel", "13", "loaded")]
    program.write("add = Add(4)", kernels)
    assert launch(program, "kernel") == [("kernel", "14", "built")]
    assert launch(program, "kernel") == [("kernel", "14", "loaded")]


@pytest.mark.gpu
def test_callbacks_of_a_loaded_kernel_run(program):
    parts = WITH_CALLBACKS.replace(
        "on_load(module): pass", "on_load(module): said.append(f'setup-{module.handle != 0}')"
    )
    kernels = KERNEL + "@cuda.jit(cache=True)\ndef without(x): x[0] = x[1] + 1"
    program.write(parts, kernels)
    for how in "built", "loaded":
        without, kernel, again = launch(program, "without", "kernel", "kernel")
        assert without == ("without", "11", how)
        assert kernel == ("kernel", "13", how, "setup-True")
        assert again == ("kernel", "13", how, "setup-True")


@pytest.mark.gpu
def test_variables_of_a_loaded_kernel_are_set(program):
    for value, how in (3, "built"), (4, "loaded"):
        (program.folder / "values").write_text(f"{value}, 0")
        program.write(WITH_VARIABLE.replace("SPACE", "constant"))
        assert launch(program, "kernel") == [("kernel", str(10 + value), how)]

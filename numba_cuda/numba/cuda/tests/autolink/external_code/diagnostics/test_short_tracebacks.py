# SPDX-License-Identifier: BSD-2-Clause
"""The traceback of a failed build shows the user's lines and the message, and the whole of it on request."""

import builtins
import re
import subprocess
import sys

import pytest
from emulator_support import run_emulated
from front_ends import MODULES, front_end_named
from kernel_cache_support import run_warm
from numba import cuda
from numba.cuda import autolink

from numba_cuda_autolink import short_tracebacks
from numba_cuda_autolink.short_tracebacks import VARIABLE, short_traceback, warn_user

SCRIPT = """
from numba import cuda
from numba.cuda import autolink

class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("scale", returns=x)

    def __numba_cuda_link__(self, x):
        raise ValueError("float64 only")

scale = Scale()

@cuda.jit(device=True)
def scaled(x):
    return scale(x) + abs(x)

def kernel(x):
    x[0] = scaled(x[1])

autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""

EMULATED = """
import sys, traceback, warnings
import numpy as np
from numba import cuda
from numba.cuda import autolink
@cuda.jit
def kernel(x):
    x[cuda.grid(1)] = 1
x = np.zeros(10, np.float32)
build = autolink.build
warnings.simplefilter("ignore")
launched = kernel if "launch" in sys.argv else build(kernel, "void(float32[::1])", cc=(9, 0)).emulate
try:
    launched[1, 64](x)
except Exception:
    traceback.print_exc()
"""
WARNED = """
import numpy as np
from numba import cuda
from numba.cuda import autolink
lib = autolink.cxx("__device__ float f(float x) { int unused; return x; }")
@cuda.jit
def kernel(x):
    x[0] = lib.f(x[1])
linked = autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
linked.report
linked.emulate[1, 1](np.zeros(2, np.float32))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("short") / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(params=list(MODULES))
def package(request):
    """The package of each front end in turn."""
    return front_end_named(request.param).cuda.__name__.partition(".")[0]


@pytest.fixture
def run(servers):
    def run(*command, **environment):
        done = run_warm(servers, *command, **environment)
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    return run


def test_a_script_shows_its_own_lines_and_the_place_below_the_diagnosis(script, run):
    text = run(script)
    assert len(text.splitlines()) <= 20
    assert "numba_cuda/" not in re.sub(r"(?m)^.*Error: ", "", text)
    _, _, message = text.rpartition("TypingError: Scale")
    diagnosis, place, source, caret, *others = message.splitlines()
    assert diagnosis == ".__numba_cuda_link__ raised ValueError: float64 only"
    assert place == f"  called at: {script}:16 in scaled"
    assert source[caret.index("^") : caret.rindex("^") + 1] == "scale(x)"
    assert f"  called from: {script}:19 in kernel" in others
    assert f"{VARIABLE}=full" in others[-1]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "autolink.build(lambda: None, 'void()', ccc=1)",
            "TypeError: build() and cuda.jit have no option 'ccc'; did",
        ),
        ("autolink.cxx('', namespace=1)", "ValueError: cxx() takes the namespace as a name such as 'a::b', got 1"),
        ("autolink.cxx('').type('a;')", "ValueError: a type of C++ is its name alone, without ';'"),
        ("autolink.Variable('v', 'f4', space='constnat')", "'constnat'; did you mean constant?"),
        ("autolink.report(kernell=1)", "TypeError: report() has no parameter 'kernell'; did you mean kernel?"),
    ],
)
def test_what_is_refused_shows_no_frame_of_the_compiler(tmp_path, run, statement, message):
    (path := tmp_path / "script.py").write_text(f"from numba.cuda import autolink\n\n{statement}\n")
    text = run(path)
    assert message in text
    assert re.findall('File "(/.*)"', text) == [str(path)]


def test_an_error_that_python_raises_in_the_compiler_shows_its_frames():
    """Such as a fault of the compiler: the frames are what a report of it needs."""
    with pytest.raises(ZeroDivisionError) as raised, short_traceback():
        raise ZeroDivisionError
    assert "__tracebackhide__" not in raised.traceback[-1].frame.f_locals
    with pytest.raises(ValueError) as raised, short_traceback():
        int("x")
    assert not hasattr(raised.value, "_numba_cuda_autolink_message")


def test_a_setting_shows_all_frames(script, run):
    assert run(script, **{VARIABLE: "full"}).count('\n  File "') > 20


def test_ipython_shows_the_cells_lines(script, run):
    code = "import sys; from IPython.core.interactiveshell import InteractiveShell as Shell\n"
    code += "Shell.instance(colors='NoColor').run_cell(open(sys.argv[1]).read())"
    pytest.importorskip("IPython")
    text = run("-c", code, script)
    assert len(text.splitlines()) <= 25
    assert "Error: Scale.__numba_cuda_link__ raised ValueError: float64 only" in text
    assert "dispatcher.py" not in text


@pytest.mark.parametrize(
    ("statement", "diagnosis"),
    [
        ("kernel['a', 1](None)", "needs the sizes of a grid and its blocks: blocks must be a sequence of integers"),
        ("try: build()\nexcept Exception as error: raise RuntimeError('later') from error", "RuntimeError: later"),
    ],
)
def test_ipython_shows_no_frames_of_a_front_end(tmp_path, statement, diagnosis):
    (script := tmp_path / "cell.py").write_text(f"{REFUSED}\n{statement}")
    code = "import sys; from IPython.core.interactiveshell import InteractiveShell as Shell\n"
    code += "Shell.instance(colors='NoColor').run_cell(open(sys.argv[1]).read())"
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-c", code, script], capture_output=True, text=True)  # before Numba is there
    text = done.stdout + done.stderr
    assert diagnosis in text
    assert "dispatcher.py" not in text and "seams.py" not in text
    assert text.count("too many arguments in function call") <= 1


def test_a_fault_in_what_explains_an_error_leaves_it_as_it_is(monkeypatch, capsys):
    monkeypatch.setattr(short_tracebacks, "_explain", lambda error: 1 / 0)
    with pytest.raises(AttributeError) as raised:
        autolink.cxxx  # noqa: B018
    sys.excepthook(raised.type, raised.value, raised.tb)
    text = capsys.readouterr().err
    assert "has no attribute 'cxxx'" in text and "ZeroDivisionError" not in text


def test_another_hook_for_uncaught_errors_gets_the_short_traceback(script, run):
    code = "import sys; before = sys.excepthook; sys.excepthook = lambda *error: before(*error)\n"
    code += "exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'))"
    assert len(run("-c", code, script).splitlines()) <= 22


def test_a_hook_set_later_does_not_repeat_what_is_printed(script, run):
    code = "import sys; from numba.cuda import autolink; before = sys.excepthook\n"
    code += "sys.excepthook = lambda *error: before(*error)\n"
    code += "exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'))"
    assert run("-c", code, script).count("frames are hidden") == 1


def test_plain_numba_errors_begin_with_the_diagnosis_and_the_place(tmp_path, run):
    script = tmp_path / "plain.py"
    script.write_text(SCRIPT.replace("scaled(x[1])", "x[1] + 'a'"))
    diagnosis, place, source, _, *others = run(script).partition("TypingError: ")[2].splitlines()
    assert diagnosis == "No implementation of add(float32, 'a')"
    assert (place, source) == (f"  at: {script}:19 in kernel", "      x[0] = x[1] + 'a'")
    assert others[0] == "  what to do: use numbers: kernels have text in print() alone"
    assert len(others) == 2 and f"{VARIABLE}=full" in others[1]


@pytest.mark.parametrize(
    ("statement", "diagnosis", "remedy"),
    [
        ("cuda.syncthreads().x", "a value is None, which has no attribute 'x'", "use another value"),
        ("i = cuda.gird(1)", "has no attribute 'gird'; did you mean grid?\n  at: ", ""),
        ("x[cuda.thredIdx.x] = 1", "has no attribute 'thredIdx'; did you mean threadIdx?", ""),
        ("cuda.atomic.add(x, 0)", "TypingError: cuda.atomic.add(ary, idx, val) takes 3 ", "pass val, too"),
        ("x[0] = abs", "Error: ", ""),
        ("x[0] = x.sise", "of type array(float32, 1d, C); did you mean size?", ""),
        ("x[0] = nowhere(x)", "TypingError: name 'nowhere' is not defined", "define it before the kernel"),
        (
            "return x[0]",
            "TypingError: kernels return nothing, and this one returns float32\n",
            "write the result to an array",
        ),
        (
            "x[x[0]] = 1",
            "TypingError: Unsupported array index type float32 in [float32]",
            "convert the index with int(",
        ),
        ("y = []; y.append(x[0])", "TypingError: kernels have no lists, ", "make an array, with cuda.local.array"),
        (
            "x[0] = (1, 2.0)[cuda.grid(1)]",
            "TypingError: No implementation of getitem((1, float64)",
            "as a constant",
        ),
        (
            "x[0] = plain(x[0])",
            "TypingError: kernels cannot call the Python function 'plain': it is not a device function",
            "cuda.jit(device=True)",
        ),
        ("cuda.shared.array(32, 'float33')", "TypingError: the dtype of an array is not one of", "such as np.float32"),
    ],
)
def test_a_plain_mistake_is_a_diagnosis_a_place_and_a_remedy(tmp_path, run, package, statement, diagnosis, remedy):
    script = tmp_path / "plain.py"
    script.write_text(
        SCRIPT.replace("from numba import cuda", f"from {package} import cuda")
        .replace("def kernel", "def plain(x): return x\n\n@cuda.jit\ndef kernel")
        .replace("x[0] = scaled(x[1])", statement)
    )
    text = run(script)
    assert len(text.splitlines()) <= 12
    assert diagnosis in text
    assert f"\n  at: {script}:22" in text and f"\n      {statement}\n      " in text
    assert not remedy or re.search(rf"\n  what to do: .*{re.escape(remedy)}", text)


def test_a_wrong_attribute_is_underlined_rather_than_a_call_of_its_line(tmp_path, run, package):
    script = tmp_path / "plain.py"
    statement = "x[cuda.thredIdx.x] = abs(x[1])"
    script.write_text(
        SCRIPT.replace("from numba import cuda", f"from {package} import cuda").replace(
            "x[0] = scaled(x[1])", statement
        )
    )
    assert f"\n      {statement}\n        ^^^^^^^^^^^^^\n" in run(script)


def test_plain_numba_errors_about_memory_say_what_to_do(tmp_path, run):
    script = tmp_path / "plain.py"
    script.write_text(SCRIPT.replace("x[0] = scaled(x[1])", "y = x * 2\n    x[0] = y[1]"))
    diagnosis, place, source, _, remedy, *_ = run(script).partition("TypingError: ")[2].splitlines()
    assert diagnosis.startswith("kernels do not allocate memory for lists, texts and arrays")
    assert (place, source) == (f"  at: {script}:19", "      y = x * 2")
    assert remedy.startswith("  what to do: make the array with cuda.local.array")


FRAMES_LEFT = int(sys.version_info < (3, 11))  # of the compiler in a traceback that is handled
REFUSED = """
from numba import cuda
from numba.cuda import autolink
lib = autolink.cxx("__device__ float f(float x) { return x; }")
@cuda.jit
def kernel(x):
    x[0] = lib.f(x[0], 1)
def build():
    autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""


@pytest.mark.parametrize(
    ("statement", "printed_by"),
    [
        ("try: build()\nexcept Exception: traceback.print_exc()", "a handler"),
        ("thread = threading.Thread(target=build); thread.start(); thread.join()", "a thread"),
        ("try: build()\nexcept Exception as error: raise RuntimeError('later') from error", "Python"),
    ],
)
def test_an_error_is_printed_once_and_without_frames_of_the_compiler(tmp_path, run, statement, printed_by):
    (script := tmp_path / "refused.py").write_text(f"import threading, traceback\n{REFUSED}{statement}\n")
    text = run(script)
    assert text.count("too many arguments in function call") == 1
    assert text.count("numba_cuda/numba/cuda/") <= (FRAMES_LEFT if printed_by == "a handler" else 0)


def test_what_the_simulator_cannot_run_is_at_the_line_of_the_kernel(tmp_path, run, monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    text = "lib = autolink.cxx('__device__ float f(float x) { return x; }')\n"
    text += "@cuda.jit\ndef kernel(x):\n    x[0] = lib.f(x[0])\nkernel[1, 1](np.zeros(1))\n"
    (script := tmp_path / "simulated.py").write_text(
        f"import numpy as np\nfrom numba import cuda\nfrom numba.cuda import autolink\n{text}"
    )
    printed = run(script)
    assert re.findall('File "(/.*)", line (\\d+)', printed) == [(str(script), "8"), (str(script), "7")]
    assert "f is device code, which the simulator cannot run\n" in printed
    assert "\n  what to do: decorate a Python function that does the same with its .python\n" in printed


def test_what_a_hook_raises_in_a_library_is_printed_once(script, run, tmp_path):
    (deep := tmp_path / "deep.py").write_text(
        "import json\n" + script.read_text().replace('raise ValueError("float64 only")', 'json.loads("{bad")')
    )
    text = run(deep)
    assert text.count("JSONDecodeError") == text.count("Traceback") == 1
    assert re.findall('File "(/.*)"', text) == [str(deep)] and f"raised at: {deep}:" in text


def test_a_cause_that_says_more_than_the_error_stays_its_cause(script, run):
    code = "import sys\ntry: exec(compile(open(sys.argv[1]).read().replace('= scaled(', '= scale('), 'x', 'exec'))\n"
    code += "except Exception as error: print(repr(error.__cause__))"
    assert "ValueError('float64 only')" in run("-c", code, script)


def test_a_refused_launch_of_a_finished_kernel_shows_the_users_line_alone(tmp_path, run):
    script = tmp_path / "launch.py"
    script.write_text(SCRIPT.replace("scaled(x[1])", "x[1]") + "    .emulate[1, 2048](None)\n")
    script.write_text(script.read_text().replace("cc=(9, 0))\n    .emulate", "cc=(9, 0)).emulate"))
    text = run(script)
    assert re.findall('File "(/.*)"', text) == [str(script)]
    assert "LaunchError: kernel cannot be launched with block 2048\n" in text
    assert "what to do: launch more blocks of fewer threads, such as [8, 256]" in text


def test_a_handled_error_of_an_emulated_launch_has_one_frame_of_the_compiler(tmp_path, run):
    script = tmp_path / "launch.py"
    script.write_text(EMULATED)
    text = run(script)
    assert re.findall('File "(.*)"', text)[0::2] == [str(script)]
    assert f"  at: {script}:8\n      x[cuda.grid(1)] = 1\n      ^^^^^" in text
    text = run_emulated(script, "launch").stderr
    assert re.findall('File "(.*)"', text)[0::2] == [str(script)]
    assert f"  at: {script}:8\n" in text


@pytest.mark.parametrize("arguments", ["1, 0](x)", "1, 64]([1.0])", "1, 64](np.array([object()]))", "1, 64]('a')"])
def test_a_launch_that_a_front_end_refuses_is_a_diagnosis_and_a_place(tmp_path, package, arguments):
    script = tmp_path / "launch.py"
    script.write_text(EMULATED.replace("traceback.print_exc()", "raise").replace("1, 64](x)", arguments))
    script.write_text(script.read_text().replace("from numba import", f"from {package} import"))
    text = run_emulated(script, "launch").stderr
    assert len(text.splitlines()) <= 16
    assert re.search(rf"Error: .*\n  (?:at|launched at): {re.escape(str(script))}:", text)


def test_an_emulated_launch_shows_the_lines_of_c_plus_plus_in_the_python_file(tmp_path, run):
    script = tmp_path / "launch.py"
    source = 'lib = autolink.cxx("""\n__device__ void put(float *x, int i) {\n    x[i] = 1;\n}""")\n@cuda.jit'
    launch = EMULATED.replace("@cuda.jit", source, 1).replace("x[cuda.grid(1)] = 1", "lib.put(x, cuda.grid(1))")
    script.write_text(launch)
    text = run(script)
    assert f"  at: {script}:8\n      x[i] = 1;\n" in text
    assert f"  inlined at: {script}:12\n" in text


def test_an_assertion_of_a_text_in_python_is_at_its_line(tmp_path, run):
    script = tmp_path / "launch.py"
    source = 'lib = autolink.cxx("""\n__device__ void put(float *x) {\n    assert(*x > 3);\n}""")\n@cuda.jit'
    script.write_text(EMULATED.replace("@cuda.jit", source, 1).replace("x[cuda.grid(1)] = 1", "lib.put(x)"))
    text = run(script)
    assert f"EmulationError: Assertion `*x > 3` failed\n  at: {script}:8\n      assert(*x > 3);\n" in text


def test_a_fault_in_the_source_of_a_hook_is_at_the_line_of_the_python_file(tmp_path, run):
    script = tmp_path / "launch.py"
    made = """class Put(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x, i):
        return autolink.Extern("put")
    def __numba_cuda_link__(self, x, i):
        return autolink.CUDASource('''
            extern "C" __device__ void put(float *x, long long i) {
                x[i] = 1;
            }''')
put = Put()
@cuda.jit"""
    script.write_text(EMULATED.replace("@cuda.jit", made, 1).replace("x[cuda.grid(1)] = 1", "put(x, cuda.grid(1))"))
    assert f"  at: {script}:12\n      x[i] = 1;\n" in run(script)


@pytest.mark.skipif(cuda.is_available(), reason="there is a GPU")
def test_a_launch_without_a_gpu_says_what_runs_without_one(tmp_path, run):
    script = tmp_path / "launch.py"
    script.write_text(EMULATED.replace("traceback.print_exc()", "raise"))
    text = run(script, "launch")
    assert f"  at: {script}:14\n      launched[1, 64](x)\n      ^^^^" in text
    assert "what to do: set NUMBA_CUDA_AUTOLINK_EMULATE=1" in text and len(text.splitlines()) <= 12


def test_what_is_read_of_a_build_does_not_repeat_its_warnings(tmp_path, run):
    script = tmp_path / "warned.py"
    script.write_text(WARNED)
    assert run(script).count("was declared but never referenced") == 1


def test_plain_numba_errors_in_device_functions_name_the_calls(tmp_path, run):
    script = tmp_path / "plain.py"
    script.write_text(SCRIPT.replace("scale(x) + abs(x)", "x.foo"))
    diagnosis, place, _, _, *others = run(script).partition("TypingError: ")[2].splitlines()
    assert (diagnosis, place) == ("Unknown attribute 'foo' of type float32", f"  at: {script}:16 in scaled")
    assert others[0] == f"  called from: {script}:19 in kernel"


def test_the_reason_of_the_one_implementation_that_refuses_is_the_diagnosis(tmp_path, run):
    script = tmp_path / "plain.py"
    readonly = "(types.Array(types.float32, 1, 'C', readonly=True),)"
    script.write_text(SCRIPT.replace("scaled(x[1])", "1").replace('"void(float32[::1])"', readonly))
    text = run("-c", f"from numba.cuda import types; exec(open({str(script)!r}).read())")
    assert "TypingError: Cannot modify readonly array of type: readonly array(float32, 1d, C)\n  at: " in text
    assert "\n  no implementation of setitem(readonly array(float32, 1d, C), " in text


def test_a_warning_names_the_users_line():
    compiler = {"__name__": "numba_cuda.inner", "warn_user": warn_user}
    exec("def compile(): warn_user('unused')", compiler)
    with pytest.warns(UserWarning, match="unused") as caught:
        exec(builtins.compile("\n\ncompile()", "user.py", "exec"), {"__name__": "user", "compile": compiler["compile"]})
    assert (caught[0].filename, caught[0].lineno) == ("user.py", 3)


@pytest.mark.parametrize("number", [12, 13, 14, 30])
def test_what_to_do_is_never_cut(number, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    advice = ["  what to do: a", "    b"]
    message = "\n".join([*(f"  line {each}" for each in range(number - 2)), *advice])
    shown = short_tracebacks.first_lines(message).split("\n")
    assert shown[-2:] == advice and len(shown) <= 14
    cut = [line for line in shown if " more line" in line]
    assert bool(cut) == (number > 14)
    assert not cut or cut == [f"  and {number - 13} more lines: {VARIABLE}=full shows them"]


def test_a_launch_without_a_gpu_says_what_to_do_also_where_it_is_handled(tmp_path, run, package):
    script = tmp_path / "plain.py"
    script.write_text(
        f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\nimport numpy as np\nfrom {package} import cuda\n"
        "from numba.cuda import autolink\n"
        "lib = autolink.cxx('__device__ float twice(float x) { return 2 * x; }')\n"
        "@cuda.jit\ndef kernel(x):\n    x[0] = lib.twice(x[1])\n"
        "try:\n    kernel[1, 1](np.ones(3, np.float32))\nexcept Exception as error:\n    print(error)\n"
        "kernel[1, 1](np.ones(3, np.float32))\n"
    )
    text = run(script)
    assert text.count(f"\n  at: {script}:11\n      kernel[1, 1]") == 1
    assert text.count(f"\n  at: {script}:14\n      kernel[1, 1]") == 1
    assert text.count("Error at driver init") == 2
    assert text.count("\n  what to do: set NUMBA_CUDA_AUTOLINK_EMULATE=1") == 2
    assert not [line for line in text.splitlines() if line.startswith('  File "') and "site-packages" in line]


def test_a_handled_error_has_all_that_the_front_end_says(package):
    """Programs look for texts of Numba's, and its own tests do."""
    cuda = pytest.importorskip(f"{package}.cuda")

    def kernel(x):
        x[0] = len(f"x{x[0]}")

    with pytest.raises(Exception) as caught:
        autolink.build(cuda.jit(kernel), "void(float32[::1])", cc=(9, 0))
    text = str(caught.value)
    assert text.startswith("kernels make no text\n  at: ")
    assert "\nNo implementation of function " in text
    assert "candidate implementation" in text and text.rstrip().splitlines()[-1].startswith("During: Pass ")


def test_a_handled_error_has_the_lines_of_the_front_end_together(tmp_path):
    script = tmp_path / "ambiguous.py"
    script.write_text(
        "import numpy as np\nfrom numba import cuda\n"
        "@cuda.jit(['void(float64[::1], float32, float64)', 'void(float64[::1], float64, float32)'])\n"
        "def kernel(x, a, b):\n    x[0] = a + b\n"
        "try:\n    kernel[1, 1](np.ones(1), 1.0, 2.0)\nexcept TypeError as error:\n    print(error)\n"
    )
    said = run_emulated(script).stdout
    assert re.search(r", float64, float64\):\n\(.*, float32, float64\) -> none\n\(.*, float64, float32\) -> none", said)

# SPDX-License-Identifier: BSD-2-Clause
"""What a hook may return, when it runs, what it sees, and what happens when it fails."""

import os

import pytest
from autolink_support import CC, Linked, adder, build, compiled, without_place
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError


def kernel_calling(function):
    def kernel(x):
        x[0] = function(x[1])

    return kernel


def source(symbol):
    return autolink.CUDASource(adder(symbol))


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (lambda: None, 0),
        (lambda: [], 0),
        (lambda: (), 0),
        (lambda: source("f"), 1),
        (lambda: [source("f"), cuda.LTOIR(compiled(adder("g"), "ltoir"))], 2),
        (lambda: (code for code in (source("f"), source("g"), source("h"))), 3),
        (lambda: iter([source("f"), source("f")]), 1),
        (lambda: {source("f"): 1}.keys(), 1),
    ],
    ids=["None", "empty list", "empty tuple", "one item", "list", "generator", "iterator of equal items", "view"],
)
def test_an_answer_is_nothing_an_item_or_an_iterable(answer, count):
    spy = Linked("f", answer)
    linked = build(kernel_calling(spy.function), link=[cuda.CUSource(adder("f"))] if count == 0 else [])
    assert len([planned for planned in linked.inputs if planned.origins != ("link=",)]) == count


def test_a_generator_that_raises_midway_is_the_hooks_error():
    def answer():
        yield source("f")
        raise RuntimeError("second part is missing")

    with pytest.raises(TypingError, match="raised RuntimeError: second part is missing"):
        build(kernel_calling(Linked("f", answer).function))


def test_a_hook_that_is_a_coroutine_is_refused(recwarn):
    async def answer(x):
        return None

    function = cuda.declare_device("asynchronous", "int32(int32)")
    function.__numba_cuda_link__ = answer
    with pytest.raises(TypingError, match="coroutine is not code") as caught:
        build(kernel_calling(function))
    assert "what to do: make the method an ordinary one, without async" in str(caught.value)
    assert not [each for each in recwarn if "never awaited" in str(each.message)]


def test_a_long_diagnosis_is_whole_in_the_first_line():
    def answer():
        raise ValueError("long " * 40)

    with pytest.raises(TypingError) as caught:
        build(kernel_calling(Linked("f_long", answer).function))
    first, *others = without_place(caught.value).splitlines()
    assert first.count("long") == 40 and "long" not in "".join(others[:1])


@pytest.mark.counted
def test_an_edited_source_with_options_is_seen_although_its_answer_is_stored(tmp_path):
    file = tmp_path / "add.cu"
    asked = tmp_path / "asked"  # a list or a file would be part of what the answer is stored under
    asked.mkdir()

    class Add(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("add", returns=x)

        def __numba_cuda_link__(self, x):
            (asked / str(len(os.listdir(asked)))).touch()
            return autolink.CUDASource.from_file(str(file), defines={"FACTOR": 3}, name="add")

        def __numba_cuda_link_key__(self, x):
            return str(file)

    for amount in (1, 2):
        code = f'extern "C" __device__ int add(int x) {{ return x + {amount} * FACTOR; }}'
        file.write_text(code)
        for obj in (Add(), Add()):  # the second one's answer is that of the first
            (planned,) = build(kernel_calling(obj)).inputs
            assert (planned.input.code.decode(), planned.input.name) == (code, "add")
            assert planned.input.options.defines == (("FACTOR", "3"),)
    assert len(os.listdir(asked)) == 2


def test_answers_are_forgotten_with_their_object():
    import gc
    import weakref

    from numba.cuda.autolink.protocol.ask import _memory, ask
    from numba.cuda.autolink.protocol.callee import find_callee

    class Object:
        def __numba_cuda_link__(self, x):
            return source("f")

    gc.collect()  # objects of other tests, whose answers would go meanwhile
    before = len(_memory)
    obj = Object()
    callee = find_callee(obj)
    ask(callee, (types.int32,), autolink.Target((9, 0)))
    assert len(_memory) == before + 1
    alive = weakref.ref(obj)
    del obj, callee
    gc.collect()
    assert alive() is None
    assert len(_memory) == before


def test_the_key_method_is_found():
    from numba.cuda.autolink.protocol.callee import find_callee

    class WithKey:
        def __numba_cuda_link__(self, x):
            return None

        def __numba_cuda_link_key__(self, x):
            return ("with key", 1, str(x))

    assert find_callee(WithKey()).link_key(types.int32) == ("with key", 1, "int32")
    assert find_callee(Linked("f").function).link_key is None


# The target


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"cc": (9, 0, "a")}, {"suffix": "a"}),
        ({"cc": (7, 5)}, {"compute_capability": (7, 5)}),
        ({"lto": False}, {"lto": False}),
        ({"lineinfo": True}, {"lineinfo": True}),
        ({"fastmath": True}, {"fastmath": True}),
        ({"max_registers": 32}, {"max_registers": 32}),
        ({"debug": True, "opt": False}, {"debug": True, "lto": False}),
    ],
    ids=str,
)
@pytest.mark.counted
def test_a_hook_sees_the_kernels_target_also_in_device_functions(options, expected):
    direct, nested = Linked("direct"), Linked("nested")
    direct_function, nested_function = direct.function, nested.function

    @cuda.jit(device=True)
    def device_function(x):
        return nested_function(x)

    def kernel(x):
        x[0] = direct_function(x[1]) + device_function(x[2])

    build(kernel, **options)
    target = autolink.Target(**{"compute_capability": CC, "lto": True, **expected})
    assert direct.targets == nested.targets == [target]


def test_a_target_tells_architecture_and_versions():
    target = autolink.Target((9, 0), "a")
    assert (target.arch, target.cc) == ("sm_90a", (9, 0, "a"))
    assert target.nvrtc_version >= (12, 0)
    assert target.nvjitlink_version >= (12, 0)
    assert target.nvvm_version >= (1, 0)
    with pytest.raises(ValueError, match="suffix"):
        autolink.Target((9, 0), "x")


def test_there_is_no_target_outside_of_a_compilation():
    with pytest.raises(RuntimeError, match="only while a kernel is being compiled"):
        autolink.current_target()


@pytest.mark.counted
def test_cuda_compile_asks_for_what_it_is_told():
    spy = Linked("compiled_alone")
    function = spy.function
    cuda.compile(lambda x: function(x), "int32(int32)", cc=(8, 0), output="ltoir")
    cuda.compile(lambda x: function(x), "int32(int32)", cc=(8, 6), output="ptx")
    assert [(target.arch, target.lto) for target in spy.targets] == [("sm_80", True), ("sm_86", False)]


def test_cuda_compile_all_returns_the_code_of_called_objects():
    spy = Linked("compiled_with", cuda.LTOIR(compiled(adder("compiled_with"), "ltoir")))
    function = spy.function
    codes, _ = cuda.compile_all(lambda x: function(x), "int32(int32)", cc=CC, output="ltoir")
    assert [code.data for code in codes[1:]] == [spy.answer.data]


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        (lambda: {"f.cu": adder("f")}, "what to do: return a list; of sources by name, [autolink.CUDASource("),
        (lambda: autolink.CUDASource, "what to do: return an object of CUDASource, not the class"),
    ],
)
def test_a_dict_or_a_class_is_no_code(answer, remedy):
    with pytest.raises(TypingError) as caught:
        build(kernel_calling(Linked("f", answer).function))
    assert remedy in str(caught.value)

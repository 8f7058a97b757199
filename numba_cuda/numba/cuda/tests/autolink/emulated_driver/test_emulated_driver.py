# SPDX-License-Identifier: BSD-2-Clause
"""Programs without a GPU: numba-cuda, cuda.core and cuda.bindings on the emulated driver."""

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import traceback
import types
import weakref

import numpy as np
import pytest
from autolink_support import Linked, adder, calling, compiled, unload
from emulated_tests import why_not_emulated
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.frontends.numba_cuda import emulated_driver
from numba.cuda.cudadrv.driver import CudaAPIError

import numba_cuda_autolink
from numba_cuda_autolink import EmulationError, LaunchError
from numba_cuda_autolink.emulated_driver import activation, shared_library

pytestmark = pytest.mark.skipif(
    shared_library.why_impossible() is not None, reason="this system cannot have an emulated driver"
)


@pytest.fixture
def no_other_driver():
    """Importing Numba loads NVIDIA's driver, where there is one; ``--emulate`` has the emulated one from the start."""
    if activation._loaded is None and activation._is_loaded():
        pytest.skip("this process has loaded NVIDIA's driver")


@pytest.fixture
def device(no_other_driver):
    with autolink.emulated():
        yield


@pytest.mark.gpu
def test_nine_of_ten_tests_that_launch_kernels_run_in_the_emulator(request):
    """Without the table of instructions, whose cases would be most of them."""
    launching = [item for item in request.session.items if item.get_closest_marker("gpu")]
    counted = [item.nodeid for item in launching if "test_instructions_on_gpu" not in item.nodeid]
    if len(counted) < 250:
        pytest.skip("only a part of the tests was chosen")
    excluded = [test for test in counted if why_not_emulated(test)]
    assert len(excluded) <= len(counted) / 10


def plus_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env={**os.environ, "NUMBA_CUDA_AUTOLINK_EMULATE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


class TestAProgram:
    def test_launches_without_a_change(self):
        code = """
            import numpy as np
            from numba import cuda
            @cuda.jit
            def kernel(x):
                x[cuda.threadIdx.x] *= 2
            x = np.arange(4)
            kernel[1, 4](x)
            print(cuda.is_available(), len(cuda.gpus), x.tolist())
        """
        # The file of the source is not there, which Numba only needs for debugging.
        assert run(code) == (0, "True 1 [0, 2, 4, 6]\n", "")

    def test_takes_arrays_without_elements(self):
        code = """
            import numpy as np
            from numba import cuda
            @cuda.jit
            def kernel(x):
                if cuda.grid(1) < x.size:
                    x[0] = 1
            kernel[1, 4](np.empty(0))
            kernel[1, 4](cuda.to_device(np.empty(0)))
            cuda.synchronize()
        """
        assert run(code) == (0, "", "")

    def test_goes_on_after_an_interrupt_of_a_kernel_that_never_ends(self):
        code = """
            import os, signal, threading
            import numpy as np
            from numba import cuda
            signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell runs in the background
            @cuda.jit
            def wait(x):
                while x[0] == 0:
                    x[1] += 1
            x = cuda.to_device(np.ones(2, np.int32))
            wait[1, 4](x)
            x.copy_to_device(np.zeros(2, np.int32))
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                wait[1, 4](x)
            except KeyboardInterrupt:
                x.copy_to_device(np.full(2, 3, np.int32))
                wait[1, 4](x)
                print(x.copy_to_host().tolist())
        """
        assert run(code) == (0, "[3, 3]\n", "")

    def test_of_cuda_core_and_bindings_has_the_device(self):
        code = """
            import numba_cuda_autolink.emulated_driver.activation as activation
            activation.start_if_wanted()
            from cuda.bindings import driver
            from cuda.core import Device
            device = Device()
            device.set_current()
            stream = device.create_stream()
            buffer = device.allocate(64, stream=stream)
            error, value = driver.cuPointerGetAttribute(
                driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, driver.CUdeviceptr(int(buffer.handle)))
            print(device.compute_capability, error.name, int(value))
            buffer.close(stream)
            stream.sync()
        """
        assert run(code) == (0, "ComputeCapability(major=9, minor=0) CUDA_SUCCESS 0\n", "")

    def test_loads_cached_kernels_in_a_second_process(self, tmp_path):
        start = """
            import numpy as np
            from numba import cuda
            add = 'extern "C" __device__ int add(int *out, int x) { *out = x + 7; return 0; }'
            add_seven = cuda.declare_device("add", "int32(int32)")
        """
        kernel = """
            @cuda.jit(cache=True, {options})
            def kernel_{number}(x):
                x[0] = {value} + {function}(x[1])
            x = cuda.to_device(np.array([0, 10], np.int32))
            kernel_{number}[1, 1](x)
            print(x.copy_to_host()[0], *kernel_{number}.stats.cache_hits.values())
        """
        texts, external, allocated = [start], "link=[cuda.CUSource(add)]", "np.ones(x.size).size"
        kinds = (
            ("", "x.size"),
            ("lto=False", "x.size"),
            ("", allocated),
            ("lto=False", allocated),
            (external, "x.size"),
        )
        for options, value in kinds:
            function = "add_seven" if options == external else "abs"
            texts.append(kernel.format(options=options, number=len(texts), value=value, function=function))
        (tmp_path / "program.py").write_text("".join(map(textwrap.dedent, texts)))
        program = f"import runpy; runpy.run_path({str(tmp_path / 'program.py')!r})"
        for hits in "", " 1":
            found = run(program, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_CUDA_ENABLE_NRT="1")
            assert found == (0, f"12{hits}\n" * 4 + f"19{hits}\n", "")

    def test_says_what_the_variable_may_be(self):
        _, _, errors = run("import numba.cuda", NUMBA_CUDA_AUTOLINK_EMULATE="yes")
        assert "NUMBA_CUDA_AUTOLINK_EMULATE is 'yes'" in errors
        assert "expected: 1 or checks" in errors
        _, _, errors = run("import numba.cuda", NUMBA_CUDA_AUTOLINK_EMULATE="chekcs")
        assert "NUMBA_CUDA_AUTOLINK_EMULATE is 'chekcs'; did you mean checks?\n" in errors
        assert "importlib" not in errors and errors.count("File ") == 1


class TestForAWhile:
    def test_numba_cuda_has_the_driver_that_it_had(self, device):
        assert cuda.is_available() and emulated_driver.active()
        with autolink.emulated():  # does nothing
            pass
        assert emulated_driver.active()
        emulated_driver.deactivate()
        activation.stop()
        try:
            assert not cuda.is_available()
            with pytest.raises(Exception, match="driver"):
                cuda.to_device(np.zeros(1))
        finally:
            activation.start()
            emulated_driver.activate()
        assert cuda.to_device(np.ones(2)).copy_to_host().tolist() == [1, 1]

    def test_arrays_outlive_it(self, no_other_driver):
        with autolink.emulated():
            x = cuda.to_device(np.zeros(4))
        del x

    def test_not_beside_another_driver(self, monkeypatch):
        monkeypatch.setattr(activation, "_loaded", None)
        monkeypatch.setattr(activation, "_is_loaded", lambda: True)
        with pytest.raises(LaunchError, match="this process has loaded NVIDIA's driver") as error:
            activation.start()
        assert "NUMBA_CUDA_AUTOLINK_EMULATE=1 before Python starts" in str(error.value)

    def test_the_compute_capability(self):
        if activation._loaded is None and activation._is_loaded():
            pytest.skip("this process has loaded NVIDIA's driver")
        assert activation.start((8, 0)) is None
        try:
            from cuda.bindings import driver

            attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
            assert driver.cuDeviceGetAttribute(attribute, 0)[1] == 8
        finally:
            activation.stop()


@pytest.mark.usefixtures("device")
class TestNumbaCuda:
    def test_a_kernel_that_nvvm_refuses_with_its_lines(self):
        """As numba-cuda's debug information of shared memory that is added to and read."""

        def kernel(x, r):
            n = cuda.shared.array(1, np.int32)
            t = cuda.threadIdx.x
            if t == 0:
                n[0] = 0
            cuda.syncthreads()
            cuda.atomic.add(n, 0, x[t])
            if n[0] > 10:
                r[t] = one(x[t])

        one = Linked("one_more").function
        with pytest.raises(Exception, match="unsupported characters"):
            autolink.build(cuda.jit(kernel, lineinfo=True), "void(int32[::1], int32[::1])", cc=(9, 0))
        r = np.zeros(1, np.int32)
        cuda.jit(kernel)[1, 1](np.full(1, 11, np.int32), r)
        assert r[0] == 12

    def test_ptx_calls_what_cxx_defines(self):
        calls = """extern "C" __device__ int defined_in_cxx(int);
            extern "C" __device__ int from_ptx_twice(int *result, int x) {
                *result = defined_in_cxx(defined_in_cxx(x));
                return 0;
            }"""
        defines = 'extern "C" __device__ int defined_in_cxx(int x) { return x + 4; }'
        ptx = compiled(calls, "ptx", "sm_90")
        inputs = [cuda.PTXSource(ptx), cuda.CUSource(defines)]
        function = Linked("from_ptx_twice", lambda: inputs).function

        @cuda.jit
        def kernel(x):
            x[0] = function(x[1])

        x = np.array([0, 10], dtype=np.int32)
        kernel[1, 1](x)
        assert x.tolist() == [18, 10]

    @pytest.mark.parametrize("lto", [True, False])
    def test_an_undefined_symbol_is_the_error_of_a_link(self, lto):
        """Whether Python calls the function or C++ does, and whether or not any code is linked."""

        class NoHook(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("nowhere", returns=x)

        text = 'extern "C" __device__ int nowhere(int); __device__ int calls(int x) { return nowhere(x); }'
        for function in (NoHook(), cuda.declare_device("nowhere", "int32(int32)"), autolink.cxx(text).calls):
            kernel = cuda.jit(lto=lto)(calling(function))
            with pytest.raises(autolink.LinkError, match="'nowhere' is called but nothing that is linked") as launched:
                kernel[1, 1](np.zeros(1, np.int32))
            with pytest.raises(autolink.LinkError) as built:
                autolink.build(kernel, "void(int32[::1])", cc=(9, 0), lto=lto)
            expected = str(built.value).replace("for sm_90 ", "for sm_90a ")
            assert str(launched.value).partition("  log:")[0] == expected.partition("  log:")[0]

    @pytest.mark.parametrize("assembly", ["frobnicate.s32 %0, %0;", "add.s32 %0, %0;"])
    def test_wrong_assembly_is_the_error_of_a_link(self, assembly):
        wrong = autolink.cxx(f'__device__ int wrong(int x) {{ asm("{assembly}" : "+r"(x)); return x; }}').wrong
        with pytest.raises(autolink.LinkError, match=r"instruction.* '(frobnicate|add)'"):
            cuda.jit(calling(wrong))[1, 1](np.zeros(2, np.int32))

    def test_machine_code_is_refused(self):
        cubin = compiled(adder("from_cubin", 5), "cubin", "sm_90")
        function = Linked("from_cubin", lambda: cuda.Cubin(cubin)).function

        @cuda.jit
        def kernel(x):
            x[0] = function(x[1])

        with pytest.raises(autolink.LinkError, match=r"the emulator runs PTX, and .* is linked as cubin") as error:
            kernel[1, 1](np.zeros(2, np.int32))
        assert "what to do: provide CUDA C++ or PTX" in str(error.value)

    def test_an_access_out_of_bounds_names_the_thread(self):
        @cuda.jit
        def kernel(x):
            x[cuda.threadIdx.x + 4] = 1

        with pytest.raises(EmulationError) as error:
            kernel[1, 8](cuda.to_device(np.zeros(4, np.int64)))
        assert error.value.thread == (0, 0, 0) and error.value.address

    def test_streams_events_and_copies(self):
        stream, start, end = cuda.stream(), cuda.event(), cuda.event()
        pinned = cuda.pinned_array(4, dtype=np.float32)
        pinned[:] = 3
        start.record(stream)
        x = cuda.to_device(pinned, stream=stream)
        cuda.jit(plus_one)[1, 4, stream](x)
        x.copy_to_host(pinned, stream=stream)
        end.record(stream)
        stream.synchronize()
        assert pinned.tolist() == [4] * 4
        assert end.query() and start.elapsed_time(end) >= 0

    def test_mapped_and_managed_memory(self):
        for make in cuda.mapped_array, cuda.managed_array:
            x = make(4, dtype=np.int32)
            x[:] = 1
            cuda.jit(plus_one)[1, 4](x)
            cuda.synchronize()
            assert x.tolist() == [2] * 4

    def test_what_cannot_be_allocated_or_launched(self):
        with pytest.raises(CudaAPIError, match="OUT_OF_MEMORY"):
            cuda.device_array(1 << 40, np.uint8)
        with pytest.raises(Exception, match="INVALID_VALUE"):
            cuda.jit(plus_one)[1, 2048](np.zeros(1))

    def test_other_runtimes_get_no_table_of_functions_and_so_no_crash(self):
        """CuPy's and PyTorch's would call what they expect in it."""
        table, number = ctypes.c_void_p(1), (ctypes.c_ubyte * 16)(*bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9"))
        library = ctypes.CDLL("libcuda.so.1")
        assert library.cuGetExportTable(ctypes.byref(table), number) == 500 and table.value is None

    def test_graphs(self):
        from cuda.bindings import driver

        stream = cuda.stream()
        x = cuda.to_device(np.zeros(4, np.int32))
        kernel = autolink.bind(cuda.jit(plus_one), x)
        kernel[1, 4](x)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        handle = driver.CUstream(int(stream.handle.value if hasattr(stream.handle, "value") else stream.handle))
        driver.cuStreamBeginCapture(handle, mode)
        kernel[1, 4, stream](x)
        _, graph = driver.cuStreamEndCapture(handle)
        assert x.copy_to_host().tolist() == [1] * 4
        _, executable = driver.cuGraphInstantiate(graph, 0)
        for _ in range(2):
            driver.cuGraphLaunch(executable, handle)
        assert x.copy_to_host().tolist() == [3] * 4

    def test_finished_kernels_take_the_ptx(self, tmp_path):
        built = [
            autolink.build(plus_one, "void(int32[::1])", cc=cc, output=output, entry_name="plus_one")
            for output, cc in (("cubin", "9.0"), ("ptx", "10.0"))  # of a GPU that is later than the emulated one
        ]
        autolink.save(tmp_path / "both.kernels", built)
        autolink.save(tmp_path / "cubin.kernels", built[:1])
        x = cuda.to_device(np.zeros(4, np.int32))
        with numba_cuda_autolink.load(tmp_path / "both.kernels") as library:
            library.plus_one[1, 4](x)
        assert x.copy_to_host().tolist() == [1] * 4
        library = numba_cuda_autolink.load(tmp_path / "cubin.kernels")
        with pytest.raises(LaunchError, match="has no PTX, and the emulator runs nothing else"):
            library.plus_one[1, 4](x)


def test_a_library_of_python_functions_is_found_by_its_name():
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    functions = {f"times_{n}": kind(lambda x, n=n: x * n) for n in range(1, 4)}
    addresses = {name: ctypes.cast(function, ctypes.c_void_p).value for name, function in functions.items()}
    shared_library.load("libautolink_of_a_test.so.1", addresses)
    found = ctypes.CDLL("libautolink_of_a_test.so.1")
    assert [getattr(found, name)(5) for name in functions] == [5, 10, 15]
    with pytest.raises(AttributeError):
        _ = found.times_4


def test_freed_arrays_are_freed_at_once_where_all_is_checked(no_other_driver):
    with autolink.emulated(checks=True):
        array = cuda.to_device(np.zeros(4))
        freed = types.SimpleNamespace(__cuda_array_interface__=array.__cuda_array_interface__)
        del array
        with pytest.raises(EmulationError, match="A read of 8 bytes after the memory was freed"):
            cuda.jit(plus_one)[1, 1](cuda.as_cuda_array(freed))


@pytest.mark.parametrize("is_fault", [False, True])
def test_no_frame_of_a_launch_keeps_its_arrays_where_all_is_checked(is_fault, no_other_driver):
    """Compilers catch errors whose frames hold these errors; so do launches that fail."""
    absolute = autolink.cxx("__device__ float absolute(float x) { return x < 0 ? -x : x; }").absolute

    @cuda.jit
    def kernel(x, i):
        x[i] = absolute(x[i])

    with autolink.emulated(checks=True):
        array = weakref.ref(kept := cuda.to_device(np.zeros(1, np.float32)))
        gc.disable()
        try:
            try:
                kernel[1, 1](kept, int(is_fault))
                assert not is_fault
            except EmulationError:
                assert is_fault
            del kept
            assert array() is None
        finally:
            gc.enable()


def test_a_kernel_whose_code_was_unloaded_is_named(device):
    kernel = cuda.jit(plus_one)
    kernel[1, 4](np.zeros(4))
    unload(kernel)
    with pytest.raises(LaunchError, match=r"\.plus_one is launched after its code was unloaded"):
        kernel[1, 4](np.zeros(4))


def test_a_launch_that_is_too_large_for_its_kernel_fails_as_on_a_gpu(device):
    kernel = cuda.jit(launch_bounds=64)(plus_one)
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE") as raised:
        kernel[1, 65](np.zeros(65))
    assert type(raised.value).__name__ == "CUDAError"
    first, place, *_ = str(raised.value).splitlines()
    assert "plus_one is compiled for blocks of at most (64, 1, 1) threads" in first
    assert place.startswith(f"  launched at: {__file__}:")


def test_what_a_kernel_raises_is_shown_without_frames_of_the_compiler(device):
    @cuda.jit(debug=True, opt=False)
    def kernel(x):
        if x[cuda.grid(1)] > 2:
            raise IndexError("too large")

    with pytest.raises(IndexError, match="too large") as raised:
        kernel[1, 4](np.arange(4.0))
    shown = "".join(traceback.format_exception(raised.value))
    assert "dispatcher.py" not in shown


def test_errors_show_the_line_of_a_kernel_that_is_compiled_without_line_information(device):
    @cuda.jit
    def kernel(x):
        i = cuda.grid(1)
        x[i] = x[i + 1]

    with pytest.raises(EmulationError) as raised:
        kernel[1, 4](np.zeros(4))
    first, place, source, caret = str(raised.value).splitlines()[:4]
    assert first == "A read of 8 bytes out of bounds"
    assert place == f"  at: {__file__}:{kernel.py_func.__code__.co_firstlineno + 3}"
    assert source.strip() == "x[i] = x[i + 1]"
    assert caret.strip() == "^" * len(source.strip())


@pytest.mark.parametrize(
    "made", [np.zeros, lambda n, dtype: cuda.to_device(np.zeros(n, dtype))], ids=["host", "device"]
)
def test_errors_name_the_array_as_the_kernel_does(device, made):
    @cuda.jit
    def before_first(table, pair):
        table[0] += pair[1][5]

    table, *pair = (made(2, np.float32) for _ in range(3))
    with pytest.raises(EmulationError, match=r"12 bytes after the end of pair\[1\] at .*, of 8 bytes"):
        before_first[1, 1](table, tuple(pair))

    @cuda.jit
    def after_last(size, numbers):
        numbers[size] = 1

    with pytest.raises(EmulationError, match=r"0 bytes after the end of numbers at .*, of 8 bytes"):
        after_last[1, 1](2, table)


def test_no_warning_of_small_grids(device, recwarn):
    cuda.jit(plus_one)[1, 1](np.zeros(1))
    assert not [each for each in recwarn if "under-utilization" in str(each.message)]

# SPDX-License-Identifier: BSD-2-Clause
"""Values that are not plain numbers reach C++ by name: strings, tuples, enumerators and structs; others are refused
with a remedy."""

from __future__ import annotations

import enum
import re
from collections import namedtuple

import numpy as np
import pytest
from autolink_support import build
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.typing.typeof import Purpose, typeof

lib = autolink.cxx("""
#include <cuda/std/tuple>
__device__ int length(const char* s) { int n = 0; while (s[n]) ++n; return n; }
template <int N> __device__ int size_of(const char (&s)[N]) { return N; }
template <class T> __device__ auto first(T t) { return cuda::std::get<0>(t); }
template <class T> __device__ auto inner(T t) { return cuda::std::get<1>(cuda::std::get<1>(t)); }
""")
length, size_of, first, inner = lib.length, lib.size_of, lib.first, lib.inner
GREETING = "hello"
Point = namedtuple("Point", "x y")
Reserved = namedtuple("Reserved", "int_ class_")
State = enum.IntEnum("State", {"Idle": 0, "Run": 1})
Flag = enum.IntFlag("Flag", {"A": 1, "C": 4})


def constants(kernel):
    """The numbers that the kernel has in its code, in their order."""
    code = build(kernel, "void(int32[::1])", output="ptx").code.decode()
    return re.findall(r"mov\.[bu]32 \t?%r\d+, (\d+);", code)


class TestStrings:
    def test_a_literal_and_a_global_reach_a_pointer_to_char(self, cuda):
        @cuda.jit
        def kernel(r):
            r[0] = length("four")
            r[1] = length(GREETING)
            r[2] = length("")

        r = np.full(3, 9, np.int32)
        build(kernel, "void(int32[::1])").emulate[1, 1](r)
        assert r.tolist() == [4, 5, 0]

    def test_cxx_sees_the_bytes_of_utf_8_and_their_number(self):
        """Quotes, backslashes, trigraphs and digits after an escape mean nothing."""

        def kernel(r):
            r[0] = size_of('"\\\\??/1\\n')
            r[1] = size_of("\u00e9")
            r[2] = size_of("\x0077")

        assert constants(kernel) == ["10", "3", "4"]

    def test_each_constant_has_a_function_of_its_own(self):
        one, other = (length._call([types.literal(text)]).symbol for text in ("a", "b"))
        assert one != other

    def test_a_string_that_is_not_constant_is_refused(self):
        def kernel(r, flag):
            text = "a"
            if flag:
                text = "bc"
            r[0] = length(text)

        with pytest.raises(TypingError, match="strings must be constants"):
            build(kernel, "void(int32[::1], boolean)")


class TestEnumerators:
    lib = autolink.cxx("""
        namespace machine { enum class State : unsigned char { Idle, Run, Stop = 7 }; }
        __device__ machine::State next(machine::State s) {
            return s == machine::State::Idle ? machine::State::Run : machine::State::Stop;
        }
        struct Step { machine::State state; int n; };
        __device__ Step step(machine::State s, int n) { return {next(s), n + 1}; }
    """)

    def test_come_back_as_such_and_go_in_again(self, cuda):
        next_state, step, state = self.lib.next, self.lib.step, self.lib["machine::State"]

        @cuda.jit
        def kernel(states, r):
            s = state(states[0])
            for _ in range(2):
                s = next_state(s)
            states[0] = s
            states[1] = next_state(state(states[1]))
            r[0] = s
            r[1] = s + 1
            r[2] = s == 7
            r[3] = next_state(step(state(0), 1)[0])

        linked = build(kernel, "void(uint8[::1], float32[::1])")
        states, r = np.zeros(2, np.uint8), np.zeros(4, np.float32)
        linked.emulate[1, 1](states, r)
        assert [*states, *r] == [7, 1, 7, 8, 1, 7]

    def test_are_of_their_type_to_overloads_templates_and_references(self, cuda):
        lib = autolink.cxx("""
            #include <cuda/std/tuple>
            #include <cuda/std/type_traits>
            namespace a { inline namespace b { enum class Color : unsigned char { Red = 1, Green = 200 }; } }
            enum Plain { One = 1, Nine = 9 };
            enum class Flag : bool { No, Yes };
            namespace { enum class Hidden : short { Low = -3 }; }
            template <class T> struct Box {
                enum class Kind : T { Seven = 7 };
                static Kind get() { return Kind::Seven; }
            };
            template <class T> int is_color(T) { return cuda::std::is_same<T, a::Color>::value; }
            template <class T> int is_plain(T) { return cuda::std::is_same<T, Plain>::value; }
            a::Color green() { return a::Color::Green; }
            Plain nine() { return Nine; }
            Flag yes() { return Flag::Yes; }
            Hidden low() { return Hidden::Low; }
            int kind(a::Color) { return 1; }
            int kind(int) { return 2; }
            int kind(unsigned char) { return 3; }
            int number(Plain p) { return p; }
            int number_of(Hidden h) { return int(h); }
            int number_in(Box<short>::Kind k) { return int(k); }
            int plus(int x) { return x + 1; }
            int is_yes(Flag f) { return f == Flag::Yes ? 10 : 20; }
            a::Color paint(const a::Color& c) { return c == a::Color::Green ? a::Color::Red : c; }
            cuda::std::tuple<a::Color, int> both() { return {a::Color::Green, 3}; }
            int first(cuda::std::tuple<a::Color, int> t) { return int(cuda::std::get<0>(t)); }
        """)
        flag, get = lib["Flag"], lib["Box<short>::get"]

        @cuda.jit
        def kernel(r):
            r[0], r[1], r[2] = lib.is_color(lib.green()), lib.is_plain(lib.nine()), lib.is_plain(lib.green())
            r[3], r[4], r[5] = lib.kind(lib.green()), lib.number(lib.nine()), lib.plus(lib.nine())
            r[6], r[7], r[8] = lib.is_yes(lib.yes()), lib.is_yes(flag(0)), lib.yes()
            r[9], r[10] = lib.number_of(lib.low()), lib.number_in(get())
            color = lib.green()
            color = lib.paint(color)
            r[11], r[12] = color, lib.kind(color)
            r[13], r[14] = lib.first(lib.both()), lib.kind(lib.both()[0])

        r = np.zeros(15, np.int32)
        build(kernel, "void(int32[::1])").emulate[1, 1](r)
        assert r.tolist() == [1, 1, 0, 1, 9, 10, 10, 20, 1, -3, 7, 1, 1, 200, 1]

    def test_are_numbers_in_operators_and_in_variables_that_have_numbers_too(self, cuda):
        lib = autolink.cxx("""
            enum class Byte : unsigned char { Most = 200 };
            enum class Sign : signed char { Negative = -3 };
            __device__ Byte byte() { return Byte::Most; }
            __device__ Sign sign() { return Sign::Negative; }
        """)

        @cuda.jit
        def kernel(r):
            byte, sign = lib.byte(), lib.sign()
            either = 4
            for _ in range(2):
                either = byte
            r[0], r[1], r[2], r[3] = byte, sign, either, byte + 1
            r[4], r[5], r[6], r[7] = sign + 1, -sign, abs(sign), byte * 2 + (byte >> 1)
            r[8], r[9], r[10], r[11] = sign < 0, byte > 100, byte == 200, sign == -3
            r[12], r[13] = sign < byte, byte + sign

        r = np.zeros(14)
        build(kernel, "void(float64[::1])").emulate[1, 1](r)
        assert r.tolist() == [200, -3, 200, 201, -2, 3, 3, 500, 1, 1, 1, 1, 1, 197]

    def test_a_variable_may_have_members_of_enumerations_of_python_too(self):
        next_state = self.lib.next

        def kernel(r, n):
            state = State.Idle
            for _ in range(n):
                state = next_state(state)
            r[0] = state

        linked = build(kernel, "void(int32[::1], int64)")
        r = np.zeros(3, np.int32)
        for n in range(3):
            linked.emulate[1, 1](r[n:], n)
        assert r.tolist() == [0, 1, 7]

    def test_a_flag_to_which_others_are_added_in_a_branch_is_a_number(self):
        low = autolink.cxx("__device__ int low(int flags) { return flags & 7; }").low

        def kernel(r, more):
            flags = Flag.A
            if more:
                flags = flags | Flag.C
            r[0] = low(flags)

        linked = build(kernel, "void(int32[::1], boolean)")
        r = np.zeros(2, np.int32)
        linked.emulate[1, 1](r, False)
        linked.emulate[1, 1](r[1:], True)
        assert r.tolist() == [1, 5]


class TestStructs:
    """What C++ returned goes in again, as the same struct and no other."""

    lib = autolink.cxx(
        """
        namespace my {
        enum class Kind : short { Dot, Cross };
        struct Point { int n; float x[2]; };
        struct Same { int n; float x[2]; };
        struct alignas(16) Shape { Kind kind; bool open[3]; Point from, in[2]; const float* data; };
        __device__ Point point(int n) { return {n, {n * 0.5f, 8}}; }
        __device__ Shape shape(int n) { return {Kind(n), {0, 1}, point(2), {{}, {3, {4, 5}}}, nullptr}; }
        __device__ float sum(const Point& p) { return p.n + p.x[0] + p.x[1]; }
        __device__ float sum(Same) { return -1; }
        __device__ float all(Shape s) { return int(s.kind) + s.open[1] * 10 + sum(s.from) * 100 + s.in[1].x[1] * 1e4f; }
        template <class T> __device__ float first(const T& p) { return p.x[0]; }
        __device__ int other(Same s) { return s.n; }
        __device__ void grow(Point& p) { ++p.n; }
        }
    """,
        namespace="my",
    )

    def test_whatever_its_members_are(self, cuda):
        lib = self.lib

        @cuda.jit
        def kernel(r):
            point, shape = lib.point(2), lib.shape(1)
            r[0] = lib.sum(point)
            r[1] = lib.first(point)
            r[2] = lib.all(shape)
            r[3] = lib.sum(shape[2])  # "from" is a word of Python

        r = np.zeros(4, np.float32)
        build(kernel, "void(float32[::1])").emulate[1, 1](r)
        assert r.tolist() == [11, 1, 51111, 11]

    def test_with_a_record_in_it_that_is_aligned_to_more_only_as_a_record_itself(self):
        lib = autolink.cxx("""
            struct alignas(32) In { short a; };
            struct Out { int n; In in; };
            __device__ Out give(short a) { return {7, {a}}; }
            __device__ int sum(const Out& out) { return out.n + out.in.a; }
        """)

        def kernel(r):
            r[0] = lib.sum(lib.give(3))

        r = np.zeros(1, np.float32)
        lib.record("In")
        with pytest.raises(TypingError, match="a struct in it that is packed, or aligned to more than its members"):
            build(kernel, "void(float32[::1])")
        lib.record("Out")
        build(kernel, "void(float32[::1])").emulate[1, 1](r)
        assert r[0] == 10

    def test_with_tuples_and_complex_numbers_in_it(self, cuda):
        lib = autolink.cxx(
            """
            #include <cuda/std/array>
            #include <cuda/std/complex>
            #include <cuda/std/tuple>
            #include <cuda/std/utility>
            namespace my {
            template <class... T> using tuple = cuda::std::tuple<T...>;
            using complex = cuda::std::complex<float>;
            struct In { short a; complex z; };
            struct Out {
                int n; complex z[2]; cuda::std::array<complex, 2> a; cuda::std::pair<char, tuple<In>> p; In in[2];
            };
            __device__ Out give(float x) {
                return {1, {2, {3, x}}, {{4, {5, 6}}}, {7, {In{8, {9, 10}}}}, {{11, 12}, {13, 14}}};
            }
            __device__ float at(const In& in) { return in.a + in.z.imag(); }
            __device__ float sum(Out o) {
                float of_arrays = o.z[1].imag() * 10 + o.a[1].imag() * 100;
                return o.n + of_arrays + at(cuda::std::get<0>(o.p.second)) * 1e3f + at(o.in[1]) * 1e5f;
            }
            __device__ tuple<In, int> both() { return {In{1, {2, 3}}, 4}; }
            __device__ float sum(tuple<In, int> t) { return at(cuda::std::get<0>(t)) + cuda::std::get<1>(t); }
            }
            """,
            namespace="my",
        )

        @cuda.jit
        def kernel(r):
            given, both = lib.give(8), lib.both()
            r[0] = lib.sum(given)
            r[1] = lib.sum(both)
            r[2] = lib.at(given.p[1][0])
            r[3] = given.a[1].imag + given.z[1].imag * 10 + given.p[1][0].z.real * 100 + both[0].z.imag * 1000

        r = np.zeros(4, np.float32)
        build(kernel, "void(float32[::1])").emulate[1, 1](r)
        assert r.tolist() == [1318681, 8, 18, 3986]

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("other", "make the records with the dtype that lib.record('my::Same') returns"),
            ("grow", "pass an element of an array of lib.record('my::Point'), to which C++ can write"),
        ],
    )
    def test_another_struct_and_one_to_be_written_are_refused(self, name, remedy):
        point, taken = self.lib.point, self.lib[name]

        def kernel(r):
            taken(point(2))

        with pytest.raises(TypingError) as caught:
            build(kernel, "void(float32[::1])")
        assert str(caught.value).endswith(remedy) and "tuple" not in str(caught.value)


class TestNamedTuples:
    @pytest.mark.parametrize("make", [Point, Reserved])
    def test_are_tuples_of_libcuxx(self, cuda, make):
        @cuda.jit
        def kernel(x, r):
            r[0] = first(make(x[1], 2))
            point = Point(y=x[1], x=r[0])
            r[1] = first(point) + point.y

        x, r = np.array([0, 2.5], np.float32), np.zeros(2, np.float32)
        build(kernel, "void(float32[::1], float32[::1])").emulate[1, 1](x, r)
        assert r.tolist() == [2.5, 5]

    def test_inside_of_tuples(self, cuda):
        @cuda.jit
        def kernel(x, r):
            r[0] = inner((1, Point(2.5, x[1])))

        x, r = np.array([0, 4.5], np.float32), np.zeros(1, np.float32)
        assert inner.signature(types.Tuple((types.int64, types.NamedTuple((types.float64, types.float32), Point))))
        build(kernel, "void(float32[::1], float32[::1])").emulate[1, 1](x, r)
        assert r[0] == 4.5


class TestRemedies:
    lib = autolink.cxx("""
        #include <cuda/std/optional>
        #include <cuda/std/span>
        __device__ float split(float x, int& n) { n = int(x); return x - n; }
        __device__ float sum(const float* x, int n) { return x[0] + n; }
        namespace machine { enum class State : unsigned char { Idle, Run }; }
        __device__ int use(machine::State s) { return int(s); }
        __device__ void reset(machine::State& s) { s = machine::State::Idle; }
        enum class Other : unsigned char { One };
        __device__ int stop(Other o) { return int(o); }
        __device__ int is_idle(int s) { return s == 0; }
        template <class T> __device__ int any_of(T x) { return int(x); }
        __device__ int kind(machine::State) { return 1; }
        __device__ int kind(unsigned char) { return 2; }
        __device__ int first_of(const Other* o) { return int(o[0]); }
        template <class F> __device__ int apply(F f) { return f(1, 2); }
        __device__ int taken(int&& x) { return x; }
        __device__ int rows(int** x) { return **x; }
        __device__ float three(const float (&x)[3]) { return x[2]; }
        __device__ float line(float (*x)[3]) { return x[1][2]; }
        struct Bits { int a : 3; };
        __device__ int bits(Bits b) { return b.a; }
        __device__ int halve(int x) { return x / 2; }
        __device__ int call(int (*f)(int)) { return f(8); }
        __device__ int call_by_reference(int (&f)(int)) { return f(8); }
        struct Node { int n; Node* next; };
        __device__ Node* find(int* x) { return (Node*)x; }
        __device__ int number(const Node* node) { return node->n; }
        template <class T> __device__ int number_of(T* node) { return node->n; }
        __device__ float by_three(cuda::std::span<const float, 3> x) { return x[2]; }
        __device__ int or_one(cuda::std::optional<int> x) { return x.value_or(1); }
        struct Fixed { const int n; };
        __device__ Fixed fix(int n) { return {n}; }
        __device__ int fixed(Fixed f) { return f.n; }
    """)

    def refusal(self, name, *argtypes):
        with pytest.raises(autolink.CxxError) as caught:
            self.lib[name].signature(*argtypes)
        return str(caught.value).splitlines()

    def test_a_number_for_an_enumerator(self):
        assert self.refusal("use", "uint8")[-1].endswith(
            "make a number an enumerator in the kernel: lib['machine::State'](...)"
        )

    @pytest.mark.parametrize(
        ("name", "argtype", "remedy"),
        [
            ("taken", "int32", "let C++ take a value or a const reference: the arguments are variables"),
            ("rows", "int32[::1]", "lib.expr('[](auto* p) { return f(&p); }')"),
            (
                "three",
                "float32[::1]",
                "lib.expr('[](auto* p) { return f(reinterpret_cast<const float (&)[3]>(*p)); }')",
            ),
            ("line", "float32[::1]", "lib.expr('[](auto* p) { return f(reinterpret_cast<float (*)[3]>(p)); }')"),
            ("bits", "UniTuple(int32, 1)", "lib.expr('[](auto... x) { return bits(Bits{x...}); }')"),
        ],
    )
    def test_what_no_argument_of_a_kernel_is(self, name, argtype, remedy):
        lines = self.refusal(name, argtype)
        assert lines[-1].endswith(remedy) and "std::tuple" not in "".join(lines)

    def refusal_in_a_kernel(self, kernel):
        with pytest.raises(TypingError) as caught:
            build(kernel, "void(int32[::1], float32[::1])")
        assert "nca_" not in str(caught.value)
        first, *_, last = str(caught.value).splitlines()
        return first, last

    def test_a_function_for_a_function_pointer(self):
        halve = self.lib.halve
        for taken in (self.lib.call, self.lib.call_by_reference):
            first, last = self.refusal_in_a_kernel((lambda f: lambda x, y: f(halve))(taken))
            assert re.search(r"the function halve cannot be passed as int \([*&]\)\(int\), but as a template", first)
            assert last.endswith("let C++ take any function object: template <class F> ... (F f)")

    def test_a_pointer_to_a_struct_which_is_void_in_python(self):
        find, number, number_of = self.lib.find, self.lib.number, self.lib.number_of
        _, last = self.refusal_in_a_kernel(lambda x, y: number(find(x)))
        assert last.endswith("lib.expr('[](auto* p) { return f(static_cast<const Node *>(p)); }')")
        _, last = self.refusal_in_a_kernel(lambda x, y: number_of(find(x)))
        assert last.endswith("cast it, lib.expr('[](auto* p) { return f((T*)p); }')")
        cast = self.lib.expr("[](auto* p) { return number(static_cast<const Node *>(p)); }")

        def kernel(x):
            x[1] = cast(find(x))

        x = np.array([7, 0, 0, 0], np.int32)
        build(kernel, "void(int32[::1])").emulate[1, 1](x)
        assert x[1] == 7

    def test_a_number_for_a_pointer(self):
        rows = self.lib.sum
        first, last = self.refusal_in_a_kernel(lambda x, y: rows(3, x[0]))
        assert 'type "long long" is incompatible with parameter of type "const float *"' in first
        assert "pass an array, or one element of it as a slice, x[i : i + 1]; " in last
        assert last.endswith("y = cuda.local.array(1, np.float32)")

    def test_types_of_libcu_that_no_argument_is(self):
        by_three, or_one = self.lib.by_three, self.lib.or_one
        _, last = self.refusal_in_a_kernel(lambda x, y: or_one(None))
        assert last.endswith("lib.expr('[](auto x) { return f(T{x, ...}); }'), of that type T")
        _, last = self.refusal_in_a_kernel(lambda x, y: by_three(y))
        assert last.endswith("lib.expr('[](auto* x) { return by_three(cuda::std::span<const float, 3>(x, 3)); }')")
        _, last = self.refusal_in_a_kernel(lambda x, y: by_three(x))
        assert last.endswith("pass an array of np.float32")
        made = self.lib.expr("[](auto* x) { return by_three(cuda::std::span<const float, 3>{x, 3}); }")

        def kernel(x):
            x[0] = made(x)

        x = np.array([1, 2, 3], np.float32)
        build(kernel, "void(float32[::1])").emulate[1, 1](x)
        assert x[0] == 3

    def test_a_member_of_an_enumeration_of_python_to_which_cxx_writes(self):
        reset = self.lib.reset
        first, last = self.refusal_in_a_kernel(lambda x, y: reset(State.Run))
        assert "C++ writes to a member of an enumeration of Python as machine::State&" in first
        assert last.endswith("let C++ take a value or a const reference, and return what it changes")

    def test_an_enumerator_of_one_type_for_another_or_for_a_number(self):
        run, stop, is_idle = self.lib.expr("[] { return machine::State::Run; }"), self.lib.stop, self.lib.is_idle
        first, last = self.refusal_in_a_kernel(lambda x, y: stop(run()))
        assert 'argument of type "machine::State" is incompatible with parameter of type "Other"' in first
        assert last.endswith("make it one in the kernel: lib['Other'](x)")
        first, last = self.refusal_in_a_kernel(lambda x, y: is_idle(run()))
        assert 'argument of type "machine::State" is incompatible with parameter of type "int"' in first
        assert last.endswith("pass its number, x + 0")

    def test_a_member_of_an_enumeration_of_python_for_overloads(self):
        kind = self.lib.kind
        _, last = self.refusal_in_a_kernel(lambda x, y: kind(State.Run))
        assert last.endswith(
            "make the member of an enumeration an enumerator of C++, lib['...'](x); or pass its number, x + 0"
        )

    def test_an_enumeration_of_real_numbers(self):
        stop, real = self.lib.stop, enum.Enum("Real", {"A": 1.5})
        first, last = self.refusal_in_a_kernel(lambda x, y: stop(real.A))
        assert 'argument of type "double" is incompatible with parameter of type "Other"' in first
        assert last.endswith("make a number an enumerator in the kernel: lib['Other'](...)")

    def test_an_enumerator_of_an_enumeration_without_a_name(self):
        nameless, any_of = self.lib.expr("[] { enum { one } r = one; return r; }"), self.lib.any_of
        first, last = self.refusal_in_a_kernel(lambda x, y: any_of(nameless()))
        assert "an enumerator of an enumeration without a name at global scope cannot go to C++ again" in first
        assert last.endswith("give it a name in a namespace or a class; or pass its number, x + 0")

    def test_an_array_of_numbers_for_a_pointer_to_an_enumeration(self):
        first_of, cast = self.lib.first_of, "[](auto* p) { return f(reinterpret_cast<const Other *>(p)); }"
        _, last = self.refusal_in_a_kernel(lambda x, y: first_of(x))
        assert last.endswith(f"where that is an enumeration, let a lambda cast it: lib.expr('{cast}')")
        cast_first = self.lib.expr(cast.replace("f(", "first_of("))

        def kernel(x, r):
            r[0] = cast_first(x)

        r = np.zeros(1, np.int32)
        build(kernel, "void(uint8[::1], int32[::1])").emulate[1, 1](np.array([7], np.uint8), r)
        assert r[0] == 7

    def test_a_builtin_of_python(self):
        apply = self.lib.apply
        first, last = self.refusal_in_a_kernel(lambda x, y: apply(max))
        assert "max, which Numba knows, is not a function of C++" in first
        assert last.endswith("pass a lambda that calls it, such as lambda a, b: max(a, b)")

    def test_a_struct_with_const_members(self):
        fix, fixed = self.lib.fix, self.lib.fixed
        first, _ = self.refusal_in_a_kernel(lambda x, y: fixed(fix(x[0])))
        assert "a struct with const or reference members cannot be made of what Python has of it" in first

    @pytest.mark.parametrize("length", [1, 60, 200])
    def test_the_diagnosis_is_whole_however_long_the_callee_is(self, length):
        text = f'[](auto {"x" * length}) {{ static_assert(sizeof({"x" * length}) == 1, "one byte, and not more"); }}'
        with pytest.raises(autolink.CxxError) as caught:
            self.lib.expr(text).signature("float32")
        first_line = str(caught.value).splitlines()[0]
        assert first_line.endswith('static assertion failed with "one byte, and not more"') and len(first_line) < 120

    def test_a_missing_header_is_named_in_the_first_line(self):
        lib = autolink.cxx('#include "a_header_that_nobody_has_written_and_that_has_a_long_name_besides.hpp"')
        with pytest.raises(autolink.CxxError) as caught:
            lib["a_function_with_a_name_that_fills_the_line"].signature("float32", "float32")
        first_line = str(caught.value).splitlines()[0]
        assert 'a_header_that_nobody_has_written_and_that_has_a_long_name_besides.hpp"' in first_line
        assert "a_function_with_a_name_that_fills_the_line(float32, float32)" in str(caught.value)


def test_members_have_names_and_python_functions_are_passed_and_errors_have_the_log():
    library = autolink.cxx("""
        struct Point { int n; struct { float x, y[2]; } at; };
        __device__ Point make(int n) { return {n, {n * 0.5f, {n * 2.f, n * 3.f}}}; }
        template <class F> __device__ int twice(F f, int x) { return f(f(x)); }
    """)

    def add(x):
        return x + 3

    def kernel(r):
        p = library.make(7)
        r[0], r[1], r[2], r[3] = p.n, p.at.x, p.at.y[1], library.twice(add, 1)

    def wrong(r):
        r[0] = library.twice(r[0])

    result = np.zeros(4)
    autolink.build(kernel, "void(float64[::1])", cc=(9, 0)).emulate[1, 1](result)
    np.testing.assert_array_equal(result, [7, 3.5, 21, 7])
    with pytest.raises(TypingError) as caught:
        autolink.build(wrong, "void(float64[::1])", cc=(9, 0))
    assert "no instance of function template" in caught.value.log
    assert isinstance(caught.value.__context__, autolink.CxxError)


def test_members_have_names_beside_a_call_that_returns_nothing_and_writes_one_argument():
    library = autolink.cxx("""
        struct Point { int n; float x; };
        __device__ Point make(int& n) { return {++n, 0.5f}; }
        __device__ void set(short& n) { n = 7; }
    """)

    def kernel(n, s, r):
        library.set(s[0])
        p = library.make(n[0])
        r[0], r[1], r[2], r[3] = p.n, p.x, n[0], s[0]

    r = np.zeros(4)
    linked = autolink.build(kernel, "void(int32[::1], int16[::1], float64[::1])", cc=(9, 0))
    linked.emulate[1, 1](np.array([4], np.int32), np.zeros(1, np.int16), r)
    np.testing.assert_array_equal(r, [5, 0.5, 5, 7])


def test_packed_structs_to_which_cxx_refers_are_read_where_they_are():
    library = autolink.cxx("""
        struct __attribute__((packed)) Packed { long long n; };
        struct Outer { float x; Packed p; char c[4]; };
        struct __attribute__((packed)) Bytes { char c; double d[2]; short s; struct Inner { int a; } i; };
        __device__ const Outer& outer(const unsigned char* b) { return *(const Outer*)b; }
        __device__ const Bytes& bytes(const unsigned char* b) { return *(const Bytes*)b; }
    """)

    def kernel(of_outer, of_bytes, r):
        outer, bytes = library.outer(of_outer), library.bytes(of_bytes)
        r[0], r[1], r[2] = outer.x, outer.p.n, outer.c[1]
        r[3], r[4], r[5], r[6] = bytes.c, bytes.d[1], bytes.s, bytes.i.a

    of_outer = np.array([(1.5, 77, b"abcd")], "f4, i8, S4").view("u1")
    of_bytes = np.array([(3, (4.5, 5.5), 6, 7)], "i1, (2,)f8, i2, i4").view("u1")
    r = np.zeros(7)
    autolink.build(kernel, "void(uint8[::1], uint8[::1], float64[::1])", cc=(9, 0)).emulate[1, 1](of_outer, of_bytes, r)
    np.testing.assert_array_equal(r, [1.5, 77, ord("b"), 3, 5.5, 6, 7])


class TestRemediesThatRun:
    lib = autolink.cxx("""
        #include <cuda/std/tuple>
        struct V { float x, y; };
        struct W { float x, y; };
        struct Counter { int n; explicit Counter(int start) : n(start) {} };
        void to_long(long& x) { x = -7; }
        long from_long(const long* x) { return x[0]; }
        int from_char(char* x) { return x[0]; }
        V make(float x) { return {x, x + 1}; }
        W other() { return {8, 9}; }
        void double_at(V* v) { v->x *= 2; }
        float sum(V v) { return v.x + v.y; }
        template <class F> float by_pointer(F f, V* v) { return f(v); }
        template <class F> float by_value(F f, V* v) { return f(*v); }
    """)
    record = lib.record("V", cc=(9, 0))

    def refusal(self, cuda, kernel, *arrays):
        signature = tuple(typeof(each, Purpose.argument) for each in arrays)
        with pytest.raises(Exception) as caught:
            autolink.build(cuda.jit(kernel), signature, cc=(9, 0))
        first, *_, last = str(caught.value).splitlines()
        assert "nca_" not in str(caught.value)
        return first, last

    def run(self, cuda, kernel, *arrays):
        signature = tuple(typeof(each, Purpose.argument) for each in arrays)
        autolink.build(cuda.jit(kernel), signature, cc=(9, 0)).emulate[1, 1](*arrays)

    def test_of_a_type_of_the_same_size(self, cuda):
        to_long, from_long, from_char = self.lib.to_long, self.lib.from_long, self.lib.from_char
        r, longs, chars = np.zeros(3, np.int64), np.array([5]), np.array([65], np.int8)
        first, last = self.refusal(cuda, lambda r: to_long(r[0]), r)
        assert first == "to_long(int64): C++ writes to an argument of type int64 as long&"
        assert last.endswith("let a lambda cast it: lib.expr('[](auto& x) { f(reinterpret_cast<long&>(x)); }')")
        _, last = self.refusal(cuda, lambda r: from_long(r), longs)
        cast = "[](auto* p) { return f(reinterpret_cast<%s *>(p)); }"
        assert last.endswith(f"let a lambda cast it: lib.expr('{cast % 'const long'}')")
        _, last = self.refusal(cuda, lambda r: from_char(r), chars)
        assert last.endswith(f"let a lambda cast it: lib.expr('{cast % 'char'}')")
        _, last = self.refusal(cuda, lambda r: from_char(r), chars.view(np.uint8))
        which = "pass an array of np.int8 as argument 1, and"
        assert last.endswith(f"{which} let a lambda cast it: lib.expr('{cast % 'char'}')")
        to_long = self.lib.expr("[](auto& x) { to_long(reinterpret_cast<long&>(x)); }")
        from_long = self.lib.expr((cast % "const long").replace(" f(", " from_long("))
        from_char = self.lib.expr((cast % "char").replace(" f(", " from_char("))

        def kernel(r, longs, chars):
            n = np.int64(0)
            to_long(n)
            r[0], r[1], r[2] = n, from_long(longs), from_char(chars)

        self.run(cuda, kernel, r, longs, chars)
        assert r.tolist() == [-7, 5, 65]

    def test_of_a_struct_for_a_pointer(self, cuda):
        make, double_at, r, array = self.lib.make, self.lib.double_at, np.zeros(1, np.float32), np.zeros(1, self.record)
        for refused in (lambda r, v: double_at(make(1.0)), lambda r, v: double_at(v[0])):
            first, last = self.refusal(cuda, refused, r, array)
            assert first.endswith("a struct cannot be passed as V *, but memory that it is in")
            assert "pass a slice of an array of lib.record('V'), x[i : i + 1], where a struct" in last

        def kernel(r, v):
            v[0] = make(3.0)
            double_at(v[0:1])
            r[0] = v[0].x

        self.run(cuda, kernel, r, array)
        assert r[0] == 6

    def test_of_a_struct_for_an_element_of_an_array_of_another_one(self, cuda):
        other, r, array = self.lib.other, np.zeros(1, np.float32), np.zeros(1, self.record)

        def refused(r, v):
            v[0] = other()

        first, last = self.refusal(cuda, refused, r, array)
        assert first == "a struct cannot be assigned to an element of an array of records of another type"
        assert "assign its members, x[i]['name'] = r.name" in last

        def kernel(r, v):
            made = other()
            v[0]["x"] = made.x
            r[0] = v[0].x

        self.run(cuda, kernel, r, array)
        assert r[0] == 8

    def test_of_a_python_function_that_gets_a_pointer_to_a_struct(self, cuda):
        by_pointer, by_value = self.lib.by_pointer, self.lib.by_value
        r, array = np.zeros(1, np.float32), np.ones(1, self.record)

        def refused(r, v):
            r[0] = by_pointer(lambda p: p.x, v)

        first, last = self.refusal(cuda, refused, r, array)
        assert first.endswith("with a pointer to a struct, V *, which Python has no type for")
        assert last.endswith("let C++ pass the struct itself, or a reference to it: f(*p)")

        def kernel(r, v):
            r[0] = by_value(lambda p: p.x + 4, v)

        self.run(cuda, kernel, r, array)
        assert r[0] == 5

    def test_of_a_constructor_without_its_memory(self, cuda):
        Counter, r = self.lib.type("Counter", cc=(9, 0)), np.zeros(1, np.float32)
        first, last = self.refusal(cuda, lambda r: Counter(5), r)
        assert first == "the first argument of a constructor is the memory for the object of Counter"
        assert last.endswith("pass an element of an array of its .dtype before the arguments, such as T(x[0], ...)")

    def test_results_are_records_though_there_is_memory_for_objects_of_the_struct_too(self, cuda):
        lib = autolink.cxx("struct V { float x, y; float sum() const { return x + y; } }; V make() { return {1, 2}; }")
        record, memory = lib.record("V", cc=(9, 0)), lib.type("V", cc=(9, 0))
        total, make, r, array = memory.method("sum"), lib.make, np.zeros(3, np.float32), np.zeros(1, record)
        assert memory is lib.type("V", cc=(9, 0))  # which tells the library of it again

        def kernel(r, v):
            v[0] = make()
            r[0], r[1], r[2] = total(v[0]), make().y, total(make())

        self.run(cuda, kernel, r, array)
        assert r.tolist() == [3, 2, 3]

    def test_a_call_that_is_refused_again_has_its_own_types(self):
        """C++ cannot tell the two calls apart."""
        total = self.lib.sum

        def make(pair):
            return lambda r: total(pair(r[0], r[1]))

        for name in ("One", "Two"):
            with pytest.raises(TypingError) as caught:
                build(make(namedtuple(name, "x y")), "void(float32[::1])")
            assert str(caught.value).startswith(
                f"sum({name}(float32 x 2)): argument 1 is a {name}(float32 x 2), and sum takes V\n"
            )

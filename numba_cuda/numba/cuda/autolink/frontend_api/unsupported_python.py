# SPDX-License-Identifier: BSD-2-Clause
"""What kernels do not have of Python and NumPy: the diagnosis and what to do, for what a front end says about it."""

from __future__ import annotations

import ast
import builtins
import math
import operator
import re
import sys

import numpy as np
from numba.core.utils import OPERATORS_TO_BUILTINS

from numba_cuda_autolink.printable_texts import did_you_mean
from numba_cuda_autolink.source_syntax import nodes_of

from .kernel_syntax import (
    MADE_BY_NUMPY,
    NO_CONTAINERS,
    NO_EXCEPTIONS,
    NO_RECURSION,
    NO_TEXT,
    NO_WITH,
    NO_YIELD,
    UNKNOWN_NAME,
    find_method_call,
)
from .record_fields import name_of_struct

PRINT_VALUES = "print values, as in print('x:', x[i])"
AS_LOOP = "write a loop; or let the function call itself with arguments of the same types, n - np.float32(1)"
_LOOP = "write it as a loop over the elements, or compute it before the kernel"
CONVERT = "pass values that it takes: int(x) and float(x) convert a number"
_WITH_ELEMENTS = "write it with elements, x[i], or compute it before the kernel"
_TUPLE_BEFORE = "make a tuple or an array of it before the kernel; in the kernel, cuda.local.array makes an array"
LOCAL_ARRAY = "make an array, with cuda.local.array or before the kernel"
OTHER_COMPILER = (
    "write it with indices, numbers and operators, or compile the kernel with numba-cuda: from numba import cuda"
)
_CALL_EACH = "call each in a statement of its own: functions[0](x), functions[1](x)"
_BY_ITS_NAME = "from numba.cuda import literal_unroll; for numba-cuda-mlir, from numba_cuda_mlir.cuda"
_LOWERS_CALL = r"NotImplemented lowering call to <(?:class '|ufunc '|function |built-in function )"
_UNTYPED = r"Untyped global name '(\w+)': Cannot determine Numba type of <class "
_CONSTANT = r"Literal\[int\]\(\d+\)"
_SHAPE = (
    r"(?:shape[:=] ?)?(?:Literal\[int\]\(\d+\)|UniTuple\(Literal\[int\].*\)|Tuple\((?:Literal\[int\]\(\d+\)(?:, )?)+\))"
)
_CALLED = r"No implementation of (?!array\(|(?:static_)?[gs]etitem\(|delitem\()[\w ]+"
_SET = r"No implementation of setitem\(((?:readonly |unaligned )?array\(.*?\)), .*, "
_BUILTINS = "|".join(each for each in dir(builtins) if each.isalpha() and each.islower())
_OF_PYTHON = "open|input|exec|eval|compile|vars|dir|help|id|hash|iter|next|super|memoryview|object"
_CALCULATES = (
    r"i?(?:add|sub|mul|truediv|floordiv|mod|pow|and|or|xor|lshift|rshift|matmul)_?"
    "|neg|pos|invert|lt|le|gt|ge|abs|min|max|int|float|round|complex|bool|divmod|sum"
)
_TEXT = r"(?:Literal\[str\]|unicode_type)"
_NEW_VALUE = "pass a new value as an argument, or use a variable"
_WRITE_LOOP = "write a loop, and the values to an array"
_NO_KEYWORDS = "kernels have no dictionaries, nor **keywords"
_EACH_PARAMETER = "name each parameter, and pass each value"
_OF_DIMENSIONS = "write one of its dimensions, as in cuda.threadIdx.x"
_SHORT_NAMES = {"np": "numpy as np", "numpy": "numpy"}
IN_CXX = "write it in the kernel, or call a function of C++, autolink.cxx(...)"
_CONTAINER = r"(?:\bDictType\[|\b(?:reflected )?[lL]ist(?:Type\[|\()|\bset\()"

# A diagnosis, in which {} stands for a group of the pattern, takes the place of what the front end says; where it is
# empty, what to do is added to that.
_TABLE = [
    (re.compile(pattern, re.DOTALL), diagnosis, remedy)
    for pattern, diagnosis, remedy in (
        # Statements
        (
            r".*object has no attribute 'set_try_status'|No implementation of (?:exception_match|mark_try_block)\("
            r"|Exception object cannot be stored into variable",
            NO_EXCEPTIONS,
            "write a condition",
        ),
        (
            r".*object has no attribute 'get_function_type'|<class '.*\.Generator'>$",
            NO_YIELD,
            _WRITE_LOOP,
        ),
        (r"The use of yield in a closure", "kernels have no generator expressions", "write a loop"),
        (
            r".*has no attribute 'terminator_types'|The 'with \(context manager\)",
            NO_WITH,
            "write its statements without it",
        ),
        (r".*\((?:GET_YIELD_FROM_ITER|YIELD_FROM|SEND)\) found", NO_YIELD, _WRITE_LOOP),
        (
            r".*object has no attribute 'return_dynamic_user_exc'|NotImplemented lowering <dynamic> raise",
            "an exception in a kernel has constant arguments",
            "raise it with constants, and print values or write them to an array",
        ),
        (r"Directly raising a string constant", "", "raise an exception with the text, such as ValueError('...')"),
        (r".*object has no attribute 'insert_unresolved_ref'", NO_RECURSION, AS_LOOP),
        (
            r"compiler re-entrant to the same function signature",
            "a function calls itself, and what it returns is not known by then",
            "write a loop; or a device function that returns on one path before it calls itself",
        ),
        (
            r"Signature mismatch: (\d+) argument types given, but function takes (\d+) arguments",
            "the signature has another number of types than the function has parameters: {0} and {1}",
            "give one type for each parameter",
        ),
        (r".*\(IMPORT_NAME\) found", "kernels import nothing", "import it before the kernel"),
        (r".*\(STORE_GLOBAL\) found", "kernels assign to no global variable", "write the value to an array"),
        (r".*\(LOAD_BUILD_CLASS\) found", "kernels define no class", "define it before the kernel"),
        (r"Use of unsupported opcode", "kernels do not have this statement of Python", "write it in another way"),
        (r"unhashable type: 'dict'$|Unsupported assignment encountered: <class 'dict'>", _NO_KEYWORDS, _EACH_PARAMETER),
        (
            r"\('wrong tuple length for .*: ', 'expected (\d+), got (\d+)'\)",
            "{1} values are assigned to {0} variables",
            "give as many variables as there are values",
        ),
        (
            r"The compiler failed to analyze the bytecode\. Variable '(\w+)(?:\.\d+)?' is not defined",
            "the variable {0!r} is used before it is assigned",
            "assign it first; where it has the name of a global variable, give it another one",
        ),
        (
            r"No implementation of getitem\(type\(\w+Dispatcher\(<function (\S+) at ",
            "kernels launch no kernels: {0}[...] is launched in one",
            "launch both from Python; or decorate it with @cuda.jit(device=True), and call it without brackets",
        ),
        (
            r"Cannot resolve setattr: \((.*)\)\.\w+ = ",
            "kernels assign to no attribute of {0}",
            _NEW_VALUE,
        ),
        (
            r"No definition for lowering (.*)\.\w+ = ",
            "kernels assign to no attribute of {0}",
            _NEW_VALUE,
        ),
        (r"Illegal IR, del found at: (del [^\n]*)", "kernels have no del", "leave out the statement {0}"),
        # Names
        (
            _UNTYPED + r"'numba\.\w+\.types\.|Unknown attribute '\w+' of type Module\(<module 'numba\.\w+\.types'",
            "",
            "kernels of numba-cuda-mlir take the types of NumPy, such as np.float32, and of numba_cuda_mlir.types",
        ),
        (
            r"Untyped global name 'literal_unroll'",
            "literal_unroll is imported from another package than the kernel's cuda",
            _BY_ITS_NAME,
        ),
        (
            r"Untyped global name '(?:list|dict|set|frozenset|bytearray|bytes)': Cannot determine Numba type of <class"
            r" 'type'>",
            NO_CONTAINERS,
            LOCAL_ARRAY,
        ),
        (
            rf"Untyped global name '({_OF_PYTHON})': Cannot determine Numba type of <class '(?:type|builtin_.*)'>",
            "kernels have no {0}() of Python",
            "call it before the kernel, and pass what it returns",
        ),
        (
            rf"Untyped global name '({_BUILTINS})': Cannot determine Numba type of <class '(?:type|builtin_.*)'>",
            "kernels have no {0}() of Python",
            _LOOP,
        ),
        (
            _UNTYPED + "'function'>",
            "kernels cannot call the Python function {0!r}: it is not a device function",
            "decorate it with @cuda.jit(device=True)",
        ),
        (
            _UNTYPED + "'type'>",
            "kernels cannot use the Python class {0!r}",
            "make the object before the kernel, and pass its values, or a record",
        ),
        (
            _UNTYPED + "'(dict|list|set|str|bytes)'>",
            "kernels cannot use the {1} {0!r} of Python",
            "give it as a tuple of numbers, an array, or arguments of the kernel",
        ),
        (
            _UNTYPED + r"'(?!builtin_|module)(?:[\w<>]+\.)*(\w+)'>",
            "kernels cannot use {0!r}, an object of the Python class {1}",
            "take its values before the kernel, as global variables, or pass them as arguments; if the kernel calls it,"
            " derive its class from autolink.DeviceCallable, or call a function with @cuda.jit(device=True)",
        ),
        # Arrays
        (
            r"array length <= 0|Invalid type:.*invalid memref size",
            "an array has a shape that is not positive",
            "give it a shape of positive constants",
        ),
        (r"(\w+)\(\) only support for numbers", "{0}() takes one number", "give it an element, such as value[0]"),
        (r"Alignment must be a power of 2", "", "give one such as alignment=16, in bytes"),
        (
            rf"No implementation of array\((?:shape[:=] ?)?(?:(?:Uni)?Tuple\((?:{_CONSTANT}, )*)?(?:u?int|float)\d",
            "the shape of an array is a variable, and has to be constant",
            "give it as numbers or global variables; cuda.shared.array(0, dtype) is dynamic shared memory, whose size"
            " in bytes a launch gives: kernel[blocks, threads, stream, nbytes]",
        ),
        (
            r"No implementation of array\([^\n]*(?:Literal\[str\]|Function\(<class ')",
            "the dtype of an array is not one of NumPy or Numba",
            "give the dtype as a NumPy type, such as np.float32",
        ),
        (
            rf"No implementation of array\({_SHAPE}\)",
            "the array has no dtype",
            "pass it after the shape, as in cuda.local.array(4, np.float32)",
        ),
        (
            r"No implementation of (?:static_)?[gs]etitem\((?:Literal\[\w+\]\()?(?:u?int|float|complex|bool|none)",
            "",
            "pass an array: numbers and None have no elements",
        ),
        (
            _SET + r"(none|Literal\[str\]\(.*\)|unicode_type)\)",
            "an element of {0} cannot be set to {1}",
            "assign a number",
        ),
        (
            _SET + r"(complex\d+)\)",
            "an element of {0} cannot be set to {1}",
            "assign its part, value.real or value.imag",
        ),
        (
            _SET + r"((?:readonly )?array\(.*\))\)",
            "an element of {0} cannot be set to {1}",
            "assign an element, in a loop for all of them",
        ),
        (
            r"No implementation of setitem\(.*, (?:(?:Uni)?Tuple|Struct\{.*\})\(.*\)\)",
            "",
            "assign its elements one by one: x[i] = value[0]; or value.name, for a member of a struct",
        ),
        (
            _SET + r"(\w+\*)\)",
            "an element of {0} cannot be set to the pointer {1}",
            "assign what it points to: x[i] = pointer[0]",
        ),
        (r"No implementation of getitem\(Tuple\(", "", "give the index of a tuple of different types as a constant"),
        (
            r"Cannot modify readonly array",
            "",
            "pass an array that can be written to: kernels read global ones as constants",
        ),
        (r"tuple index out of range$", "", "give an index that the tuple has: from 0 to its length less 1"),
        (r"Unsupported array index type Dim3", "", _OF_DIMENSIONS),
        (r"Unknown attribute '\w+' of type Dim3", "", "write x, y or z, as in cuda.threadIdx.x"),
        (r"Unsupported array index type float", "", "convert the index with int(...)"),
        (r"Unsupported array index type", "", "index with an integer, or with a slice"),
        (r"cannot index array\(\w+, (\d+)d", "", "give one index for each dimension, {0} here"),
        (
            r"'(?:Integer|Float|Complex|Boolean)\w*' object has no attribute 'dtype'$",
            "a number is passed where an array belongs",
            "pass the array, and the index as an argument of its own: cuda.atomic.add(x, 0, 1)",
        ),
        (
            r"'(?:UnicodeType|StringLiteral)' object has no attribute",
            "a text is used where a number belongs",
            "use numbers: kernels have text in print() alone",
        ),
        (
            r"Expected either a scalar linear index or (\d+) indices for memref",
            "the index has another number of dimensions than the array",
            "give one index for each dimension, {0} here",
        ),
        (
            r"No implementation of (?:truth|bool|not_)\(((?:readonly )?array\(.*\))\)",
            "a condition cannot be {0}",
            "test an element, as in x[i] > 0, or the number of them, x.size > 0",
        ),
        (
            r"No implementation of (?:and_|or_|xor|inc|dec)\((?:readonly )?array\((?:float|complex)",
            "",
            "pass an array of integers: this operation is one of bits, or of counters",
        ),
        (r"<ufunc '\w+'>$", "kernels do not calculate with whole arrays", "write a loop over the elements"),
        (r"No definition for lowering array\.(\w+)\(", "kernels have no method {0} of arrays", _LOOP),
        (
            rf"No implementation of (?!mod\({_TEXT})(?:{_CALCULATES})\(.*{_TEXT}",
            "",
            "use numbers: kernels have text in print() alone",
        ),
        (
            rf"{_CALLED}\((?:[^\n]*[ =])?(?:readonly )?array\(",
            "",
            "give it elements, in a loop: kernels calculate with numbers",
        ),
        # Values
        (
            rf"No implementation of (?:{_CALCULATES})\((?:.*, )?none\b",
            "",
            "use numbers: a value is None here, as the result of a function that returns nothing is",
        ),
        (rf"No implementation of (?:{_CALCULATES})\(.*Tuple\(", "", "use the elements of a tuple, such as value[0]"),
        (
            r"No implementation of (?:i?(?:and|or)_?|i?xor|i?[lr]shift|invert)\((?:.*, )?float",
            "",
            "convert to integers with int(...); conditions are combined with and, or and not",
        ),
        (r"No implementation of len\(", "", "pass an array or a tuple: other values have no length"),
        (
            r"No implementation of range\(\)",
            "range() takes 1 to 3 arguments, got 0",
            "pass the end, as in range(x.size)",
        ),
        (
            r"No implementation of (grid(?:size)?)\((?:u?int|float)",
            "the number of dimensions in cuda.{0}() has to be constant",
            "pass 1, 2 or 3 as a constant: a number, or a global variable",
        ),
        (
            r"argument can only be 1, 2, 3$|cuda\.grid\w*\(\) only supports dimensions",
            "a grid has 1, 2 or 3 dimensions",
            "write cuda.grid(1), cuda.grid(2) or cuda.grid(3)",
        ),
        (
            r"Pseudo-exception to force literal arguments|Cannot request literal type",
            "an argument of this call must be a constant",
            "write a number, or a global variable, which kernels read as a constant",
        ),
        (
            r"Invalid use of getiter with parameters \((Literal\[\w+\]\(.*?\)|(?:u?int|float|complex)\d+|bool|none)\)",
            "{0} has no elements to loop over",
            "loop over range(...), an array or a tuple",
        ),
        (r"Invalid use of (Dim3) with parameters", "{0} is not a function", _OF_DIMENSIONS),
        (
            r"Invalid use of (.*) with parameters \(.*\)\nNo type info available for .* as a callable",
            "{0} is not a function",
            "call a function; an element is in brackets, x[i], and a product has its sign, a * (b + c)",
        ),
        (r"Cannot cast (.*) to (\S+): .*", "{0} cannot be converted to {1}", "give a value of that type"),
        (r"Use of unsupported NumPy function '([\w.]+)'", "kernels have no {0} for this use", IN_CXX),
        (
            r"Unknown attribute '\w+' of type (?:u?int|float|complex|bool)\d*\b",
            "",
            "compute it with operators and math: numbers have real and imag alone",
        ),
        (
            r"Unknown attribute '(\w+)' of type none",
            "a value is None, which has no attribute {0!r}",
            "use another value: what a function without a result returns is None",
        ),
        (r"failed to unpack (.*)", "{0} cannot be unpacked", "assign it to one variable"),
        (
            r"Numba's print\(\) function implementation does not support keyword",
            "print() takes no keyword arguments in kernels",
            PRINT_VALUES,
        ),
        (
            rf"<[^\n]*OverloadSelector object at [^\n]*{_CONTAINER}",
            NO_CONTAINERS,
            _TUPLE_BEFORE,
        ),
        (
            r"printing unimplemented for values of type unicode_type|format spec in f-strings"
            rf"|Unknown attribute '\w+' of type {_TEXT}"
            r"|No implementation of (?:str|format|mod)\((?:Literal\[str\]|\w+\))",
            NO_TEXT,
            PRINT_VALUES,
        ),
        (
            r"printing unimplemented for values of type (.*)$",
            "print() does not print {0} in kernels",
            PRINT_VALUES,
        ),
        (
            rf"No implementation of \w+\([^\n]*{_CONTAINER}|Unknown attribute '\w+' of type {_CONTAINER}"
            r"|Unknown attribute '(?:add|append)' of type \w*iter"
            r"|.* object has no attribute 'build_(?:set|map)'",
            NO_CONTAINERS,
            LOCAL_ARRAY,
        ),
        (
            r"<class '[\w.]+\.containers\.(?:List|Set|DictType)'>$",
            NO_CONTAINERS,
            _TUPLE_BEFORE,
        ),
        (
            r"\*args in function call should be a tuple, got ",
            "",
            "pass a tuple, whose length is known, or write the arguments: f(x[0], x[1])",
        ),
        (rf".*{_CONTAINER}", "", f"{NO_CONTAINERS}: {LOCAL_ARRAY}"),
        (
            r"No conversion from (.*) to none$",
            "kernels return nothing, and this one returns {0}",
            "write the result to an array",
        ),
        (
            r"CUDA kernel must have void return type",
            "kernels return nothing, and this one returns a value",
            "write the result to an array",
        ),
        (r"Cannot unify ", "", "give the variable one type on all paths, or use a variable for each"),
        (r"cannot type infer runaway recursion", "", "let the function return on one path before it calls itself"),
        (
            r"Invalid use of getiter with parameters \(Tuple\(type\(\w+Dispatcher|<class '.*\.MLIRDispatcherType'>$",
            "kernels do not loop over a tuple of device functions",
            _CALL_EACH,
        ),
        (
            r"Invalid use of getiter with parameters \(Tuple\(",
            "kernels do not loop over a tuple of different types",
            f"loop over literal_unroll(values), imported by its name: {_BY_ITS_NAME}",
        ),
        (
            rf"{_CALLED}\(",
            "",
            CONVERT,
        ),
        # What numba-cuda-mlir does not compile
        (
            rf"{_LOWERS_CALL}({MADE_BY_NUMPY})\b",
            "kernels of numba-cuda-mlir do not make an array with {0}() of these arguments",
            "make it with cuda.local.array(shape, dtype), and assign its elements",
        ),
        (rf"{_LOWERS_CALL}(\w+)", "kernels of numba-cuda-mlir have no {0}() for these arguments", OTHER_COMPILER),
        (
            r"NotImplemented lowering call to MemRefValue",
            "kernels of numba-cuda-mlir do not have this method of arrays",
            OTHER_COMPILER,
        ),
        (
            r"getattr\((.*), attr='(\w+)'\)$",
            "kernels of numba-cuda-mlir have no attribute {1!r} of {0}",
            OTHER_COMPILER,
        ),
        (
            r"NotImplemented lowering setattr for .* \(type: (.*)\)",
            "kernels assign to no attribute of {0}",
            _NEW_VALUE,
        ),
        (
            r"lowering getitem |Expected Python tuple, got ",
            "kernels of numba-cuda-mlir do not take elements from this value",
            OTHER_COMPILER,
        ),
        (
            r"Failure while executing pass pipeline",
            "numba-cuda-mlir makes invalid code of this function",
            OTHER_COMPILER,
        ),
        (
            r"Invalid MLIR module: ",
            "numba-cuda-mlir makes invalid code of this function",
            "convert the values in it to the type of the result, or compile the kernel with numba-cuda:"
            " from numba import cuda",
        ),
    )
]
_OPERATOR = re.compile(r"NotImplemented lowering (?:binop|unary) fn=<built-in function (\w+)>")
_OF_MODULE = re.compile(r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'")
_OF_ARRAY = re.compile(r"Unknown attribute '(\w+)' of type (?:readonly )?array\(.*")
_OF_STRUCT = re.compile(r"Unknown attribute '(?P<name>\w+)' of type Struct\{(?P<members>.*?)\}.*")
# A record with an object of C++, which kernels do not look into, has one field of this name.
_OBJECT, _FIELD = "object_", re.compile(r"[(,](\w+)\[type=")
_OF_OBJECT = re.compile(rf"Unknown attribute '(?P<name>\w+)' of type (?:value of )?Record\({_OBJECT}.*")
_ON_STRUCT = re.compile(
    r"No implementation of (?!array\(|(?:static_)?[gs]etitem\(|delitem\()(?P<name>\w+)"
    r"\((?:.*?\b)?(?:Struct\{(?P<members>.*?)\}|Record\().*"
)
_LINEAR_ALGEBRA = re.compile(
    r"scipy [\d.]+\+ is required for linear algebra|Unknown attribute '\w+' of type Module\(<module 'numpy.linalg'.*"
)
_COUNT = re.compile(r"(?:not enough|too many) values to unpack \(expected (\d+)(?:, got (\d+))?\)$")


_MOST_MEMBERS = 4


def _names_of_module(filename: str) -> list[str]:
    """Return the names that a Python file assigns, imports or defines outside of functions and classes."""
    found = []
    for node in (each for tree in nodes_of(filename) if isinstance(tree, ast.Module) for each in tree.body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [each.asname or each.name.partition(".")[0] for each in node.names]
        else:
            names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            found += [each.id for each in names if isinstance(each.ctx, ast.Store)]
    return found


def with_remedy(message: str, place: tuple[str, int] | None = None) -> str:
    """Return the *message* of an error, a diagnosis of a front end, with what to do about it as a last line, if that is
    known. *place* is the file and line that it is about."""
    if "what to do: " in message or "; did you mean " in message:
        return message
    if count := _COUNT.match(message):  # where a front end takes the arguments of a call apart
        return f"a call takes {count[1]} arguments here{f', got {count[2]}' if count[2] else ', got more'}"
    if name := UNKNOWN_NAME.match(message):
        todo = "define it before the kernel is compiled, or pass it as an argument"
        if name[1] in sys.stdlib_module_names or name[1] in _SHORT_NAMES:
            todo = f"import it before the kernel: import {_SHORT_NAMES.get(name[1], name[1])}"
        elif hasattr(math, name[1]):
            todo = f"import math, and call math.{name[1]}"
        elif place and (meant := did_you_mean(name[1], _names_of_module(place[0]))):
            todo = meant.removeprefix("; ")
        return f"{message.removeprefix('NameError: ')}\n  what to do: {todo}"
    if _LINEAR_ALGEBRA.match(message):
        return (
            "kernels have no linear algebra of NumPy\n  what to do: write it with loops, call a C++ library,"
            " autolink.cxx(...), or compute it before the kernel"
        )
    if attribute := _OF_ARRAY.match(message):
        meant = did_you_mean(attribute[1], dir(np.ndarray))
        return message.replace(attribute[0], attribute[0] + (meant or f"\n  what to do: {_WITH_ELEMENTS}"), 1)
    if attribute := _OF_STRUCT.match(message):
        meant = did_you_mean(attribute["name"], attribute["members"].split(", "))
        call = None if place is None else find_method_call(*place, attribute["name"])
        remedy = "" if meant else f"\n  what to do: {_without_member(attribute['name'], attribute['members'], call)}"
        rest = message[attribute.end() :] + remedy
        return f"{attribute[0]}{meant}\n  its members: {attribute['members']}{rest}"
    if attribute := _OF_OBJECT.match(message):
        member = attribute["name"]
        return (
            f"kernels know no members of an object of C++, got {member!r}\n"
            "  what to do: let a lambda return the member:"
            f" lib.expr('[](auto x) {{ return x.{member}; }}'); or have its members as fields, lib.record(...)"
        )
    for pattern, diagnosis, remedy in _TABLE:
        if found := pattern.match(message):
            first = diagnosis.format(*found.groups()) or message
            of_members = _with_members(message) if remedy is CONVERT else ""
            return f"{first}\n  what to do: {of_members or remedy.format(*found.groups())}"
    if attribute := _OF_MODULE.match(message):
        return _no_function(*attribute.groups())
    if found := _OPERATOR.match(message):
        shown = OPERATORS_TO_BUILTINS.get(getattr(operator, found[1], None), found[1])
        return (
            f"kernels of numba-cuda-mlir do not have the operator {shown} for these values\n"
            f"  what to do: {OTHER_COMPILER}"
        )
    return message


def _with_members(message: str) -> str:
    """Return what to do where a *message* says that an operation takes no structs of C++ or records; empty if it is
    about other values."""
    operation = _ON_STRUCT.match(message)
    if operation is None:
        return ""
    members = operation["members"].split(", ") if operation["members"] else _FIELD.findall(message)
    names = dict.fromkeys(each for each in members if not each.startswith(_OBJECT))
    shown = ", ".join(f".{each}" for each in [*names][:_MOST_MEMBERS]) or "value.name"
    shown += ", ..." if len(names) > _MOST_MEMBERS else ""
    sign = OPERATORS_TO_BUILTINS.get(getattr(operator, operation["name"], None), "")
    if sign in ("", "**", "//", "@", "is", "in", "is not", "not in"):
        return f"use its members: {shown}"
    sign = sign.removesuffix("=") if operation["name"].startswith("i") else sign
    is_unary = operation["name"] in ("neg", "pos", "invert", "not_")
    parameters, value = ("auto x", f"{sign}x") if is_unary else ("auto x, auto y", f"x {sign} y")
    cxx = f"let C++ do it: lib.expr('[]({parameters}) {{ return {value}; }}')"
    has_members = bool(names) or _OBJECT not in message
    return f"use its members, {shown}; or {cxx}" if has_members else cxx


def _without_member(name: str, members: str, call: ast.Call | None) -> str:
    """Return what to do about a *name* that a struct of C++ does not have among its *members*, and the *call* of it, if
    it is called."""
    if call is None:
        return f"use one of its members, such as {members.partition(',')[0]}"
    struct, more, passed = name_of_struct(members), "", ""
    if call.args or call.keywords:
        more, passed = ", auto... more", "more..."
    expression = f"lib.expr('[]({struct or 'T'} x{more}) {{ return x.{name}({passed}); }}')"
    which = "" if struct else ", with the struct's name for T"
    return f"let C++ call a member function{which}: {name} = {expression} before the kernel, and {name}(...) in it"


def _no_function(name: str, module: str) -> str:
    """Return the message for a *name* of a Python *module* that kernels do not have."""
    if module == "numpy.random":
        remedy = "draw numbers with numba.cuda.random, or with cuRAND from C++, autolink.cxx(...)"
    else:
        remedy = IN_CXX
    return f"kernels have no {module}.{name}\n  what to do: {remedy}"

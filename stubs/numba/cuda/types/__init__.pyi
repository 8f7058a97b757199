# SPDX-License-Identifier: BSD-2-Clause
# The classes of numba-cuda that stand for these are named alike, but have no types of their own.
# A hook annotates a parameter that is a constant with Literal, and its default is a number: no module has this name, so
# that it is of any type. mypy takes the first import of a name, pyright the last.
from numba_cuda import Literal as Literal  # isort: skip
from numba.core.types import *  # noqa: F403
from numba.core.types import (
    Any as Any,
    NPDatetime as NPDatetime,
    NPTimedelta as NPTimedelta,
    c_bool as c_bool,
    c_float16 as c_float16,
    c_float32 as c_float32,
    c_float64 as c_float64,
    c_int8 as c_int8,
    c_int16 as c_int16,
    c_int32 as c_int32,
    c_int64 as c_int64,
    c_intp as c_intp,
    c_uint8 as c_uint8,
    c_uint16 as c_uint16,
    c_uint32 as c_uint32,
    c_uint64 as c_uint64,
    c_uintp as c_uintp,
    code_type as code_type,
    complex_domain as complex_domain,
    ellipsis as ellipsis,
    f2 as f2,
    float16 as float16,
    integer_domain as integer_domain,
    np_bool_ as np_bool_,
    np_complex64 as np_complex64,
    np_complex128 as np_complex128,
    np_complex_domain as np_complex_domain,
    np_double as np_double,
    np_float16 as np_float16,
    np_float32 as np_float32,
    np_float64 as np_float64,
    np_float_ as np_float_,
    np_int8 as np_int8,
    np_int16 as np_int16,
    np_int32 as np_int32,
    np_int64 as np_int64,
    np_integer_domain as np_integer_domain,
    np_intp as np_intp,
    np_number_domain as np_number_domain,
    np_real_domain as np_real_domain,
    np_signed_domain as np_signed_domain,
    np_uint8 as np_uint8,
    np_uint16 as np_uint16,
    np_uint32 as np_uint32,
    np_uint64 as np_uint64,
    np_uintp as np_uintp,
    np_unsigned_domain as np_unsigned_domain,
    npy_bitgen as npy_bitgen,
    npy_rng as npy_rng,
    number_domain as number_domain,
    py2_string_type as py2_string_type,
    py_bool as py_bool,
    py_complex as py_complex,
    py_complex_domain as py_complex_domain,
    py_float as py_float,
    py_int as py_int,
    py_integer_domain as py_integer_domain,
    py_number_domain as py_number_domain,
    py_real_domain as py_real_domain,
    py_signed_domain as py_signed_domain,
    pyfunc_type as pyfunc_type,
    pyobject as pyobject,
    range_iter32_type as range_iter32_type,
    range_iter64_type as range_iter64_type,
    range_state32_type as range_state32_type,
    range_state64_type as range_state64_type,
    real_domain as real_domain,
    signed_domain as signed_domain,
    slice2_type as slice2_type,
    slice3_type as slice3_type,
    string as string,
    undefined as undefined,
    unicode_type as unicode_type,
    unknown as unknown,
    unsigned_domain as unsigned_domain,
    unsigned_range_iter64_type as unsigned_range_iter64_type,
    unsigned_range_state64_type as unsigned_range_state64_type,
    voidptr as voidptr,
)
from numba.core.types.abstract import *  # noqa: F403
from numba.core.types.common import Opaque as Opaque
from numba.core.types.containers import *  # noqa: F403
from numba.core.types.function_type import *  # noqa: F403
from numba.core.types.functions import *  # noqa: F403
from numba.core.types.iterators import *  # noqa: F403
from numba.core.types.misc import *  # noqa: F403
from numba.core.types.npytypes import *  # noqa: F403
from numba.core.types.scalars import *  # noqa: F403
from numba_cuda.numba.cuda.types import (
    Dim3 as Dim3,
    GridGroup as GridGroup,
    bfloat16 as bfloat16,
    dim3 as dim3,
    grid_group as grid_group,
)

from numba_cuda import Literal as Literal  # noqa: F811 # isort: skip

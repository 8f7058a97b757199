# SPDX-License-Identifier: BSD-2-Clause
"""What to do about CUDA C++ that does not compile."""

import pytest
from numba.cuda import autolink
from numba.cuda.cudadrv.link_errors import LinkError


def message_of(code):
    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(code)

    scale = Scale()

    def kernel(data):
        data[0] = scale(data[1])

    with pytest.raises(LinkError) as failure:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    return str(failure.value)


@pytest.mark.parametrize(
    "code, remedy",
    [
        ("#include <cmath>", "include <cuda/std/cmath>, whose names are in cuda::std, or put a file cmath"),
        ('#include "stdlib.h"', "include <cuda/std/cstdlib>, whose names are in cuda::std, or put a file stdlib.h"),
        (
            "#include <fstream>",
            "put a file fstream with what is used of it into a folder of the source's include_paths",
        ),
        ("#include <glm/glm.hpp>", "what to do: put the folder that has glm/glm.hpp into the source's include_paths"),
        ("inline int host() { return 1; }", "options={'device_as_default_execution_space': True}"),
        ("int;;;garbage", "what to do: mend the source at the line that the log names"),
    ],
)
def test_is_told_by_what_is_wrong(code, remedy):
    assert remedy in message_of(code)

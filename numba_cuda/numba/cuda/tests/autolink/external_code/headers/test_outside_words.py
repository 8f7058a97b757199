# SPDX-License-Identifier: BSD-2-Clause
"""Which texts may put the path of a file into the code."""

import pytest
from numba.cuda.cudadrv.external_code.headers.outside_words import may_have_path

CHECK = (
    b"#define CHECK(x) \\\n  ((x) ? 0 : fail(__FILE__))\n#  define TWICE(x) CHECK(x) + CHECK(x)\n#define PLAIN(x) x\n"
)


@pytest.mark.parametrize(
    "text, expected",
    [
        (b"int f();", False),
        (b"const char *p = __FILE__;", True),
        (b"const char *p = __FI\\\nLE__;", True),
        (b"const char *p = __FI??/\nLE__;", True),
        (b"const char *p = PASTE(__FI, LE__);", True),
        (b"const char *p = PASTE(__FIL, E__);", True),
        (b"const char *p = __builtin_FILE();", True),
        (b"auto where = std::source_location::current();", True),
        (b"assert(n);", True),
        (b"static_assert(true); my_assert$(1); asserted();", False),
        (b"#define SMALL_FILTER 3\nconst double PROFILE = 1; __builtin_sqrt(2);", False),
        (b"CHECK(n);", True),
        (b"int n = TWICE(1);", True),
        (b"PLAIN(n);", False),
    ],
)
def test_words_pieces_of_words_and_macros_of_packages(text, expected):
    assert may_have_path([b"", text], [b"int g();", CHECK]) == expected


def test_a_macro_of_the_user_s_own_is_a_text_like_any_other():
    assert may_have_path([b"CHECK(n);", CHECK], [])
    assert not may_have_path([b"CHECK(n);"], [])

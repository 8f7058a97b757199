# SPDX-License-Identifier: BSD-2-Clause
"""Texts that are written to take for ever: each is read in about the time of its size, or left to NVRTC."""

import pytest
from numba.cuda.cudadrv.external_code.headers.macros import Macros, UnknownTextError
from numba.cuda.cudadrv.external_code.headers.preprocessor import Directives, without_comments
from numba.cuda.cudadrv.external_code.headers.scan import SourceText

SIZE = 120_000


def scan(text):
    return SourceText(text.encode(), "", ()).scan()


DOUBLING = "".join(f"#define A{n} A{n + 1}/A{n + 1}\n" for n in range(16))
CHOICES = "".join(f"#define A{n} A{n + 1}/A{n + 1}\n#define A{n} B{n}\n" for n in range(12))


@pytest.mark.parametrize(
    "text",
    [
        f"{DOUBLING}#define A16 x\n#define T <A0>\n#include T\n",
        f"{CHOICES}#define T <A0>\n#include T\n",
        "".join(f"#define A{n} A{n + 1}\n" for n in range(3000)) + "#include A0\n",
        "".join(f"#define A{n} x/A{n + 1}\n" for n in range(3000)) + "#define T <A0>\n#include T\n",
        "#define A <a>\n#define A <b>\n" + "#include A\n" * 10_000,
    ],
    ids=["doubling", "choices", "chain", "chain in a path", "the same again"],
)
def test_macros_that_name_headers(text):
    found = scan(text)
    assert found.computed or found.absent == {}  # a compile has to tell, or all were looked up


def test_a_chain_of_macros_that_probe():
    chain = "".join(f"#define A{n}(x) A{n + 1}(x)\n" for n in range(3000))
    text = f"{chain}#define A3000(x) __has_include(x)\n#if A0(<gone.h>)\n#endif\n"
    found = SourceText(text.encode(), "", ("/nowhere",)).scan()
    assert found.unclear is None
    assert "gone.h" in found.absent["/nowhere"]


@pytest.mark.parametrize(
    "piece",
    ['R"(', 'R"a(', "/*", "/*/", '"', "'", "\\\n", "1.", "1'", "__has_include(<", "__has_include(", "__has_include ",
     "defined ", "#", "%:", "#include <", "/", "//", '"\\', "__has_", "s_include ", "??", "\\u", "E__ ", "/* #\n",
     "*/ #", "/*\n#include A\n*/", "\n#define A /*", "\n#define A(", "\n\t", "\n#if __has_include(A)"],
)  # fmt: skip
def test_the_same_again_and_again(piece):
    text = (piece * (SIZE // len(piece))).encode()
    for each in text, b"#define A " + text, b"#if " + text + b"\n", text.replace(b" ", b"\n"):
        Directives.of(each)
        without_comments(each)


@pytest.mark.parametrize("name", ["__has_include", "__DATE__", "__TIME__", "__FILE__"])
def test_each_way_to_paste_a_predefined_name_of_two_parts_is_seen(name):
    for end in range(1, len(name)):
        parts = f"#define CAT(a, b) a##b\nCAT({name[:end]}, {name[end:]})\n".encode()
        assert Directives.of(parts).unclear, parts
    assert not Directives.of(f"int foo_{name[2:]}, {name}0;\n".encode()).unclear


def test_a_chain_of_macros_to_a_path_is_followed_to_its_end():
    chain = b"".join(b"#define A%d A%d\n" % (n, n + 1) for n in range(3000)) + b"#define A3000 A0 assert B\n"
    macros = Macros(Directives.of(chain).definitions)
    assert macros.contain_path(b"int x = A0;")
    assert not macros.contain_path(Directives.of(b"int x = B; /* A0 */").text)
    assert not Macros(Directives.of(chain.replace(b"assert", b"")).definitions).contain_path(b"A0")


def test_many_probes_on_one_line():
    macros = Macros(Directives.of(b"#define P(x) __has_include(x)\n").definitions)
    assert list(macros.probed(b"P(<a>) " * 20_000, macros.probing())) == ["a"] * 20_000
    with pytest.raises(UnknownTextError):
        list(macros.probed(b"P(a) " * 20_000, macros.probing()))


def test_what_follows_a_comment_that_does_not_end_is_found_all_the_same():
    assert Directives.of(b'/* a\n#include "b"\n').names == (('"', "b"),)
    assert Directives.of(b'/*/\n#include "b"\n').names == (('"', "b"),)
    assert Directives.of(b'R"x(\n#include "b"\n').names == (('"', "b"),)
    assert Directives.of(b'/**/\n/* */ #include "b"\n').names == (('"', "b"),)
    assert Directives.of(b'/* a\n#include "b"\n*/ int x; /* c').names == ()

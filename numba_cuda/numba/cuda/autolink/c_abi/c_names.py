# SPDX-License-Identifier: BSD-2-Clause
"""Names of Python's parameters as members of a struct in C and C++, where some of them mean something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue contract_assert decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual
    void volatile wchar_t while xor xor_eq
"""
# Macros of compilers, and of headers of C that a program may include before.
_MACROS = """
    linux unix i386 arm sparc mips sun NULL EOF I complex imaginary noreturn errno assert offsetof stdin stdout stderr
    va_start va_arg va_end va_copy setjmp signbit BUFSIZ SEEK_CUR SEEK_END SEEK_SET FILENAME_MAX FOPEN_MAX TMP_MAX
    L_tmpnam L_ctermid P_tmpdir FD_SETSIZE MB_CUR_MAX NFDBITS WCONTINUED WEXITED WNOHANG WNOWAIT WSTOPPED WUNTRACED
"""
# Words that no member, and no kernel, can be called by.
RESERVED = frozenset((_KEYWORDS + _MACROS).split())
# Types that a header uses, after which C++ does not let a member have their names; macros of the headers that it
# includes; its struct of arguments, whose name C++ does not let a member have, and its guard.
_USED = re.compile(
    r"u?int(_least|_fast)?(8|16|32|64)_t|u?int(ptr|max)_t|size_t|ptrdiff_t|max_align_t|nullptr_t"
    r"|CU\w+|cu[A-Z]\w*|cuuint(32|64)_t"
    r"|(U?INT(_LEAST|_FAST)?(8|16|32|64)|U?INT(PTR|MAX)?|SIZE|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_(MAX|MIN|C|WIDTH)"
    r"|(FP|MATH|EXIT|RAND|LITTLE|BIG|PDP|BYTE)_\w+|BYTE_ORDER"
    r"|\w+_(arguments|KERNEL_H)"
)


def members(names: Iterable[str]) -> Iterator[str]:
    """Yield a name in C for each of the *names* of parameters or items: the same where C and C++ accept it in a header
    of this project, with ``_`` after it where it means something else, ``item0`` where it is not a name."""
    taken: set[str] = set()
    for number, name in enumerate(names):
        # Compilers have names of their own that begin with two underscores, or with one and a capital letter.
        if not (name.isascii() and name.isidentifier()) or re.match(r"_[_A-Z]", name):
            name = f"item{number}"
        if name in RESERVED or _USED.fullmatch(name):
            name += "_"
        while name in taken:
            name += "_"
        taken.add(name)
        yield name

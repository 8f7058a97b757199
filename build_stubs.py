# SPDX-License-Identifier: BSD-2-Clause
"""Builds the stubs that are installed: those in stubs, with the docstrings of the code, which editors show.

Those of numba.cuda go into the folder of Numba's own numba.cuda, where all tools look for that package. A package
numba-stubs hides Numba's own types: pyright then reads none of Numba's stubs. The other modules of numba-cuda, which no
tool finds under the names that they are imported by, have stubs that hand on what is in them. The package
numba_cuda_autolink has stubs of its own, so that editors complete no modules and no attributes that are not public.
Those of numba_cuda_mlir are partial: of all but its cuda, tools read its own.
jedi completes all folders and files of a package: what stubs share is in numba.cuda.core._stubs.
jedi does not look for ``__getattr__`` in stubs: classes that have it are in Python files, which no program can import.
"""

import ast
import functools
import inspect
import re
import shutil
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
STUBS = ROOT / "stubs"
PACKAGES = ("numba", "numba_cuda_autolink-stubs", "numba_cuda_mlir-stubs")
MODULES = ROOT / "stubs" / "numba_cuda_modules.txt"
# mypy, which does not look into numba-cuda's code, takes any name.
HANDED_ON = """from typing import Any as _Any

from {origin} import *
{submodules}
def __getattr__(name: str) -> _Any: ...
"""
CODE = ROOT / "numba_cuda" / "numba" / "cuda"
Declaration = ast.ClassDef | ast.FunctionDef | ast.AnnAssign


class Stubs(BuildHookInterface[Any]):
    """Adds the stubs to a wheel, also that of an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="stubs-")
        write_stubs(Path(self.folder.name))
        build_data["force_include"].update({f"{self.folder.name}/{name}": name for name in PACKAGES})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self.folder.cleanup()


def write_stubs(folder: Path) -> None:
    """Write all stubs to *folder*, that of installed packages, with docstrings."""
    for name in PACKAGES:
        shutil.copytree(STUBS / name, folder / name, dirs_exist_ok=True)
    cuda, origins = folder / "numba" / "cuda", handed_on()
    for name, origin in origins.items():
        stub = cuda.joinpath(*name.split("."), "__init__.pyi")  # a folder, as in stubs/numba/cuda/autolink
        stub.parent.mkdir(parents=True, exist_ok=True)
        own = (each.parent.name for each in STUBS.glob(f"numba/cuda/{name.replace('.', '/')}/[!_]*/__init__.pyi"))
        below = [*own, *(each.rpartition(".")[2] for each in origins if each.rpartition(".")[0] == name)]
        submodules = "".join(f"from . import {each} as {each}\n" for each in below)
        stub.write_text(HANDED_ON.format(origin=origin, submodules=submodules))
    for stub in (cuda / "decorators" / "__init__.pyi", cuda / "autolink" / "__init__.pyi"):
        stub.write_text(with_options(stub.read_text()))
    of_autolink = [
        *(cuda / "autolink").rglob("*.pyi"),
        cuda / "decorators" / "__init__.pyi",
        cuda / "core" / "_stubs" / "autolink" / "__init__.pyi",
        *(cuda / "core" / "_stubs").glob("*.py"),
    ]
    for stub in of_autolink:
        module = stub.parent if stub.name == "__init__.pyi" else stub.with_suffix("")
        stub.write_text(with_docstrings(stub.read_text(), module.relative_to(cuda).parts))
    stub = folder / "numba_cuda_autolink-stubs" / "__init__.pyi"
    stub.write_text(with_docstrings(stub.read_text(), ("numba_cuda_autolink",)))


def handed_on() -> dict[str, str]:
    """Return the modules below numba.cuda that have no stub in stubs, with those that what is in them comes from.

    numba-cuda puts some of Numba's modules in place of its own, where Numba is installed.
    """
    lines = [line.split() for line in MODULES.read_text().splitlines()]
    return {name: origin[0] if origin else f"numba_cuda.numba.cuda.{name}" for name, *origin in lines}


def with_options(stub: str) -> str:
    """Return the text of a *stub* with the options of ``cuda.jit`` as parameters, as jedi needs them. An overload in
    which they are called _no_such_option is there for what checkers say of wrong ones."""
    tree = ast.parse((STUBS / "numba" / "cuda" / "decorators" / "__init__.pyi").read_text())
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "JitOptions"]
    options = ", ".join(f"{ast.unparse(node)} = ..." for node in body)
    last = ", ".join(f"{ast.unparse(node)} | NoOther = ..." for node in body)
    stub = re.sub(r"(\*\*_no_such_option: )Unpack\[JitOptions\]", rf"{last}, \1NoSuchOption[Never]", stub)
    return re.sub(r"\*\*\w+: Unpack\[JitOptions\]", options, stub)


def with_docstrings(stub: str, module: tuple[str, ...]) -> str:
    """Return the text of a *stub* with the docstrings of the *module* that it describes."""
    lines, tree = stub.splitlines(), ast.parse(stub)
    for name, node in reversed([*declarations(tree.body)]):  # so that the lines of those before stay what they are
        if has_docstring(node, lines):
            continue
        text = docstring(module, name)
        if text is None and is_field(node):
            text = docstring(module, name.rpartition(".")[0])  # that of the class describes its fields
        if text is not None:
            insert(lines, node, text)
    if is_code(module) and (text := ast.get_docstring(parsed(module))) is not None:
        at = first_line(tree.body[0]) - 1 if tree.body else len(lines)
        lines[at:at] = quoted(text, 0)
    return "\n".join(lines) + "\n"


def declarations(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Declaration]]:
    """Yield what a *body* declares, in order, with qualified names: a class before what is in it."""
    for node in body:
        if isinstance(node, ast.AnnAssign):
            yield prefix + ast.unparse(node.target), node
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from declarations(node.body, f"{prefix}{node.name}.")


def has_docstring(node: Declaration, lines: list[str]) -> bool:
    """Return whether the *lines* of a stub have a docstring of *node*: of a variable, the text after it."""
    after = (node.end_lineno or node.lineno) if isinstance(node, ast.AnnAssign) else node.body[0].lineno - 1
    return after < len(lines) and lines[after].strip().startswith('"""')


def is_field(node: Declaration) -> bool:
    """Return whether *node* declares an attribute: in a stub, a property may be one that is only read."""
    return isinstance(node, ast.AnnAssign) or "property" in map(ast.unparse, getattr(node, "decorator_list", ()))


def insert(lines: list[str], node: Declaration, text: str) -> None:
    """Insert *text* into the *lines* of a stub as the docstring of *node*, in place of a body of three dots."""
    if isinstance(node, ast.AnnAssign):
        at, indent = node.end_lineno or node.lineno, node.col_offset
    else:
        body, indent = node.body[0], node.col_offset + 4
        at = first_line(body) - 1
        if ast.unparse(body) == "...":
            lines[at] = (lines[at][: body.col_offset] + lines[at][body.col_offset + 3 :]).rstrip()
            at += 1
    lines[at:at] = quoted(text, indent)


def quoted(text: str, indent: int) -> list[str]:
    escaped = text.replace("\\", "\\\\").replace('"""', r"\"\"\"")
    end = "\n" if "\n" in text or text.endswith('"') else ""
    return textwrap.indent(f'"""{escaped}{end}"""', " " * indent).splitlines()


def first_line(node: ast.stmt) -> int:
    return min(each.lineno for each in [node, *getattr(node, "decorator_list", [])])


def docstring(module: tuple[str, ...], name: str) -> str | None:
    """Return the docstring of what is called *name* in a module, which may import it from another one of ours."""
    if not is_code(module):  # classes from anywhere
        origins = [each for each in modules() if f"\nclass {name.partition('.')[0]}" in source(each)]
        return next((found for each in origins if (found := docstrings(each).get(name)) is not None), None)
    if name in (own := docstrings(module)):
        return own[name]
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.ImportFrom) and name.split(".")[0] in (each.name for each in node.names):
            below = module if is_package(module) else module[:-1]
            below = below[: len(below) - node.level + 1] if node.level else ()
            return docstring((*below, *(node.module or "").removeprefix("numba.cuda.").split(".")), name)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NAMES":
            above = module if module[0] == "numba_cuda_autolink" else ()
            for path, names in ast.literal_eval(node.value).items():
                if name.split(".")[0] in names:
                    return docstring((*above, *path.split(".")), name)
    return None


@functools.cache
def docstrings(module: tuple[str, ...]) -> dict[str, str]:
    """Return the docstrings in a module by qualified name; of a variable, the text after it, or that of its class."""
    found: dict[str, str] = {}

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
            if isinstance(node, ast.If):
                collect(node.body, prefix)
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                if (text := ast.get_docstring(node)) is not None:
                    found[prefix + node.name] = text
                if isinstance(node, ast.ClassDef):
                    found.update((f"{prefix}{node.name}.{name}", each) for name, each in attributes(text or ""))
                    collect(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        found[prefix + ast.unparse(target)] = inspect.cleandoc(text)

    collect(parsed(module).body, "")
    return found


def attributes(text: str) -> Iterator[tuple[str, str]]:
    """Yield what the docstring of a class says about its attributes."""
    _, _, section = text.partition("Attributes\n----------\n")
    field = re.compile(
        r"^(\S.*?)(?: : .*|:)\n((?: .*\n?)+)", re.MULTILINE
    )  # "name, name : type", and below it the text
    for names, described in field.findall(section.partition("\n\n")[0]):
        for name in names.split(", "):
            yield name, textwrap.dedent(described).rstrip()


def folder_of(module: tuple[str, ...]) -> Path:
    return (ROOT if module[0] == "numba_cuda_autolink" else CODE).joinpath(*module)


def is_package(module: tuple[str, ...]) -> bool:
    return (folder_of(module) / "__init__.py").is_file()


def is_code(module: tuple[str, ...]) -> bool:
    return is_package(module) or folder_of(module).with_suffix(".py").is_file()


@functools.cache
def modules() -> list[tuple[str, ...]]:
    files = [*(CODE / "autolink").rglob("*.py"), *(CODE / "cudadrv" / "external_code").rglob("*.py")]
    of_numba = sorted(file.relative_to(CODE).with_suffix("").parts for file in files if file.name != "__init__.py")
    others = (ROOT / "numba_cuda_autolink").rglob("*.py")
    return of_numba + sorted(file.relative_to(ROOT).with_suffix("").parts for file in others)


@functools.cache
def source(module: tuple[str, ...]) -> str:
    folder = folder_of(module)
    return (folder / "__init__.py" if is_package(module) else folder.with_suffix(".py")).read_text()


@functools.cache
def parsed(module: tuple[str, ...]) -> ast.Module:
    return ast.parse(source(module))

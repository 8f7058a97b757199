# SPDX-License-Identifier: BSD-2-Clause
"""Configure Sphinx: ``sphinx-build -W --keep-going -b html docs build/docs``."""

import ast
import re
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

project = "numba-cuda-autolink"
copyright = "the authors of numba-cuda-autolink"
release = version_of("numba-cuda-autolink")
version = release

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["build", "_build"]

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # -- and quotes of command lines stay as they are
default_role = "py:obj"  # `name` in a docstring links to the name, where it is public
nb_execution_mode = "off"  # docs/notebooks.py stores the outputs
nb_render_error_lexer = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False  # the page of the reference has tables of names, and no pages of single names
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # Attributes sections may list properties, which also have their own entries

html_theme = "furo"
html_title = "numba-cuda-autolink"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_js_files = ["search.js"]
copybutton_prompt_text = "$ "


def setup(app: Any) -> None:
    """Give blocks captions, the name of their file or that they need a GPU, and list all modules."""
    app.connect("source-read", _with_captions)
    app.connect("source-read", _with_modules)


def _with_captions(app: Any, page: str, source: list[str]) -> None:
    captioned = r"```{code-block} \2\n:caption: \1\n"
    source[0] = re.sub(r"^<!-- test: file (\S+) -->\n```(\w+)\n", captioned, source[0], flags=re.MULTILINE)
    on_gpu = r"```{code-block} \1\n:caption: needs a GPU\n"
    source[0] = re.sub(r"^<!-- test: gpu -->\n```(\w+)\n", on_gpu, source[0], flags=re.MULTILINE)


def _with_modules(app: Any, page: str, source: list[str]) -> None:
    source[0] = source[0].replace("<!-- modules -->", "\n".join(_modules()))


def _modules() -> Iterator[str]:
    """Yield a list of all modules, by package, in Markdown: the first sentence of the docstring of each."""
    root = Path(__file__).parent.parent
    cuda = root / "numba_cuda/numba/cuda"
    for folder in cuda / "cudadrv/external_code", cuda / "autolink", root / "numba_cuda_autolink":
        for init in sorted(folder.rglob("__init__.py")):
            yield f"### `{init.parent.relative_to(folder.parent).as_posix()}`\n\n{_summary(init)}\n"
            modules = (path for path in sorted(init.parent.glob("*.py")) if not path.stem.startswith("__"))
            yield from (f"- `{path.stem}`: {_summary(path)}" for path in modules)
            yield ""


def _summary(path: Path) -> str:
    return " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0].split())

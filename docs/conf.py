# SPDX-License-Identifier: BSD-2-Clause
"""Configure Sphinx: ``sphinx-build -W --keep-going -b html docs build/docs``."""

import re
from importlib.metadata import version as version_of
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
copybutton_prompt_text = "$ "


def setup(app: Any) -> None:
    """Give each block that the tests save as a file a caption with the file's name."""
    app.connect("source-read", _with_captions)


def _with_captions(app: Any, page: str, source: list[str]) -> None:
    captioned = r"```{code-block} \2\n:caption: \1\n"
    source[0] = re.sub(r"^<!-- test: file (\S+) -->\n```(\w+)\n", captioned, source[0], flags=re.MULTILINE)

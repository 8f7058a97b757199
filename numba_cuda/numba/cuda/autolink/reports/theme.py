# SPDX-License-Identifier: BSD-2-Clause
"""Colours, light and dark: those of the notebook's theme if there is one, else those that the browser prefers."""

from __future__ import annotations

import re

CLASS = "numba-cuda-autolink"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"

_ROOT = f":is({f'#{CLASS}' * 3}, .{CLASS})"
# Of a style sheet: a rule with its declarations, the beginning of a group of rules, or the end of a group.
_BLOCK = re.compile(r"([^{}]+)\{(?:([^{}]*)\}|(?=[^{}]+\{))|(\})")

_COLOURS = {  # light and dark
    "back": ("#ffffff", "#0d1117"),
    "node": ("#f6f8fa", "#161b22"),
    "text": ("#1f2328", "#e6edf3"),
    "faint": ("#59636e", "#9198a1"),
    "line": ("#d1d9e0", "#3d444d"),
    "edge": ("#818b98", "#768390"),
    "kernel": ("#0969da", "#4493f8"),
    "device-functions": ("#54aeff", "#79c0ff"),
    "objects": ("#1a7f37", "#3fb950"),
    "code": ("#9a6700", "#d29922"),
    "front-end": ("#0969da", "#4493f8"),
    "hook": ("#1a7f37", "#3fb950"),
    "compile": ("#9a6700", "#d29922"),
    "nvvm": ("#bf3989", "#db61a2"),
    "link": ("#8250df", "#ab7df8"),
    "result": ("#8250df", "#ab7df8"),
}
# The selectors of the themes of JupyterLab, Visual Studio Code, Colab, and Sphinx's furo and PyData, light and dark.
_NOTEBOOKS = (
    ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]', '[data-theme="light"]'),
    ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]', '[data-theme="dark"]'),
)


def paint(more: str = "", **names: str) -> str:
    """Return SVG attributes that set colours: the light theme's for viewers that ignore style sheets. *more* are
    further declarations; style sheets of a page around the drawing change none of them."""
    colours = {attribute: name.replace(" ", "-") for attribute, name in names.items()}
    light = " ".join(f'{attribute}="{_COLOURS[name][0]}"' for attribute, name in colours.items())
    declarations = [f"{attribute}: var(--nca-{name}) !important" for attribute, name in colours.items()]
    return f'{light} style="{"; ".join([*declarations, *filter(None, [more])])}"'


def variables() -> str:
    """Return a style sheet that sets the colours as variables on elements of the class `CLASS`."""
    light, dark = (
        f"{{ {' '.join(f'--nca-{name}: {each[index]};' for name, each in _COLOURS.items())} color-scheme: {scheme}; }}"
        for index, scheme in enumerate(("light", "dark"))
    )
    in_light, in_dark = (", ".join(f"{marker} .{CLASS}" for marker in markers) for markers in _NOTEBOOKS)
    preferred = f"@media (prefers-color-scheme: dark) {{ .{CLASS} {dark} }}"
    return "\n".join([f".{CLASS} {light}", preferred, f"{in_light} {light}", f"{in_dark} {dark}"])


def style(text: str) -> str:
    """Return a style sheet that wins over those of the page around a report: in *text*, ``&`` stands for the report's
    element. It gets the specificity of three identifiers, and each declaration is important."""
    parts = []
    for block in _BLOCK.finditer(text):
        prelude, declarations, end = block.groups()
        if end is not None:
            parts.append("}")
        elif declarations is None:
            parts.append(f"{prelude.strip()} {{")
        else:
            kept = "; ".join(f"{each.strip()} !important" for each in declarations.split(";") if each.strip())
            parts.append(f"{prelude.strip().replace('&', _ROOT)} {{ {kept} }}")
    return "\n".join(parts)

# SPDX-License-Identifier: BSD-2-Clause
"""Colours, light and dark: those of the notebook's theme if there is one, else those that the browser prefers."""

from __future__ import annotations

CLASS = "numba-cuda-autolink"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"

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
    "result": ("#8250df", "#ab7df8"),
}
# The selectors of the themes of JupyterLab, Visual Studio Code and Colab, light and dark.
_NOTEBOOKS = (
    ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]'),
    ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]'),
)


def paint(**names: str) -> str:
    """Return SVG attributes that set colours: the light theme's for viewers that ignore style sheets."""
    colours = {attribute: name.replace(" ", "-") for attribute, name in names.items()}
    light = " ".join(f'{attribute}="{_COLOURS[name][0]}"' for attribute, name in colours.items())
    style = "; ".join(f"{attribute}: var(--nca-{name})" for attribute, name in colours.items())
    return f'{light} style="{style}"'


def variables() -> str:
    """Return a style sheet that sets the colours as variables on elements of the class `CLASS`."""
    light, dark = (
        f"{{ {' '.join(f'--nca-{name}: {each[index]};' for name, each in _COLOURS.items())} color-scheme: {scheme}; }}"
        for index, scheme in enumerate(("light", "dark"))
    )
    in_light, in_dark = (", ".join(f"{marker} .{CLASS}" for marker in markers) for markers in _NOTEBOOKS)
    preferred = f"@media (prefers-color-scheme: dark) {{ .{CLASS} {dark} }}"
    return "\n".join([f".{CLASS} {light}", preferred, f"{in_light} {light}", f"{in_dark} {dark}"])

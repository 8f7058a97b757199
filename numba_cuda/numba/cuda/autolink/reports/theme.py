# SPDX-License-Identifier: BSD-2-Clause
"""Colours, light and dark: those of the notebook's theme if there is one, else those that the browser prefers."""

from __future__ import annotations

CLASS = "numba-cuda-autolink"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"

_LIGHT = {
    "back": "#ffffff",
    "node": "#f6f8fa",
    "text": "#1f2328",
    "faint": "#59636e",
    "line": "#d1d9e0",
    "edge": "#818b98",
    "kernel": "#0969da",
    "device-functions": "#54aeff",
    "objects": "#1a7f37",
    "code": "#9a6700",
    "result": "#8250df",
}
_DARK = {
    "back": "#0d1117",
    "node": "#161b22",
    "text": "#e6edf3",
    "faint": "#9198a1",
    "line": "#3d444d",
    "edge": "#768390",
    "kernel": "#4493f8",
    "device-functions": "#79c0ff",
    "objects": "#3fb950",
    "code": "#d29922",
    "result": "#ab7df8",
}
# The selectors of the themes of JupyterLab, Visual Studio Code and Colab.
_NOTEBOOKS = {
    "light": ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]'),
    "dark": ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]'),
}


def colour(name: str) -> str:
    """Return the light theme's colour *name*, for viewers that ignore style sheets."""
    return _LIGHT[name.replace(" ", "-")]


def variables() -> str:
    """Return a style sheet that sets the colours as variables on elements of the class `CLASS`."""
    return "\n".join(
        [
            f".{CLASS} {{ {_set(_LIGHT)} color-scheme: light; }}",
            f"@media (prefers-color-scheme: dark) {{ .{CLASS} {{ {_set(_DARK)} color-scheme: dark; }} }}",
            f"{_within('light')} {{ {_set(_LIGHT)} color-scheme: light; }}",
            f"{_within('dark')} {{ {_set(_DARK)} color-scheme: dark; }}",
        ]
    )


def _set(colours: dict[str, str]) -> str:
    return " ".join(f"--nca-{name}: {value};" for name, value in colours.items())


def _within(theme: str) -> str:
    return ", ".join(f"{marker} .{CLASS}" for marker in _NOTEBOOKS[theme])

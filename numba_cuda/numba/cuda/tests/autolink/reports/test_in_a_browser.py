# SPDX-License-Identifier: BSD-2-Clause
"""The HTML report in a real browser: in notebooks whose style sheets are hostile, narrow, sorted, filtered, light and
dark. Screenshots are compared with one another, not with stored ones, which fonts would change."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest
from autolink_support import Linked, adder, build
from numba import cuda
from numba.cuda import autolink

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the path")

# As hosts have them, and worse: most have fewer identifiers, and no !important.
HOSTILE = """
#main #cell table td { background: pink !important; border: 9px solid red; font-size: 25px; text-align: right }
.host * { color: firebrick !important; letter-spacing: 3px; line-height: 3 }
#main svg { max-width: 100%; width: 50px } svg text { font-size: 40px }
#main div { display: inline-block; float: right } summary, h4 { display: none }
"""
PROBE = """
const find = selector => document.querySelector(".numba-cuda-autolink " + selector);
const style = selector => getComputedStyle(find(selector));
const first = () => find("tbody tr:not([hidden]) code").innerText;
const told = {
  cell: [style("td").backgroundColor, style("td").fontSize, style("td").color === style("th").color],
  text: [style("svg text.detail").fontSize, style("h4").display, style("h3").letterSpacing],
  drawing: find("svg").getBoundingClientRect().width > 300,
  fits: document.documentElement.scrollWidth <= innerWidth,
  first: first(),
};
const head = find("thead th:nth-child(2)");
head.click();
head.click();
told.last = first();
const input = find(".filter input");
input.value = "named_3";
input.dispatchEvent(new Event("input"));
told.filtered = [first(), find(".filter span").innerText];
const box = title => [...document.querySelectorAll(".numba-cuda-autolink h4")].find(head => head.innerText === title);
const heads = title => [...box(title).nextElementSibling.querySelectorAll("th")];
told.occupancy = heads("Occupancy").map(head => head.innerText);
told.sortable = [heads("Occupancy")[1].ariaSort, heads("Functions in the result")[1].ariaSort];
const swatches = [...document.querySelectorAll(".numba-cuda-autolink .swatch")];
told.swatches = swatches.map(each => getComputedStyle(each).backgroundColor);
const bars = [...document.querySelectorAll(".numba-cuda-autolink .span")];
told.bars = bars.map(each => getComputedStyle(each).backgroundColor);
document.body.innerHTML = "";
document.body.innerText = JSON.stringify(told);
"""


@pytest.fixture(scope="module")
def fragment():
    names = {}
    for number in range(8):
        code = autolink.CUDASource(f"// {os.urandom(8).hex()}\n{adder(f'named_{number}')}")  # which no cache has
        names[f"f{number}"] = Linked(f"named_{number}", code).function
    body = "".join(f"    x[{number}] = f{number}(x[{number}])\n" for number in range(8))
    exec(f"def kernel(x):\n{body}", names)
    return build(names["kernel"])._repr_html_()


def browse(page, *options):
    """Open a page in a browser without a window. Return what it prints."""
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options)
    command = [BROWSER, *options, f"--user-data-dir={page.parent / 'profile'}", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def screenshot(page, *options):
    """Return the bytes of a picture of a page, in which the browser encodes the same pixels as the same bytes."""
    picture = page.with_suffix(".png")
    browse(page, "--window-size=600,1500", f"--screenshot={picture}", *options)
    return picture.read_bytes()


@pytest.mark.parametrize("width", [400, 1200])
def test_the_report_looks_the_same_whatever_the_page_around_it(fragment, tmp_path, width):
    page = tmp_path / "page.html"
    page.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><style>{HOSTILE} body {{ margin: 0 }}</style>'
        '<body class="host" id="main">'
        f'<section id="cell" style="display: block; width: {width}px">{fragment}</section><script>{PROBE}</script>',
        encoding="utf-8",
    )
    dumped = browse(page, f"--window-size={max(width, 500)},900", "--dump-dom")
    told = json.loads(html.unescape(re.search(r"<body[^>]*>(\{.*\})", dumped)[1]))
    assert told["cell"][:2] == ["rgba(0, 0, 0, 0)", "13px"]
    assert told["text"] == ["10.5px", "block", "normal"]
    assert told["drawing"]
    assert told["fits"]
    assert told["first"] == "named_0(int32)"
    assert told["last"] == "named_7(int32)"
    assert told["filtered"] == ["named_3(int32)", "1 of 8"]
    assert told["occupancy"] == ["", "threads per block", "blocks per SM", "occupancy", "limited by"]
    assert told["sortable"] == ["none", None]
    assert len(set(told["swatches"])) == len(told["swatches"]) == 5
    assert set(told["bars"]) == set(told["swatches"])


def test_architectures_are_whole_in_a_narrow_window(tmp_path):
    def kernel(x):
        x[0] = 1

    page = tmp_path / "page.html"
    script = (
        "document.body.textContent = [...document.querySelector('.table').querySelectorAll('td:not(.empty)')]"
        ".every(each => each.offsetWidth > 0)"
    )
    text = autolink.report(cuda.jit(kernel), "void(float32[::1])", cc=["8.0", "9.0"]).to_html()
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    assert "<body>true</body>" in browse(page, "--window-size=500,900", "--dump-dom").replace("\n", "")


def test_what_changed_is_stacked_in_a_narrow_window(tmp_path):
    def reported(factor):
        source = (
            f"__device__ float norm_of_several_numbers(float x, float y, float z) {{ return x * y * z * {factor}; }}"
        )
        library = autolink.cxx(source)

        def kernel(x):
            x[0] = library.norm_of_several_numbers(x[0], x[1], x[2])

        return build(kernel, "void(float32[::1])").report

    page = tmp_path / "changes.html"
    script = (
        "document.body.textContent = [...document.querySelectorAll('.table')].map(t => t.scrollWidth <= t.clientWidth)"
    )
    text = reported(3).changes_since(reported(2), "html")
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    assert "<body>true</body>" in browse(page, "--window-size=500,900", "--dump-dom").replace("\n", "")


def test_notebooks_in_light_and_dark_show_the_same_picture_as_a_plain_page(fragment, tmp_path):
    """Pixel by pixel, with the style sheets of a hostile page and with the theme that a notebook sets."""

    def drawn(name, css, theme, *options):
        page = tmp_path / f"{name}.html"
        around = f"{css} html {{ background: grey }} body {{ margin: 0 }}"
        page.write_text(
            f'<!DOCTYPE html><meta charset="utf-8"><style>{around}</style>'
            f'<body class="host" id="main" {theme}><section id="cell" style="display: block">{fragment}</section>',
            encoding="utf-8",
        )
        return screenshot(page, *options)

    light = drawn("light", "", "")
    dark = drawn("dark", "", "", "--blink-settings=preferredColorScheme=0")
    assert light != dark
    assert drawn("hostile", HOSTILE, 'data-jp-theme-light="true"') == light
    assert drawn("notebook", HOSTILE, 'data-jp-theme-light="false"') == dark

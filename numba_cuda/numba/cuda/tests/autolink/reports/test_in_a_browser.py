# SPDX-License-Identifier: BSD-2-Clause
"""The HTML report in a real browser: in a notebook whose style sheets are hostile, narrow, sorted and filtered."""

import html
import json
import re
import shutil
import subprocess

import pytest
from autolink_support import Linked, build

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
  text: [style("svg text").fontSize, style("h4").display, style("h3").letterSpacing],
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
document.body.innerHTML = "";
document.body.innerText = JSON.stringify(told);
"""


@pytest.fixture(scope="module")
def fragment():
    names = {f"f{number}": Linked(f"named_{number}").function for number in range(8)}
    body = "".join(f"    x[{number}] = f{number}(x[{number}])\n" for number in range(8))
    exec(f"def kernel(x):\n{body}", names)
    return build(names["kernel"])._repr_html_()


@pytest.mark.parametrize("width", [400, 1200])
def test_the_report_looks_the_same_whatever_the_page_around_it(fragment, tmp_path, width):
    page = tmp_path / "page.html"
    page.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><style>{HOSTILE} body {{ margin: 0 }}</style>'
        '<body class="host" id="main">'
        f'<section id="cell" style="display: block; width: {width}px">{fragment}</section><script>{PROBE}</script>',
        encoding="utf-8",
    )
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={max(width, 500)},900", "--dump-dom")
    command = [BROWSER, *options, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    told = json.loads(html.unescape(re.search(r"<body[^>]*>(\{.*\})", dumped)[1]))
    assert told["cell"][:2] == ["rgba(0, 0, 0, 0)", "13px"]
    assert told["text"] == ["10.5px", "block", "normal"]
    assert told["drawing"]
    assert told["fits"]
    assert told["first"] == "named_0(int32)"
    assert told["last"] == "named_7(int32)"
    assert told["filtered"] == ["named_3(int32)", "1 of 8"]

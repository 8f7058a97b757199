// SPDX-License-Identifier: BSD-2-Clause
// Print what the search of a built documentation finds: `node search.js SITE`, with a JSON list of queries as input.
// The answer has a list for each query, best first, of [page, anchor, kind].
const fs = require("fs"), path = require("path"), vm = require("vm");

const ready = [];
const document = {
    readyState: "loading",
    addEventListener: (event, call) => ready.push(call),
    getElementById: () => null,
    querySelectorAll: () => [],
};
const page = vm.createContext({ document, localStorage: { setItem() {} }, URLSearchParams, console, DOCUMENTATION_OPTIONS: {} });
vm.runInContext("window = globalThis; location = { search: '' }; SPHINX_HIGHLIGHT_ENABLED = false; _ready = () => {}; _ = (text) => text", page);
const html = fs.readFileSync(path.join(process.argv[2], "search.html"), "utf8");
for (const [, script] of html.matchAll(/<script src="([^"?]*(?:search\w*|language_data|stemmer)\.js)/g))
    vm.runInContext(fs.readFileSync(path.join(process.argv[2], script), "utf8"), page, { filename: script });
ready.forEach((call) => call());
page.queries = JSON.parse(fs.readFileSync(0, "utf8"));
const found = vm.runInContext("queries.map((query) => Search._performSearch(...Search._parseQuery(query)).reverse())", page);
console.log(JSON.stringify(found.map((results) => results.map(([name, , anchor, , , , kind]) => [name, anchor, kind]))));

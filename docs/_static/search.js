/* SPDX-License-Identifier: BSD-2-Clause
   A page is one result of a search, and so is each of its titles and names: of other results for the same page, or for the
   same place in it, the best is kept. */
document.addEventListener("DOMContentLoaded", () => {
    if (typeof Search === "undefined") return; // a page that is not the search
    const search = Search._performSearch;
    Search._performSearch = (...terms) => {
        const pages = new Set(), places = new Set();
        const best_first = search(...terms).reverse();
        const once = best_first.filter(([page, , anchor, , , , kind]) => {
            const again = kind === "text" || kind === "index" ? pages.has(page) : places.has(page + anchor);
            pages.add(page);
            places.add(page + anchor);
            return !again;
        });
        return once.reverse();
    };
});

{
for (const box of document.querySelectorAll(".numba-cuda-autolink .table:not([data-ready])")) {
  box.dataset.ready = "";
  const body = box.querySelector("tbody"), rows = [...body.rows], heads = [...box.querySelectorAll("thead th")];
  const value = (row, column) => row.cells[column].dataset.key ?? row.cells[column].innerText.trim();
  const compare = (a, b) => (a !== "" && b !== "" && !isNaN(a) && !isNaN(b)) ? a - b
    : a.localeCompare(b, undefined, {numeric: true});
  rows.forEach(row => heads.forEach((head, column) => row.cells[column].dataset.title = head.textContent));
  if (rows.length < 2) continue;
  heads.forEach((head, column) => {
    head.ariaSort = "none";
    head.tabIndex = 0;
    const sort = () => {
      const down = head.ariaSort === "ascending";
      heads.forEach(other => other.ariaSort = "none");
      head.ariaSort = down ? "descending" : "ascending";
      const sorted = [...rows].sort((a, b) => compare(value(a, column), value(b, column)));
      body.append(...(down ? sorted.reverse() : sorted));
    };
    head.onclick = sort;
    head.onkeydown = event => { if (event.key === "Enter") sort(); };
  });
  if (rows.length < 6) continue;
  const line = document.createElement("div"), input = document.createElement("input"),
    count = document.createElement("span");
  line.className = "filter";
  count.className = "faint";
  input.type = "search";
  input.placeholder = "filter " + rows.length + " rows";
  input.setAttribute("aria-label", input.placeholder);
  const words = row => [...row.querySelectorAll("[data-words]")].map(each => each.dataset.words);
  const texts = rows.map(row => [row.textContent, ...words(row)].join(" ").toLowerCase());
  input.oninput = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    rows.forEach((row, index) => row.hidden = !words.every(word => texts[index].includes(word)));
    const shown = rows.filter(row => !row.hidden).length;
    count.textContent = shown < rows.length ? shown + " of " + rows.length : "";
  };
  line.append(input, count);
  box.before(line);
}
}

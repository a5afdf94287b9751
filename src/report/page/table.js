// All rows: sorted, filtered, and as many at once as one looks at.

const STEP = 100;

const COLUMNS = [
  { name: "case", of: (row) => data.cases[row.case].label, isIn: () => isAll() },
  { name: "strategy", of: (row) => row.access, isName: true },
  { name: "storage", of: (row) => row.storage },
  { name: "fastest", of: (row) => row.fastest },
  { name: "neighbors", of: (row) => row.neighbors },
  { name: "layout", of: (row) => row.layout },
  { name: "fields", of: (row) => row.fields },
  { name: "block", of: (row) => row.shape, by: (row) => row.threads * 2048 + (row.block?.[0] ?? 0) },
  { name: "a thread", of: (row) => row.thread, by: (row) => Object.values(row.knobs ?? {}).join("x").split("x").reduce((product, number) => product * number, 1) },
  { name: "others", of: (row) => row.others },
  { name: "µs", of: (row) => fixed(row.us, 2), by: (row) => row.us, isNumber: true },
  { name: "quartiles", of: (row) => (row.range ? `${fixed(row.range[1], 2)}–${fixed(row.range[2], 2)}` : ""), by: (row) => row.range?.[2] - row.range?.[1], isNumber: true },
  { name: "GB/s", of: (row) => (row.gb_per_s === undefined ? "" : row.gb_per_s < 10 ? fixed(row.gb_per_s, 3) : fixed(row.gb_per_s, 0)), by: (row) => row.gb_per_s, isNumber: true, isLargeFirst: true },
  { name: "of limit", of: (row) => fixed(row.of_limit, 3), by: (row) => row.of_limit, isNumber: true, isLargeFirst: true },
  { name: "registers", of: (row) => row.registers, isNumber: true },
  { name: "spills", of: (row) => row.spills, isNumber: true },
  { name: "occupancy", of: (row) => fixed(row.occupancy, 2), by: (row) => row.occupancy, isNumber: true, isLargeFirst: true },
  { name: "result", of: (row) => (row.failed ? `FAILED: ${row.failed}` : row.result ?? "equal") },
];

const table = { column: COLUMNS.find((column) => column.name === "µs"), isDown: false, shown: STEP, rows: [] };
const isAll = () => byId("scope").value === "all";

/** The rows that are asked for, in the order that is asked for. */
function wantedRows() {
  const words = byId("words").value.toLowerCase().split(/\s+/).filter((word) => word);
  const status = byId("status").value;
  const hay = (row) => (row.hay ??= `${data.cases[row.case].label} ${row.name} ${row.fastest ?? ""} ${row.neighbors ?? ""} ${row.layout ?? ""} ${row.fields ?? ""} ${row.options} ${row.failed ?? ""}`.toLowerCase());
  const rows = (isAll() ? data.rows : data.cases[present].rows)
    .filter((row) => status === "" || (status === "failed") === (row.failed !== undefined))
    .filter((row) => words.every((word) => hay(row).includes(word)));
  const { by, of } = table.column;
  const key = by ?? of;
  const isNone = (value) => value === undefined || value === null || value === "" || Number.isNaN(value);
  const keyed = rows.map((row) => ({ row, value: key(row) }));
  const sign = table.isDown ? -1 : 1;
  keyed.sort((a, b) => {
    // What is not known comes last, whichever way.
    if (isNone(a.value) || isNone(b.value)) return isNone(a.value) - isNone(b.value) || a.row.number - b.row.number;
    const order = typeof a.value === "number" ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true });
    return sign * order || a.row.number - b.row.number;
  });
  return keyed.map(({ row }) => row);
}

/** Columns in which something stands. */
function columnsOf(rows) {
  const usual = { fastest: "columns", fields: "soa", neighbors: "direct", layout: "row-major" };
  return COLUMNS.filter((column) => {
    if (column.isIn) return column.isIn();
    return column.isName || rows.some((row) => ![undefined, null, "", usual[column.name]].includes(column.of(row)));
  });
}

function head(column) {
  const isSorted = column === table.column;
  const arrow = isSorted ? (table.isDown ? " ↓" : " ↑") : "";
  const sort = () => {
    table.isDown = isSorted ? !table.isDown : Boolean(column.isLargeFirst);
    table.column = column;
    showRows();
    byId("rows").querySelector(`button[data-column="${column.name}"]`)?.focus();
  };
  return make("th", { scope: "col", class: column.isNumber ? "number" : null, "aria-sort": isSorted ? (table.isDown ? "descending" : "ascending") : null },
    make("button", { type: "button", "data-column": column.name, onclick: sort }, column.name, make("span", { "aria-hidden": "true" }, arrow)));
}

function line(row, columns) {
  const cells = columns.map((column) => {
    const text = column.of(row);
    const content = text === undefined || text === null ? "" : String(text);
    if (!column.isName) return make("td", { class: column.isNumber ? "number" : null }, content);
    const open = () => openKernel(row);
    return make("th", { scope: "row" }, make("button", { type: "button", class: "open", title: "Show the kernel", onclick: open }, content));
  });
  return make("tr", { class: row.failed ? "failed" : row.number === data.cases[row.case].best ? "best" : null, "data-row": row.number }, ...cells);
}

/** Shows the rows that are asked for, from the first on. */
function showRows() {
  table.rows = wantedRows();
  table.shown = STEP;
  const columns = (table.columns = columnsOf(isAll() ? data.rows : data.cases[present].rows));
  byId("rows").tHead.replaceChildren(make("tr", {}, ...columns.map(head)));
  byId("rows").tBodies[0].replaceChildren(...table.rows.slice(0, STEP).map((row) => line(row, columns)));
  tellRows();
}

function showMore(number) {
  const from = table.shown;
  table.shown = Math.min(table.rows.length, from + number);
  const lines = table.rows.slice(from, table.shown).map((row) => line(row, table.columns));
  byId("rows").tBodies[0].append(...lines);
  lines[0]?.querySelector("button")?.focus();
  tellRows();
}

function tellRows() {
  const shown = Math.min(table.shown, table.rows.length);
  const all = isAll() ? data.rows.length : data.cases[present].rows.length;
  const found = table.rows.length === all ? count(all, "kernel") : `${table.rows.length} of ${count(all, "kernel")}`;
  const first = shown < table.rows.length ? `, the first ${shown} shown` : "";
  byId("count").textContent = table.rows.length === 0 ? `None of ${count(all, "kernel")}: fewer words find more.` : found + first;
  byId("more").closest("p").hidden = shown >= table.rows.length;
}

function startTable() {
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  let waiting = 0;
  byId("words").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(showRows, 80);
  });
  byId("scope").addEventListener("change", showRows);
  byId("status").addEventListener("change", showRows);
  byId("more").addEventListener("click", () => showMore(STEP));
  byId("everything").addEventListener("click", () => showMore(Infinity));
  byId("scope").closest("label").hidden = data.cases.length < 2;
}

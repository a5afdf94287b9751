// What the page knows, and how it is written.

const nonce = document.currentScript?.nonce || document.querySelector("script[nonce]").nonce;
const data = JSON.parse(document.getElementById("data").textContent);
const strategyNames = data.strategies.map((strategy) => strategy.name);

const byId = (id) => document.getElementById(id);

/** An element with properties and children. Texts are never read as markup. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A text that stands packed in the page. */
async function unpack(id) {
  const packed = Uint8Array.from(atob(byId(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Texts of kernels, unpacked when the first of them is looked at. */
let textsOfKernels = null;
const kernelTexts = () => (textsOfKernels ??= unpack("texts").then(JSON.parse));

// Numbers, as they are written everywhere.
const digits = (number, most) => number.toLocaleString("en-US", { maximumSignificantDigits: most, useGrouping: false });
const fixed = (number, places) => (number === undefined || number === null ? "" : number.toFixed(places));
const part = (number) => (number === undefined || number === null ? "" : number.toFixed(2));
const count = (number, what) => `${number.toLocaleString("en-US")} ${what}${number === 1 ? "" : "s"}`;

/** The unit that times of about so many microseconds are written in. */
function unitOf(us) {
  if (us >= 1e6) return { name: "s", us: 1e6 };
  if (us >= 1e4) return { name: "ms", us: 1e3 };
  return { name: "µs", us: 1 };
}

function time(us, unit = unitOf(us)) {
  const number = us / unit.us;
  const places = number >= 1000 ? 0 : number >= 100 ? 1 : number >= 10 ? 1 : 2;
  return `${number.toFixed(places)} ${unit.name}`;
}

/** So many of a unit, with the prefix that suits: `7.6 Tflop/s`. */
function scaled(giga, unit) {
  const [number, prefix] = giga >= 1000 ? [giga / 1000, "T"] : giga >= 1 ? [giga, "G"] : [giga * 1000, "M"];
  return `${digits(number, 3)} ${prefix}${unit}`;
}

// What rows are called.
data.rows.forEach((row, number) => {
  row.number = number;
  row.shape = row.block ? row.block.join("x") : "";
  row.threads = row.block ? row.block[0] * row.block[1] * row.block[2] : 0;
  row.thread = Object.entries(row.knobs ?? {}).map((knob) => knob.join(" ")).join(", ");
  row.isMeasured = row.us !== undefined;
});

/** The rows of a case, those of each storage under one name: with what its tables are like, as far as that differs. */
function prepare(own, number) {
  const rows = data.rows.filter((row) => row.case === number);
  const usual = { fastest: "columns", neighbors: "direct", layout: "row-major", fields: "soa" };
  const differs = (name) => rows.some((row) => row[name] !== undefined && row[name] !== usual[name]);
  const told = Object.keys(usual).filter(differs);
  for (const row of rows) {
    row.variant = [row.storage, ...told.map((name) => row[name])].filter((name) => name !== undefined).join(" · ");
    row.name = [row.variant, row.access, row.shape, row.thread, row.others].filter((word) => word).join(" ");
  }
  own.number = number;
  own.rows = rows;
  own.variants = [...new Set(rows.map((row) => row.variant))].sort((a, b) => rankOf(a) - rankOf(b) || a.localeCompare(b));
  own.accesses = strategyNames.filter((name) => rows.some((row) => row.access === name));
  own.unit = unitOf(own.best === null ? 1 : data.rows[own.best].us);
}
const storageOrder = ["regular", "uncompressed", "compressed"];
const rankOf = (variant) => (storageOrder.indexOf(variant.split(" · ")[0]) + 1 || 9);
data.cases.forEach(prepare);

/** The fastest of rows, or nothing. */
function fastest(rows) {
  return rows.reduce((best, row) => (row.isMeasured && (!best || row.us < best.us) ? row : best), null);
}

/** Rows by what `name` says of each. */
function grouped(rows, name) {
  const groups = new Map();
  for (const row of rows) {
    const key = name(row);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return groups;
}

const commandOf = (row) => {
  const own = data.cases[row.case];
  return [own.head, row.options, own.tail].filter((words) => words).join(" ");
};

/** Copies a text, and says so on the button. */
async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from a file may not be allowed to: the older way is.
    const area = make("textarea", { class: "aside", readonly: true });
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const before = button.dataset.word ?? button.textContent;
  button.dataset.word = before;
  button.textContent = done ? "Copied" : "Not allowed";
  setTimeout(() => (button.textContent = before), 1500);
}

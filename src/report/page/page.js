// The page: the answers, the case that is looked at, its kernels.

let present = 0;

const facts = (parts) => parts.filter((part) => part).join(" · ");

function startAbout() {
  const dates = data.rows.map((row) => row.date).filter((date) => date).sort();
  const days = [...new Set([dates[0], dates.at(-1)].filter((date) => date).map((date) => date.slice(0, 10)))];
  const failed = data.rows.filter((row) => row.failed !== undefined).length;
  byId("about").textContent = facts([
    count(data.rows.length, "kernel"), count(data.cases.length, "case"), failed ? `${failed} failed` : "",
    days.length ? `measured ${days.join(" to ")}` : "",
  ]);
  byId("made").textContent = `Made by stencilc ${data.version}, ${data.made}, from ${data.files.join(", ")}.`;
  const other = [...new Set(data.cases.filter((own) => own.device !== "cuda").map((own) => own.machine))];
  if (other.length) {
    byId("notes").append(make("p", { class: "note" }, `Measured on ${other.join(", ")}: such times say nothing about a GPU.`));
  }
}

/** A bar of a part of the limit, beside its number. */
function meter(of_limit) {
  if (of_limit === undefined) return make("span", { class: "part" });
  const bar = make("span", { class: "bar", "aria-hidden": "true" }, make("i"));
  bar.firstChild.style.width = `${Math.min(1, of_limit) * 100}%`;
  return make("span", { class: "part" }, bar, make("b", {}, part(of_limit)), make("span", {}, " of the limit"));
}

/** A line for each case: its fastest kernel, and how to get it. */
function startAnswers() {
  const lines = data.cases.map((own) => {
    const row = own.best === null ? null : data.rows[own.best];
    const name = make("button", { type: "button", class: "case", onclick: () => show(own.number, true) }, own.label);
    if (!row) return make("li", {}, name, make("span", { class: "kernel" }, "no kernel has a time: all of them failed"));
    const command = commandOf(row);
    const copying = make("button", { type: "button", "aria-label": `Copy the command for ${own.label}` }, "Copy");
    copying.addEventListener("click", () => copy(command, copying));
    return make("li", {}, name,
      make("button", { type: "button", class: "kernel open", title: "Show the kernel", onclick: () => openKernel(row) }, row.name),
      make("span", { class: "time" }, time(row.us, own.unit)), meter(row.of_limit),
      make("div", { class: "command" }, make("code", {}, command), copying));
  });
  byId("answers").replaceChildren(...lines);
}

/** The matrix of storages and strategies. It is a table, and its colours say nothing that its numbers do not. */
function drawMatrix(own) {
  const shown = (rows, name) => {
    const best = fastest(rows);
    if (!best && rows.length) {
      return make("td", {}, make("button", { type: "button", class: "failed", "aria-label": `${name}: failed`, onclick: () => openKernel(rows[0]) }, "failed"));
    }
    if (!best) return make("td", { class: "none" }, make("span", { "aria-label": "not measured" }, "–"));
    const label = `${name}: ${best.of_limit === undefined ? "" : `${part(best.of_limit)} of the limit, `}${time(best.us, own.unit)}, block ${best.shape}`;
    const button = make("button", { type: "button", "aria-label": label, title: label, onclick: () => openKernel(best), class: best.number === own.best ? "best" : null },
      make("b", {}, best.of_limit === undefined ? time(best.us, own.unit) : part(best.of_limit)),
      make("small", {}, best.of_limit === undefined ? "" : time(best.us, own.unit)));
    const heat = Math.max(0, Math.min(1, best.of_limit ?? 0));
    button.style.setProperty("--heat", `${heat * 100}%`);
    return make("td", {}, button);
  };
  const rows = own.variants.map((variant) => make("tr", {}, make("th", { scope: "row" }, variant),
    ...own.accesses.map((access) => shown(own.rows.filter((row) => row.variant === variant && row.access === access), `${variant}, ${access}`))));
  const summary = (access) => data.strategies.find((strategy) => strategy.name === access)?.summary;
  const grid = make("table", { class: "heat" },
    make("thead", {}, make("tr", {}, make("td"), ...own.accesses.map((access) => make("th", { scope: "col", title: summary(access) }, access)))),
    make("tbody", {}, ...rows));
  grid.style.setProperty("--columns", own.accesses.length);
  const scale = make("p", { class: "scale", "aria-hidden": "true" }, "0", make("span"), "1, as fast as the copy");
  byId("matrix").querySelector(".box").replaceChildren(grid, scale);
  // Black or white, whichever is easier to read: the lightness of a mixed colour is the first number of its text.
  for (const button of grid.querySelectorAll("button:not(.failed)")) {
    const lightness = Number(/^oklab\(([\d.]+)/.exec(getComputedStyle(button).backgroundColor)?.[1] ?? 1);
    button.style.color = lightness < 0.5635 ? "#fff" : "#000";
  }
}

/** Shows a case. */
function show(number, isAsked = false) {
  present = number;
  const own = data.cases[number];
  byId("answers").querySelectorAll("li").forEach((line, at) => {
    line.classList.toggle("present", at === number);
    line.firstChild.setAttribute("aria-current", at === number ? "true" : "false");
  });
  const { limit } = own;
  byId("case-title").textContent = own.label;
  const several = limit && limit.range[1] > limit.range[0] ? ` (${time(limit.range[0], own.unit)} to ${time(limit.range[1], own.unit)} in all runs)` : "";
  byId("case-facts").textContent = facts([
    own.machine, own.driver && `driver ${own.driver}`, own.compiler, `${own.cells.toLocaleString("en-US")} cells`,
    Object.entries(own.parameters).map(([name, value]) => `${name}=${value}`).join(", "),
    own.hot && "fields in the cache",
    limit && `limit ${time(limit.us, own.unit)}${several}, ${digits(limit.gb_per_s, 4)} GB/s: a copy that reads ${count(limit.reads, "field")} and writes ${limit.writes}`,
  ]);
  redraw();
  showRows();
  if (isAsked) {
    try {
      history.replaceState(null, "", `#case-${number + 1}`);
    } catch {
      // Some browsers do not let a page from a file do so.
    }
    byId("case").scrollIntoView({ block: "start" });
  }
}

function redraw() {
  const own = data.cases[present];
  drawMatrix(own);
  drawBars(own);
  drawBlocks(own);
  drawDomains(own);
  drawRoofline(own);
}

/** Shows all of a kernel: what was measured, the call that builds it, its text. */
async function openKernel(row) {
  const own = data.cases[row.case];
  const dialog = byId("kernel");
  byId("kernel-title").textContent = row.name;
  const range = row.range && `${fixed(row.range[1], 2)} to ${fixed(row.range[2], 2)} µs, at least ${fixed(row.range[0], 2)}`;
  const all = [
    ["case", own.label], ["failed", row.failed], ["time", row.us && `${fixed(row.us, 2)} µs, the median of ${count(row.runs, "launch").replace("launchs", "launches")}`],
    ["quartiles", range], ["of limit", row.of_limit && `${fixed(row.of_limit, 3)} of ${fixed(row.limit, 2)} µs`],
    ["bandwidth", row.gb_per_s && `${digits(row.gb_per_s, 4)} GB/s`], ["bytes a cell", row.least_bytes && `${digits(row.least_bytes, 4)} at least`],
    ["registers", row.registers], ["spills", row.spills && `${row.spills} bytes`], ["shared memory", row.shared && `${row.shared} bytes a block`],
    ["occupancy", row.occupancy && fixed(row.occupancy, 2)], ["result", row.failed ? null : row.result ?? "equal to the interpreter's, bit for bit"], ["measured", row.date],
  ];
  const known = all.filter(([, value]) => value !== undefined && value !== null && value !== "");
  byId("kernel-facts").replaceChildren(...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
  byId("kernel-command").textContent = commandOf(row);
  const isDrawn = row.picture !== undefined;
  byId("kernel-patches").hidden = !isDrawn;
  const drawn = isDrawn && make("img", {
    id: "kernel-picture", alt: "Which cells of the grid are computed together, and which by themselves",
    src: `data:image/png;base64,${data.pictures[row.picture]}`,
  });
  byId("kernel-patches").querySelector(".box").replaceChildren(...(drawn ? [drawn] : []));
  const [why, code] = [byId("kernel-why"), byId("kernel-code")];
  const isThere = row.text !== undefined;
  why.hidden = isThere;
  code.hidden = byId("copy-code").hidden = !isThere;
  code.textContent = isThere ? "…" : "";
  if (!isThere) {
    const emit = own.head.startsWith("stencilc build") ? `${commandOf(row)} --emit cuda` : "";
    why.replaceChildren(`Not shown: ${data.reasons[row.reason] ?? "not known"}.`, ...(emit ? [" This prints it: ", make("code", {}, emit)] : []));
  }
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  if (isThere) code.textContent = (await kernelTexts())[row.text];
}

function startKernel() {
  const dialog = byId("kernel");
  byId("close").addEventListener("click", () => dialog.close());
  byId("copy-command").addEventListener("click", (event) => copy(byId("kernel-command").textContent, event.currentTarget));
  byId("copy-code").addEventListener("click", (event) => copy(byId("kernel-code").textContent, event.currentTarget));
  // A click beside it closes it, as one expects.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redraw();
}

function startTheme() {
  const select = byId("theme");
  try {
    select.value = localStorage.getItem("stencilc-report-theme") ?? "";
  } catch {
    // No memory, then.
  }
  document.documentElement.dataset.theme = select.value;
  select.addEventListener("change", () => {
    try {
      localStorage.setItem("stencilc-report-theme", select.value);
    } catch {
      // As above.
    }
    setTheme(select.value);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
}

async function start() {
  startTheme();
  startAbout();
  startAnswers();
  startKernel();
  startTable();
  const library = document.createElement("script");
  library.nonce = nonce;
  library.textContent = await unpack("library");
  document.head.append(library);
  for (const id of ["blocks-storage", "blocks-axis"]) byId(id).addEventListener("change", () => drawBlocks(data.cases[present]));
  byId("domains-access").addEventListener("change", () => drawDomains(data.cases[present]));
  const asked = Number(/^#case-(\d+)$/.exec(location.hash)?.[1]) - 1;
  show(data.cases[asked] ? asked : 0);
  let width = document.body.clientWidth;
  let waiting = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 100);
  }).observe(document.body);
  // Paper is white.
  addEventListener("beforeprint", () => setTheme("light"));
  addEventListener("afterprint", () => setTheme(byId("theme").value));
  document.documentElement.dataset.ready = "";
}

await start();

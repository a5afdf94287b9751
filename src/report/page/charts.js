// What all plots share: colours, symbols, axes, and the table that says the same.

/** A colour of the style sheet, as it is in the present theme. */
function colour(name) {
  const probe = byId("probe") ?? document.body.appendChild(make("span", { id: "probe", hidden: true }));
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const SYMBOLS = [
  "circle", "rect", "triangle", "diamond",
  "path://M0,0L10,0L5,9Z",
  "path://M3.5,0h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
  "path://M2,0L5,3L8,0L10,2L7,5L10,8L8,10L5,7L2,10L0,8L3,5L0,2Z",
];
const stripes = (rotation, gap) => ({ symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, gap], rotation });
const DECALS = [
  { symbol: "none" },
  stripes(Math.PI / 4, 5),
  { symbol: "circle", dashArrayX: [[5, 5], [0, 5, 5, 0]], dashArrayY: [5, 0], symbolSize: 0.6 },
  stripes(0, 4),
  stripes(-Math.PI / 4, 5),
  { symbol: "triangle", dashArrayX: [[6, 6], [0, 6, 6, 0]], dashArrayY: [6, 0], symbolSize: 0.7 },
  stripes(Math.PI / 2, 5),
];

/** How a strategy looks, or a storage where these are compared: by its number, so that no colour stands alone. */
function look(number) {
  const at = number % SYMBOLS.length;
  return {
    color: colour(`series-${at}`),
    symbol: SYMBOLS[at],
    decal: { ...DECALS[at], color: "rgba(255,255,255,0.35)" },
    line: number >= SYMBOLS.length ? "dashed" : "solid",
  };
}
const lookOf = (access) => look(strategyNames.indexOf(access));

/** How high a legend of these names is: they stand in lines, as many as it takes. */
function legendHeight(names, width) {
  const [lines] = names.reduce(([lines, used], name) => {
    const own = name.length * 7 + 42;
    return used + own > width ? [lines + 1, own] : [lines, used + own];
  }, [1, 0]);
  return lines * 21;
}

/** What every plot begins with; `names` stand in its legend. */
function base(width, names) {
  const text = colour("text");
  return {
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: text },
    grid: { left: 8, right: width < 640 ? 12 : 24, top: legendHeight(names, width) + 30, bottom: 8, containLabel: true },
    legend: {
      data: names, top: 2, left: 0, padding: 0, itemWidth: 18, itemHeight: 11, itemGap: 16, textStyle: { color: text, fontSize: 12 },
    },
    tooltip: {
      trigger: "item", confine: true, backgroundColor: colour("panel"), borderColor: colour("line"),
      textStyle: { color: text, fontSize: 12 }, extraCssText: "box-shadow: none;",
    },
  };
}

function axis(more) {
  const { axisLabel, nameTextStyle, ...rest } = more;
  return {
    axisLine: { show: more.type !== "value", lineStyle: { color: colour("muted") } },
    axisTick: { show: false },
    splitLine: { show: more.type !== "category", lineStyle: { color: colour("line") } },
    axisLabel: { color: colour("muted"), fontSize: 11, ...axisLabel },
    nameTextStyle: { color: colour("muted"), fontSize: 11, ...nameTextStyle },
    ...rest,
  };
}

/** What stands beside the pointer: lines of text, as elements, since names are not markup. */
function tip(title, lines) {
  return make("div", {}, make("strong", {}, title), ...lines.map((line) => make("div", {}, line)));
}

function tipOf(row) {
  const own = data.cases[row.case];
  const limit = row.of_limit === undefined ? null : `${part(row.of_limit)} of the limit`;
  const registers = row.registers === undefined ? null : count(row.registers, "register");
  const what = [row.access, row.shape, row.thread, row.others].filter((word) => word).join(" ");
  return tip(row.variant, [what, time(row.us, own.unit), limit, registers].filter((line) => line));
}

const charts = new Map();

/** Draws a plot into a figure: `option` makes it for a width, `height` says how high it is then. */
function draw(figure, option, height, label) {
  const element = figure.querySelector(".plot");
  const width = element.clientWidth;
  element.style.height = `${height(width)}px`;
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label);
  let chart = charts.get(element);
  if (!chart) {
    chart = echarts.init(element, null, { renderer: "svg" });
    chart.on("click", ({ data: point }) => {
      if (point?.row !== undefined) openKernel(data.rows[point.row]);
    });
    charts.set(element, chart);
  }
  chart.resize({ width, height: height(width) });
  chart.setOption(option(width), { notMerge: true });
  // So that it can shrink, as on paper.
  element.querySelector("svg").setAttribute("viewBox", `0 0 ${width} ${height(width)}`);
}

/** The table under a plot, made when it is opened: every number of the plot. */
function beside(figure, head, lines) {
  const details = figure.querySelector("details");
  const fill = () => {
    const cells = (line, tag) => line.map((cell, at) => make(at ? tag : "th", { scope: at ? null : "row" }, String(cell)));
    details.querySelector(".box").replaceChildren(make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...lines().map((line) => make("tr", {}, ...cells(line, "td")))),
    ));
  };
  details.ontoggle = () => details.open && fill();
  if (details.open) fill();
}

// The plots of one case.

/** Times by storage, a bar for each strategy, and the limit as a line: as in figure 6.1 of A. Roesti (2020). */
function drawBars(own) {
  const figure = byId("bars");
  const best = new Map();
  for (const variant of own.variants) {
    for (const access of own.accesses) {
      const row = fastest(own.rows.filter((row) => row.variant === variant && row.access === access));
      if (row) best.set(`${variant}\n${access}`, row);
    }
  }
  figure.hidden = best.size === 0;
  if (figure.hidden) return;
  const at = (variant, access) => best.get(`${variant}\n${access}`);
  const isLying = (width) => width < 640 || own.variants.length > 9;
  const option = (width) => {
    const lying = isLying(width);
    const limit = own.limit && own.limit.us / own.unit.us;
    const names = axis({
      type: "category", data: own.variants, inverse: lying,
      axisLabel: { color: colour("text"), interval: 0, lineHeight: 14, formatter: (name) => name.replaceAll(" · ", lying && width >= 640 ? " · " : "\n") },
    });
    const times = axis({ type: "value", name: own.unit.name, nameLocation: "end", nameTextStyle: { align: lying ? "right" : "left" } });
    const line = {
      symbol: "none", silent: true, animation: false,
      lineStyle: { color: colour("text"), type: "dashed", width: 1.5 },
      label: {
        formatter: `limit${lying ? " " : "\n"}${time(own.limit?.us ?? 0, own.unit)}`, color: colour("text"), fontSize: 11, lineHeight: 14,
        position: lying ? "start" : "end", distance: 4,
      },
      data: [lying ? { xAxis: limit } : { yAxis: limit }],
    };
    // Bars of strategies that no storage has take no room.
    const series = own.accesses.map((access, number) => {
      const { color, decal } = lookOf(access);
      const values = own.variants.map((variant) => {
        const row = at(variant, access);
        return row ? { value: row.us / own.unit.us, row: row.number } : { value: null };
      });
      return {
        name: access, type: "bar", data: values, barMaxWidth: 48, barGap: "12%", barCategoryGap: "28%",
        itemStyle: { color, decal, borderRadius: lying ? [0, 2, 2, 0] : [2, 2, 0, 0] },
        label: {
          show: lying || best.size <= 28, position: lying ? "right" : "top", color: colour("muted"), fontSize: 10,
          formatter: ({ value }) => (value === null || value === undefined ? "" : fixed(value, value < 100 ? 1 : 0)),
        },
        markLine: number === 0 && limit ? line : undefined,
      };
    });
    const common = base(width, own.accesses);
    Object.assign(common.grid, lying ? { top: common.grid.top + 8, right: 44 } : { right: 56 });
    return {
      ...common,
      tooltip: { ...common.tooltip, formatter: ({ data: point }) => tipOf(data.rows[point.row]) },
      xAxis: lying ? { ...times, position: "bottom" } : names, yAxis: lying ? names : times, series,
    };
  };
  const height = (width) => (isLying(width) ? 74 + legendHeight(own.accesses, width) + own.variants.length * (own.accesses.length * 17 + 18) : 380);
  const row = data.rows[own.best];
  draw(figure, option, height, `Bars of times by storage and strategy. The shortest is ${time(row.us, own.unit)}, ${row.name}.`);
  beside(figure, ["storage", "strategy", "block", own.unit.name, "of limit"], () =>
    [...best.values()].map((row) => [row.variant, row.access, row.shape, fixed(row.us / own.unit.us, 2), part(row.of_limit)]));
}

/** Times over blocks, a line for each strategy: as in figures 6.4 to 6.6 of A. Roesti (2020). */
function drawBlocks(own) {
  const figure = byId("blocks");
  const withBlocks = own.variants.filter((variant) => {
    const rows = own.rows.filter((row) => row.variant === variant && row.isMeasured);
    return new Set(rows.map((row) => row.shape)).size >= 3;
  });
  figure.hidden = withBlocks.length === 0;
  if (figure.hidden) return;
  const chosen = choose(byId("blocks-storage"), withBlocks, data.rows[own.best].variant);
  const byThreads = byId("blocks-axis").value === "threads";
  const rows = own.rows.filter((row) => row.variant === chosen && row.isMeasured && row.block);
  const key = (row) => (byThreads ? String(row.threads) : row.shape);
  const order = (a, b) => a.threads - b.threads || b.block[0] - a.block[0] || b.block[1] - a.block[1];
  const places = [...grouped([...rows].sort(order), key).keys()];
  const accesses = own.accesses.filter((access) => rows.some((row) => row.access === access));
  const best = (access, place) => fastest(rows.filter((row) => row.access === access && key(row) === place));
  const lines = accesses.map((access) => ({ access, rows: places.map((place) => best(access, place)) }));
  // One block that is far off would press all others onto one line.
  const drawn = lines.flatMap((line) => line.rows).filter((row) => row).map((row) => row.us);
  const isWide = Math.max(...drawn) > 4 * Math.min(...drawn);
  const times = isWide
    ? { type: "log", logBase: 2, name: `${own.unit.name}, by powers of two` }
    : { type: "value", scale: true, name: own.unit.name };
  const option = (width) => {
    const common = base(width, accesses);
    if (byThreads) common.grid.bottom = 28;
    return {
      ...common,
      tooltip: { ...common.tooltip, formatter: ({ data: point }) => tipOf(data.rows[point.row]) },
      xAxis: axis({
        type: "category", data: places, boundaryGap: true, name: byThreads ? "threads" : "", nameLocation: "middle", nameGap: 28,
        axisLabel: { rotate: byThreads ? 0 : places.length > (width < 640 ? 4 : 12) ? 60 : 0, hideOverlap: true },
      }),
      yAxis: axis({ ...times, nameTextStyle: { align: "left" } }),
      series: lines.map(({ access, rows }) => {
        const { color, symbol, line } = lookOf(access);
        return {
          name: access, type: "line", symbol, symbolSize: places.length > 40 ? 5 : 8, connectNulls: true,
          lineStyle: { color, width: 2, type: line }, itemStyle: { color },
          data: rows.map((row) => (row ? { value: row.us / own.unit.us, row: row.number } : null)),
        };
      }),
    };
  };
  const row = fastest(rows);
  draw(figure, option, (width) => (width < 640 ? 340 : 380),
    `Lines of times over blocks of threads on ${chosen}. The shortest is ${time(row.us, own.unit)}, ${row.access} with ${row.shape}.`);
  beside(figure, [byThreads ? "threads" : "block", ...accesses.map((access) => `${access} (${own.unit.name})`)], () =>
    places.map((place, at) => [place, ...lines.map((line) => fixed(line.rows[at] && line.rows[at].us / own.unit.us, 2))]));
}

/** Slowdowns over grids, a line for each storage: as in figure 6.7 of A. Roesti (2020). */
function drawDomains(own) {
  const figure = byId("domains");
  const cases = data.cases.filter((other) => other.series === own.series && other.best !== null).sort((a, b) => a.cells - b.cells);
  figure.hidden = cases.length < 2;
  if (figure.hidden) return;
  const all = "the fastest of each";
  const accesses = strategyNames.filter((name) => cases.some((other) => other.accesses.includes(name)));
  const chosen = choose(byId("domains-access"), [all, ...accesses], all);
  const regular = cases.map((other) => fastest(other.rows.filter((row) => row.storage === "regular")));
  const isRelative = regular.some((row) => row);
  const variants = [...new Set(cases.flatMap((other) => other.variants))];
  const suits = (row, variant) => row.variant === variant && (chosen === all || row.access === chosen);
  const value = (row, at) => (isRelative ? regular[at] && row.us / regular[at].us : (row.us * 1e6) / cases[at].cells);
  const lines = variants
    .map((variant) => ({ variant, rows: cases.map((other) => fastest(other.rows.filter((row) => suits(row, variant)))) }))
    .filter(({ rows }) => rows.some((row) => row));
  const name = isRelative ? "times as long" : "ps a cell";
  byId("domains-text").textContent = isRelative
    ? "How much longer than the fastest kernel on regular storage, over grids from small to large."
    : "Picoseconds a cell over grids from small to large; no kernel on regular storage was measured to compare with.";
  const option = (width) => {
    const common = base(width, lines.map(({ variant }) => variant));
    const label = ({ data: point }) => tip(`${point.grid}: ${digits(point.value, 3)} ${name}`, [data.rows[point.row].name, time(data.rows[point.row].us)]);
    return {
      ...common,
      tooltip: { ...common.tooltip, formatter: label },
      xAxis: axis({ type: "category", data: cases.map((other) => other.grid), axisLabel: { rotate: width < 640 || cases.length > 8 ? 45 : 0 } }),
      yAxis: axis({ type: "value", scale: true, name, nameTextStyle: { align: "left" } }),
      series: lines.map(({ variant, rows }, number) => {
        const { color, symbol, line } = look(number + 1);
        return {
          name: variant, type: "line", symbol, symbolSize: 8, connectNulls: true,
          lineStyle: { color, width: 2, type: line }, itemStyle: { color },
          data: rows.map((row, at) => (row && value(row, at) ? { value: value(row, at), row: row.number, grid: cases[at].grid } : null)),
        };
      }),
    };
  };
  draw(figure, option, () => 360, `Lines over ${count(cases.length, "grid")}, one for each storage, in ${name}.`);
  beside(figure, ["grid", ...lines.map(({ variant }) => variant)], () =>
    cases.map((other, at) => [other.grid, ...lines.map(({ rows }) => (rows[at] ? digits(value(rows[at], at) ?? NaN, 3) : ""))]));
}

/** Kernels under the roofs of memory and arithmetic: S. Williams, A. Waterman and D. Patterson (2009). */
function drawRoofline(own) {
  const figure = byId("roofline");
  const text = byId("roofline-text");
  figure.hidden = own.best === null || !own.limit;
  if (figure.hidden) return;
  const isKnown = own.flops > 0;
  figure.querySelector(".plot").hidden = figure.querySelector("details").hidden = !isKnown;
  if (!isKnown) {
    text.textContent = own.flops === 0
      ? "The stencil has no floating-point operations, so there is nothing to draw."
      : "How many operations the stencil has is not known: the rows do not hold it, and its file is gone or has changed.";
    return;
  }
  const likes = grouped(own.rows.filter((row) => row.isMeasured), (row) => `${row.variant}\n${row.access}`);
  const rows = [...likes.values()].map(fastest);
  const intensity = (row) => own.flops / row.least_bytes;
  const attained = (row) => (own.flops * own.cells) / row.us / 1e3;
  const xs = rows.map(intensity);
  const ys = rows.map(attained);
  const { sheet } = own;
  text.textContent = `The fastest kernel of each storage and strategy: ${digits(own.flops, 4)} floating-point operations a cell, over the bytes that it moves at least, tables included. `
    + `The sloped line is the copy measured in the same run${sheet ? `; dashed, what the maker says (${sheet.source})` : ""}.`;
  const left = 2 ** Math.floor(Math.log2(Math.min(...xs)) - 1);
  const ridge = sheet ? sheet.gflops / own.limit.gb_per_s : 0;
  const right = 2 ** Math.ceil(Math.log2(Math.max(...xs, ridge) * 1.7));
  const [unit, giga] = attained(data.rows[own.best]) >= 1000 ? ["Tflop/s", 1000] : ["Gflop/s", 1];
  const top = 2 ** Math.ceil(Math.log2(Math.max(...ys, sheet ? sheet.gflops : own.limit.gb_per_s * right) / giga));
  const bottom = 2 ** Math.floor(Math.log2(Math.min(...ys, own.limit.gb_per_s * left) / giga));
  const ends = (gb_per_s, gflops) => {
    const first = Math.max(left, (bottom * giga) / gb_per_s);
    const last = Math.min(right, gflops ? gflops / gb_per_s : (top * giga) / gb_per_s);
    return [[first, (first * gb_per_s) / giga], [last, (last * gb_per_s) / giga]];
  };
  const roof = ([from, to], name, type, position) => ({
    type: "line", silent: true, symbol: "none", data: [], tooltip: { show: false },
    markLine: {
      symbol: "none", silent: true, animation: false,
      lineStyle: { color: colour(type === "solid" ? "text" : "muted"), width: type === "solid" ? 2 : 1.5, type },
      label: { formatter: name, position, color: colour("text"), fontSize: 11, distance: 6 },
      data: [[{ coord: from }, { coord: to }]],
    },
  });
  const roofs = [roof(ends(own.limit.gb_per_s, sheet?.gflops), `copy: ${digits(own.limit.gb_per_s, 4)} GB/s`, "solid", "insideStartBottom")];
  if (sheet) {
    const high = sheet.gflops / giga;
    roofs.push(roof(ends(sheet.gb_per_s, sheet.gflops), `${digits(sheet.gb_per_s, 4)} GB/s`, "dashed", "insideStartTop"));
    roofs.push(roof([[Math.min(right, sheet.gflops / sheet.gb_per_s), high], [right, high]], `${digits(high, 3)} ${unit}`, "dashed", "insideEndBottom"));
  }
  const accesses = own.accesses.filter((access) => rows.some((row) => row.access === access));
  const option = (width) => {
    const common = base(width, accesses);
    const label = ({ data: point }) => {
      const row = data.rows[point.row];
      return tip(row.name, [scaled(attained(row), "flop/s"), `${digits(intensity(row), 3)} flop a byte`, time(row.us, own.unit)]);
    };
    const series = accesses.map((access) => {
      const { color, symbol } = lookOf(access);
      const points = rows.filter((row) => row.access === access);
      return {
        name: access, type: "scatter", symbol, symbolSize: 10, itemStyle: { color, opacity: 0.85 },
        data: points.map((row) => ({
          value: [intensity(row), attained(row) / giga], row: row.number,
          label: { show: row.number === own.best, position: "right", formatter: row.access, color: colour("text"), fontSize: 11 },
        })),
      };
    });
    return {
      ...common,
      grid: { ...common.grid, bottom: 28 },
      tooltip: { ...common.tooltip, formatter: label },
      xAxis: axis({ type: "log", logBase: 2, min: left, max: right, name: "flop a byte", nameLocation: "middle", nameGap: 30, axisLabel: { formatter: (x) => digits(x, 3) } }),
      yAxis: axis({ type: "log", logBase: 2, min: bottom, max: top, name: unit, nameTextStyle: { align: "left" }, axisLabel: { formatter: (y) => digits(y, 3) } }),
      series: [...series, ...roofs],
    };
  };
  const best = data.rows[own.best];
  draw(figure, option, (width) => (width < 640 ? 360 : 420),
    `Roofline. The fastest kernel reaches ${scaled(attained(best), "flop/s")} at ${digits(intensity(best), 3)} flop a byte.`);
  beside(figure, ["kernel", "flop a byte", "Gflop/s"], () =>
    [...rows].sort((a, b) => a.us - b.us).map((row) => [row.name, digits(intensity(row), 3), digits(attained(row), 4)]));
}

/** Offers names in a list, and says which is chosen: the one that was, if it is still there. */
function choose(select, names, usual) {
  const before = names.includes(select.value) ? select.value : names.includes(usual) ? usual : names[0];
  select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  select.value = before;
  select.closest("label").hidden = names.length < 2;
  return before;
}

// @ts-check
// Draws histories: one chart a card, one cursor over all of them, zoomed together. The address says what is shown.

import { drawMarks, paintHeat, shadePauses, shadeUnfinished } from "./chart_layers.js";
import { THIN, age, local, number, rate, readersZone, share } from "./format.js";
import { released } from "./hold_while_pressed.js";

const WRITTEN = { number, rate, age };
/** Milliseconds between two requests for newer numbers: at least, at most, and for each second of a range. */
const [SOON, LATE, FOR_SECOND] = [2000, 60_000, 1 / 6];
/** Milliseconds from a change until the table of queues that changed most is asked for: it is a whole page. */
const MOVERS = 30_000;
const HEIGHT = 190;
const AXIS = 44;
/** Steps of an axis of ages, in seconds: those that are told without a rest. */
const SPANS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 18_000, 86_400, 172_800, 432_000, 864_000, 1_728_000];
/** Seconds that an axis of ages has at least: what is written as 0.0 s is drawn so. */
const LEAST = 1;
/** Seconds of the shortest range that is zoomed to. */
const SHORTEST = 10;
/** Colors of lines, by their place: tokens, so that both themes have theirs. */
const LINES = ["--accent", "--warn", "--good", "--bad"];
const HEAT = [0, 1, 2, 3, 4, 5].map((n) => `--heat-${n}`);
/** All colors of a chart. */
const TOKENS = [...LINES, ...HEAT, "--heat-gap", "--accent-bg", "--soft", "--line", "--warn-bg", "--sunk", "--faint"];
/** Shapes of lines, so that no line is told from another by its color alone. */
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

/** What is drawn, to be cleared away when another page part comes in its place. */
let shown = [];
/** The lines that the reader has switched off, by chart and label: they stay so in other ranges too. */
const off = new Set();
/** What draws the charts of a part of the page anew. */
const draws = new WeakMap();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const host of document.querySelectorAll("[data-charts]")) draws.get(host)?.();
});
begin();

/** Start when the library is there: a part of a page that came later brings both scripts in any order. */
function begin() {
  if (typeof uPlot === "function") for (const host of document.querySelectorAll("[data-charts]")) start(host);
  else document.querySelector('script[src*="uPlot"]')?.addEventListener("load", begin, { once: true });
}

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[data-range]") : null;
  if (link === null || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  visit(link.getAttribute("href"));
});
if (document.getElementById("history") !== null) addEventListener("popstate", () => visit(location.href, { back: true }));

/** Show another range: in place where the page is one of charts, else on the page that is. */
async function visit(address, { back = false, focus = "" } = {}) {
  const part = document.getElementById("history");
  if (part === null) {
    location.assign(address);
    return;
  }
  const url = new URL(address, location.href);
  if (!back) history.pushState(null, "", url);
  try {
    const answer = await fetch(url, { headers: { Accept: "text/html" }, cache: "no-store" });
    const text = await answer.text();
    const other = new DOMParser().parseFromString(text, "text/html").getElementById("history");
    if (!answer.ok || other === null) throw new Error();
    // The reader has gone on meanwhile, or this range has come by then.
    if (url.href !== location.href || !part.isConnected) return;
    for (const plot of shown) plot.destroy();
    shown = [];
    part.replaceWith(document.adoptNode(other));
    for (const host of other.querySelectorAll("[data-charts]")) start(host);
    window.htmx?.process?.(other);
    if (focus) other.querySelector(`[data-chart="${focus}"]`)?.focus();
  } catch {
    location.reload(); // the server says what is wrong
  }
}

function start(host) {
  let now = JSON.parse(host.dataset.numbers);
  let mine = [];
  const sync = uPlot.sync(host.dataset.here);

  function draw() {
    for (const plot of mine) plot.destroy();
    shown = shown.filter((plot) => !mine.includes(plot));
    mine = [];
    const token = palette(host);
    const places = [...host.querySelectorAll("[data-chart]")].map((element) => [element, element.clientWidth]);
    for (const [element, width] of places) {
      const chart = now.charts[element.dataset.chart];
      if (chart) mine.push(plot(host, element, width, now, chart, sync, token));
    }
    shown.push(...mine);
  }

  document.querySelector("[data-charts-hint]")?.removeAttribute("hidden");
  draw();
  const resized = new ResizeObserver(() => {
    if (!host.isConnected) resized.disconnect();
    for (const plot of mine) {
      const width = plot.root.parentElement?.clientWidth ?? 0;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
    }
  });
  resized.observe(host);
  draws.set(host, draw);
  if (now.live) {
    const patience = Math.min(LATE, Math.max(SOON, FOR_SECOND * (now.until - now.since)));
    afterChanges(host, MOVERS, () => host.querySelector("#movers")?.dispatchEvent(new Event("newer")));
    refreshWith(host, patience, (newer) => {
      if (Object.keys(newer.charts).join() !== Object.keys(now.charts).join()) {
        if (document.getElementById("history") !== null) visit(location.href, { back: true }); // another card has come
        return;
      }
      const at = mine[0]?.cursor.left ?? -10;
      now = newer;
      draw();
      if (at >= 0) queueMicrotask(() => mine[0].setCursor({ left: at, top: 0 }, true, true)); // its scales are set by then
    });
  }
}

/** Act some time after the live view showed a change, never without one, and never while something is pressed. */
function afterChanges(host, patience, act) {
  let waiting = 0;
  const later = () => {
    if (!host.isConnected) document.removeEventListener("pqadmin:changed", later);
    else if (!waiting) waiting = setTimeout(go, patience);
  };
  document.addEventListener("pqadmin:changed", later);

  async function go() {
    await released();
    waiting = 0;
    if (host.isConnected) act();
  }
}

/** Ask for newer numbers after changes, and each minute without any while they are seen: the range goes on with time. */
function refreshWith(host, patience, show) {
  afterChanges(host, patience, ask);
  const goesOn = setInterval(() => {
    if (!host.isConnected) clearInterval(goesOn);
    else if (!document.hidden) ask();
  }, LATE);

  async function ask() {
    if (host.closest("[data-other]")) return;
    try {
      const url = `${host.dataset.here}data/?${host.dataset.query}`;
      const answer = await fetch(url, { headers: { Accept: "application/json" }, cache: "no-store" });
      if (!answer.ok || answer.redirected) return;
      const newer = await answer.json();
      await released(); // to draw now would end a zoom
      if (host.isConnected) show(newer);
    } catch {
      // The freshness mark says that the server is away; the next change asks again.
    }
  }
}

/** The color that a token has in the theme that is shown: a canvas does not take `light-dark()`, nor forced colors. */
function colorOf(element, token) {
  Object.assign(element.style, { transition: "none", forcedColorAdjust: "none", color: `var(${token})` });
  const { color } = getComputedStyle(element);
  Object.assign(element.style, { transition: "", forcedColorAdjust: "", color: "" });
  return color;
}

/** The colors of a theme, each asked for once: what is asked of a page that just changed lays all of it out anew. */
function palette(host) {
  const known = new Map();
  const asked = host.querySelector("[data-chart]") ?? host;
  const token = (name) => known.get(name) ?? known.set(name, colorOf(asked, name)).get(name);
  TOKENS.forEach(token);
  return token;
}

function plot(host, element, width, data, chart, sync, token) {
  const { fontFamily } = getComputedStyle(document.body);
  const written = WRITTEN[chart.written];
  const mixed = element.dataset.chart === "mix";
  const { times, columns, series } = mixed ? heatSeries(chart) : lineSeries(data, chart, written, token, element);
  const axis = { stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: `11px ${fontFamily}` };
  const paints = mixed ? paintHeat(chart, HEAT.map(token), token("--heat-gap")) : () => {};
  const options = {
    width,
    height: Number(host.dataset.height) || HEIGHT,
    cursor: {
      sync: { key: sync.key, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      y: false,
      points: { size: mixed ? 0 : 6 },
      drag: { x: true, y: false, setScale: false },
      dataIdx: (u, n, closest, at) => (n === 0 ? closest : indexAt(u.data[0], at, isHeld(chart))),
      bind: { dblclick: () => () => zoomOut(host) },
    },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), readersZone()),
    scales: {
      x: { time: true, range: () => [data.since, data.end] },
      y: mixed
        ? { range: () => [0, chart.columns.length] }
        : { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high > 0 ? high : 1, written === age ? LEAST : 0) * 1.05] },
    },
    axes: [
      { ...axis, space: 64, values: (_, splits) => splits.map((at, n) => moment(at, splits[n - 1])) },
      mixed
        ? { ...axis, size: 64, grid: { show: false }, splits: () => chart.labels.map((_, n) => n + 0.5), values: () => chart.labels }
        : { ...axis, size: AXIS, ...(written === age ? { incrs: SPANS } : {}), values: (_, ticks) => ticks.map((tick) => short(tick, written)) },
    ],
    series: [
      { label: local(Date.now()).zone, value: (u) => dayAndTime(rests(u) ? momentAtRest(chart, data) : u.posToVal(u.cursor.left, "x")) },
      ...series.map((line) => ({ ...line, show: !off.has(lineOf(element, line)) })),
    ],
    hooks: {
      drawClear: [(u) => shadePauses(u, data, token("--warn-bg")), (u) => shadeUnfinished(u, data, token("--sunk")), paints],
      draw: [(u) => drawMarks(u, data, token("--faint"))],
      setSeries: [(u) => u.series.slice(1).forEach((line) => off[line.show ? "delete" : "add"](lineOf(element, line)))],
      setSelect: [(u) => u.select.width > 3 && zoom(host, u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"))],
    },
  };
  element.replaceChildren();
  const drawn = new uPlot(options, [times, ...columns], element);
  element.tabIndex = 0;
  element.onkeydown = (event) => press(event, drawn, host, data);
  return drawn;
}

function lineOf(element, { label }) {
  return `${element.dataset.chart} ${label}`;
}

/** Whether a number holds until the next one; or else is one of the time since the one before. */
function isHeld(chart) {
  return chart.written === "number" || chart.written === "age";
}

function lineSeries(data, chart, written, token, element) {
  const held = isHeld(chart) ? 1 : -1;
  const lines = chart.labels.map((label, n) => ({
    label,
    stroke: token(LINES[n % LINES.length]),
    width: n === 0 ? 1.75 : 1.5,
    dash: DASHES[n % DASHES.length],
    fill: n === 0 ? token("--accent-bg") : undefined,
    paths: chart.sloping ? uPlot.paths.linear() : uPlot.paths.stepped({ align: held }),
    points: { show: chart.times.length < 30 },
    value: (u, value) => written(rests(u) ? (chart.columns[n][placeAtRest(chart)] ?? null) : value),
  }));
  if (data.forecast === null || element.dataset.chart !== "depth") return { times: chart.times, columns: chart.columns, series: lines };
  // The forecast goes on behind the last moment, where no column has a number.
  const [[, from], [end, to]] = data.forecast.ends;
  const empty = chart.times.map(() => null);
  const line = { label: data.forecast.label, stroke: token("--accent"), width: 1.5, dash: [3, 4], points: { show: false } };
  return {
    times: [...chart.times, end],
    columns: [...chart.columns.map((column) => [...column, null]), [...empty.slice(1), from, to]],
    series: [...lines, { ...line, value: (u, value) => rounded(rests(u) ? to : value, written) }],
  };
}

function rounded(value, written) {
  return written(value === null || value === undefined ? null : Math.round(value));
}

function rests(u) {
  return !(u.cursor.left >= 0);
}

/** Where a legend looks while there is no cursor: at the newest moment; for rates and waits, the newest with a number. */
function placeAtRest(chart) {
  if (chart.sloping || chart.written === "number") return chart.times.length - 1;
  return chart.times.findLastIndex((_, n) => chart.columns.some((column) => (column[n] ?? null) !== null));
}

function momentAtRest(chart, data) {
  return chart.times[placeAtRest(chart)] ?? data.until;
}

/** The place of the moment that holds at a time: the last one until then, or the first one from then on; null: none. */
function indexAt(times, at, held) {
  if (times.length === 0 || (held ? at < times[0] : at > times.at(-1))) return null;
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = held ? Math.ceil((low + high) / 2) : Math.floor((low + high) / 2);
    const before = held ? times[middle] <= at : times[middle] < at;
    if (before) low = held ? middle : middle + 1;
    else high = held ? middle - 1 : middle;
  }
  return low;
}

/** The bands of a heat map as series that are drawn by `paintHeat`, so that the legend has their numbers. */
function heatSeries(chart) {
  const last = chart.columns.map((column) => [...column, column.at(-1) ?? null]);
  const series = chart.labels.map((label, band) => ({
    label,
    paths: () => null,
    points: { show: false },
    value: (u, _value, _at, n) => {
      const column = rests(u) ? last[band].length - 1 : n;
      const depth = last[band][column] ?? null;
      if (depth === null) return "–";
      const whole = last.reduce((sum, one) => sum + (one[column] ?? 0), 0);
      return `${number(depth)}${depth ? ` · ${percent(depth / whole)}` : ""}`;
    },
  }));
  return { times: chart.times, columns: last, series };
}

function percent(part) {
  if (part < 0.001) return `<${THIN}0.1${THIN}%`;
  return part < 0.1 ? `${(100 * part).toFixed(1)}${THIN}%` : share(part);
}

// Zooming, by pointer and by keys

function zoom(host, from, to) {
  const middle = (from + to) / 2;
  const half = Math.max(SHORTEST, to - from) / 2;
  const written = (at) => new Date(Math.round(at) * 1000).toISOString().replace(".000", "");
  const focus = document.activeElement?.closest("[data-chart]")?.dataset.chart;
  visit(`${host.dataset.here}?from=${written(middle - half)}&to=${written(middle + half)}`, { focus });
}

function zoomOut(host) {
  if (host.dataset.wider) visit(`${host.dataset.here}?${host.dataset.wider}`);
}

function press(event, u, host, data) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const on = u.cursor.left >= 0;
  const at = on ? u.posToVal(u.cursor.left, "x") : data.until;
  const many = event.shiftKey ? 10 : 1;
  const half = (data.until - data.since) / 2;
  const go = {
    ArrowLeft: () => step(u, at, -many, on),
    ArrowRight: () => step(u, at, many, on),
    Home: () => u.data[0][0] ?? data.since,
    End: () => data.until,
  }[event.key];
  if (go) {
    const to = Math.min(Math.max(go(), data.since), data.end);
    u.setCursor({ left: Math.max(0, u.valToPos(to, "x")), top: 0 }, true, true);
  } else if (event.key === "+" || event.key === "=") {
    const to = Math.min(at + half / 2, data.until);
    zoom(host, to - half, to);
  } else if (event.key === "-" && host.dataset.wider) zoom(host, data.since - half, data.until + (data.live ? 0 : half));
  else if (event.key === "Escape" && on) u.setCursor({ left: -10, top: -10 }, true, true);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** The moment so many moments later, or earlier, than the cursor's. */
function step(u, at, by, on) {
  const times = u.data[0];
  const here = indexAt(times, at + (1e-3 * (times.at(-1) - times[0])) / Math.max(1, u.width), true) ?? 0;
  return times[Math.min(Math.max(on ? here + by : here, 0), times.length - 1)];
}

// Writing

/** The legend names the zone of now: a moment before clocks were turned has its own. */
function dayAndTime(at) {
  const { date, time, zone } = local(at * 1000);
  return `${date} ${time}${zone === local(Date.now()).zone ? "" : ` ${zone}`}`;
}

/** A moment on the axis: its time, and its date where that is another than at the moment before. */
function moment(at, before) {
  const { date, time: full } = local(at * 1000);
  const time = full.endsWith(":00") ? full.slice(0, 5) : full;
  const day = date.slice(5);
  if (before !== undefined && local(before * 1000).date.slice(5) === day) return time;
  return time === "00:00" ? day : `${time}\n${day}`;
}

function short(value, written) {
  if (written === number && value >= 10_000) {
    if (value >= 1e9) return `${+(value / 1e9).toFixed(1)}G`;
    return value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : `${+(value / 1e3).toFixed(1)}k`;
  }
  // Rates are told in tenths; the step of an axis may be smaller.
  if (written === rate && value < 10) return String(Number(value.toFixed(6)));
  return written === number && !Number.isInteger(value) ? "" : written(value);
}

// @ts-check
// Draws a queue's history: one chart a card, one cursor over all of them, zoomed together.

import { age, local, number, rate, readersZone } from "./format.js";

const WRITTEN = { number, rate, age, percent: (n) => (n === null ? "–" : `${Math.round(n)} %`) };
/** Milliseconds between two requests for newer numbers, at least. */
const PATIENCE = 2000;
const HEIGHT = 190;
const AXIS = 44;
/** Colors of lines, by their place: tokens, so that both themes have theirs. */
const LINES = ["--accent", "--warn", "--good", "--bad"];
/** Shapes of lines, so that no line is told from another by its color alone. */
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

const host = document.getElementById("charts");
if (host !== null && typeof uPlot === "function") {
  start(JSON.parse(document.getElementById("history-data").content.textContent));
}

function start(data) {
  let drawn = [];
  let now = data;

  function draw() {
    const zoom = drawn.length > 0 ? zoomOf(drawn[0], now) : null;
    for (const plot of drawn) plot.destroy();
    drawn = [];
    for (const element of host.querySelectorAll("[data-chart]")) {
      const chart = now.charts[element.dataset.chart];
      if (chart) drawn.push(plot(element, now, chart));
    }
    if (zoom !== null) drawn[0]?.setScale("x", zoom);
  }

  document.querySelector("[data-charts-hint]")?.removeAttribute("hidden");
  draw();
  new ResizeObserver(() => {
    for (const plot of drawn) {
      const width = plot.root.parentElement.clientWidth;
      if (width !== plot.width) plot.setSize({ width, height: HEIGHT });
    }
  }).observe(host);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  refreshWith((newer) => {
    const charts = Object.keys(newer.charts).join();
    if (charts !== Object.keys(now.charts).join()) {
      location.reload(); // another chart has come, with its card and its table
      return;
    }
    now = newer;
    draw();
  });
}

/** Ask for newer numbers after the live view showed a change, never without one and never often. */
function refreshWith(show) {
  const depth = document.querySelector("[data-field=ready]");
  if (depth === null) return;
  let waiting = false;
  new MutationObserver(() => {
    if (waiting || document.hidden) return;
    waiting = true;
    setTimeout(async () => {
      waiting = false;
      try {
        const answer = await fetch(host.dataset.url, { headers: { Accept: "application/json" }, cache: "no-store" });
        if (answer.ok && !answer.redirected) show(await answer.json());
      } catch {
        // The freshness mark says that the server is away; the next change asks again.
      }
    }, PATIENCE);
  }).observe(depth, { childList: true, characterData: true, subtree: true });
}

/** What a person has zoomed to; null when the chart shows all. */
function zoomOf(plot, data) {
  const { min, max } = plot.scales.x;
  const all = min <= plot.data[0][0] && max >= plot.data[0].at(-1);
  return all || max <= data.times[0] ? null : { min, max };
}

/** The color that a token has in the theme that is shown: a canvas does not take `light-dark()`. */
function colorOf(element, token) {
  Object.assign(element.style, { transition: "none", color: `var(${token})` });
  const { color } = getComputedStyle(element);
  Object.assign(element.style, { transition: "", color: "" });
  return color;
}

function plot(element, data, chart) {
  const token = (name) => colorOf(element, name);
  const { fontFamily } = getComputedStyle(document.body);
  const written = WRITTEN[chart.written];
  const axis = { stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: `11px ${fontFamily}` };
  const held = chart.written === "number" || chart.written === "age" ? 1 : -1;
  const options = {
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { sync: { key: "history" }, y: false, points: { size: 6 } },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), readersZone()),
    scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, 1e-3) * 1.05] } },
    axes: [
      { ...axis, space: 64, values: (_, splits) => splits.map((at, n) => moment(at, splits[n - 1])) },
      { ...axis, size: AXIS, values: (_, ticks) => ticks.map((tick) => short(tick, written)) },
    ],
    series: [
      { label: local(Date.now()).zone, value: (_, at) => (at === null ? "–" : dayAndTime(at)) },
      ...chart.labels.map((label, n) => ({
        label,
        stroke: token(LINES[n % LINES.length]),
        width: n === 0 ? 1.75 : 1.5,
        dash: DASHES[n % DASHES.length],
        fill: n === 0 && chart.written !== "percent" ? token("--accent-bg") : undefined,
        paths: chart.sloping ? uPlot.paths.linear() : uPlot.paths.stepped({ align: held }),
        points: { show: data.times.length < 30 },
        value: (_, value) => written(value),
      })),
    ],
    hooks: { drawClear: [(u) => shadeUnfinished(u, data, token("--sunk"))], draw: [(u) => drawMarks(u, data, token)] },
  };
  element.replaceChildren();
  return new uPlot(options, [data.times, ...chart.columns], element);
}

function dayAndTime(at) {
  const { date, time } = local(at * 1000);
  return `${date} ${time}`;
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
  return written === number && !Number.isInteger(value) ? "" : written(value);
}

/** The newest stretch is not over: a shade says so. */
function shadeUnfinished(u, data, color) {
  const left = u.valToPos(Math.max(data.unfinished, u.scales.x.min), "x", true);
  const right = u.bbox.left + u.bbox.width;
  if (left >= right) return;
  u.ctx.fillStyle = color;
  u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
}

/** A dashed line with a wedge on top for each thing that a person did. */
function drawMarks(u, data, token) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = token("--faint");
  ctx.setLineDash([3, 3]);
  for (const mark of data.marks) {
    if (mark.at < u.scales.x.min || mark.at > u.scales.x.max) continue;
    const x = u.valToPos(mark.at, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x - 5, bbox.top);
    ctx.lineTo(x + 5, bbox.top);
    ctx.lineTo(x, bbox.top + 7);
    ctx.fill();
  }
  ctx.restore();
}

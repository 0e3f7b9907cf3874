// @ts-check
// Writes one queue's numbers into its tile, touching only what differs; the same as pqadmin/wall/tiles.py says.

import { UNKNOWN, age, number, rate } from "./format.js";
import { trendWords, verdictWords, word } from "./words.js";

const THIN = "\u202f";
const EXACT_DIGITS = 5;
const UNITS = ["", "k", "M", "G", "T", "P", "E"];
/** Characters from here on are as wide as two; a name is written the smaller the longer it is, in these steps; longer ones take two lines. */
const FIRST_WIDE = 0x2e80;
const NAMES = [12, 15, 18, 22];

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setData(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

/** Give a cell its place: how many share the row on a wide screen and on a high one. */
export function putAt(cell, place) {
  setData(cell, "wide", String(place.wide));
  setData(cell, "high", String(place.high));
  cell.toggleAttribute("data-top-wide", place.topWide);
  cell.toggleAttribute("data-top-high", place.topHigh);
}

/** A depth in at most six digits, or three and a unit; cut, never rounded up. */
export function compact(n) {
  const digits = String(n);
  if (digits.length <= EXACT_DIGITS) return number(n);
  const power = Math.min(Math.floor((digits.length - 1) / 3), UNITS.length - 1);
  const whole = digits.slice(0, -3 * power);
  const decimals = digits.slice(-3 * power).slice(0, Math.max(0, 3 - whole.length));
  return `${number(whole)}${decimals ? "." : ""}${decimals}${THIN}${UNITS[power]}`;
}

/** A rate, of which no more is written than of a depth. */
function flow(perSecond) {
  return perSecond !== null && perSecond >= 10 ** EXACT_DIGITS ? compact(Math.floor(perSecond)) : rate(perSecond);
}

function depth(row) {
  if (row.ready === null) return "…";
  return row.attached !== null && row.ready > 1 ? `≈${THIN}${compact(row.ready)}` : compact(row.ready);
}

function nameSize(name) {
  let length = 0;
  for (const character of name) length += character.codePointAt(0) < FIRST_WIDE ? 1 : 2;
  return String(NAMES.find((most) => length <= most) ?? "long");
}

/** Why a queue has its level, or its trend; no number ends a line. */
function why(row, now) {
  const words = row.reasons.length > 0 ? verdictWords(row, now) : `${word(`level-${row.level}`)} · ${trendWords(row)}`;
  return words.replace(/(?<=\d) /g, "\u00a0");
}

/** The elements of a tile, found once. */
function parts(cell) {
  const field = (name) => cell.querySelector(`[data-field=${name}]`);
  const fact = (name) => cell.querySelector(`[data-fact=${name}]`);
  const [group, rest] = field("name").children;
  return {
    tile: cell.querySelector(".tile"),
    head: cell.querySelector("h2"),
    group,
    rest,
    depth: field("depth"),
    why: field("why"),
    in: field("in"),
    out: field("out"),
    oldest: field("oldest"),
    ends: field("ends"),
    counts: ["delayed", "leased", "dead"].map((name) => [name, field(name), fact(name)]),
    endsFact: fact("ends"),
  };
}

export class Tile {
  #parts;
  #row = null;

  constructor(cell) {
    this.cell = cell;
    this.#parts = parts(cell);
  }

  /** Show this row; `now` in ms of the server's clock. */
  show(row, now) {
    this.#row = row;
    const { tile, head, group, rest } = this.#parts;
    setData(this.cell, "queueId", row.id);
    setData(tile, "level", row.level);
    setData(tile, "mark", row.mark);
    const cut = row.shown.replace(/:+$/, "").lastIndexOf(":") + 1;
    setText(group, row.shown.slice(0, cut));
    setText(rest, row.shown.slice(cut));
    setData(head, "name", nameSize(row.shown));
    setText(this.#parts.depth, depth(row));
    setText(this.#parts.in, flow(row.in));
    setText(this.#parts.out, flow(row.out));
    for (const [name, element, fact] of this.#parts.counts) {
      setText(element, number(row[name]));
      setHidden(fact, row[name] === 0);
    }
    setText(this.#parts.ends, `${row.min ?? ""} – ${row.max ?? ""}`);
    setHidden(this.#parts.endsFact, !row.min);
    this.tick(now);
  }

  /** Bring what ages up to date. */
  tick(now) {
    const row = this.#row;
    if (row === null) return;
    setText(this.#parts.oldest, row.oldest === null ? UNKNOWN : age((now - row.oldest) / 1000));
    setText(this.#parts.why, why(row, now));
  }
}

// @ts-check
// Keeps the rows of the overview in order, by the same keys as pqadmin/dashboard/overview/ordering.py. Nothing moves
// while a person points at the table or works in it: a pill tells how many queues changed places, and puts them there.

import { isAttended, replace, setText } from "./attention.js";
import { number } from "./format.js";
import { fetchTable, isAwaited, refetchTable } from "./refetch.js";
import { idOf, rowOf } from "./row.js";
import { word } from "./words.js";

const FIELDS = {
  "": () => 0,
  name: () => 0,
  ready: (row) => Number(row.ready ?? 0),
  in: (row) => row.in ?? -1,
  out: (row) => row.out ?? -1,
  oldest: (row) => (row.oldest === null ? -1 : 4e12 - row.oldest),
};

/** What a window has: queues, and the headings of groups. */
const ROWS = "tr[data-queue], tr[data-group]";
/** Milliseconds between two requests for queues behind the window. */
const ASK_EVERY = 10_000;
let asked = -Infinity;
/** How many of all queues have each level; null where the table is not about all. */
let levels = null;
/** How many queues the server serves in place of what is here, where levels do not tell; and whether that is old. */
let behind = 0;
let isOld = false;
/** Whether the server serves other rows than these, where it does not follow which queues match. */
let isOther = false;
document.addEventListener("pqadmin:changed", () => (isOld = true));

/**
 * Bring the rows in order, or offer to. Return how many queues are in another place, in words. Call it once a second.
 * `known` is how many of all queues have each level; null where that is unknown, or a filter leaves queues out.
 */
export function keepOrder(known) {
  levels = known;
  const pill = pillOf();
  if (pill === null) return "";
  const table = document.querySelector("#queues table.q");
  if (isUnfollowed()) askForOthers();
  else isOther = false;
  let plan = table === null ? null : planOf(table);
  if (plan !== null && plan.moved > 0 && isFree()) {
    carryOut(table, plan);
    plan = planOf(table);
  }
  const [isCounted, missing] = table === null || isUnfollowed() ? [true, 0] : missingFrom(table);
  if (table !== null && (isCounted ? missing > 0 && isFree() : isOld)) bring(table, false);
  if (outOf(table).length > 0 && isFree()) takeOut(table);
  const counts = { [isCounted ? "worse" : "behind"]: missing, left: outOf(table).length, moved: plan?.moved ?? 0 };
  const told = Object.entries(counts).filter(([, n]) => n > 0);
  const parts = told.map(([code, n]) => word(n === 1 ? `${code}-one` : code, { n: number(n) }));
  const said = [...(isOther || isAwaited() ? [word("others")] : []), ...parts].join(" · ");
  setText(pill, said === "" ? word("in-order") : `${said} · ${word("reorder")}`);
  // Never from under the pointer, which would press what is below, and never with the focus.
  const hidden = said === "" && !isBusy(pill);
  if (pill.hidden !== hidden) pill.hidden = hidden;
  return said;
}

/** Take rows away; the ones that stay are laid out anew, so that they count as no shift of the page. */
export function takeRows(rows) {
  const bodies = new Set(rows.map((row) => row.parentElement));
  for (const row of rows) row.remove();
  for (const body of bodies) body.append(...body.children);
  return bodies;
}

/** Say how many rows are shown, and of how many; `all` is how many queues there are. */
export function showCounts(all) {
  const region = document.getElementById("queues");
  if (region === null) return;
  const none = region.querySelector("[data-hides]");
  if (none !== null) setText(none, word(all === 1 ? "hides-one" : "hides", { n: number(all) }));
  const line = region.querySelector("[data-shown-of]");
  const matching = isFiltered() ? region.dataset.matching : String(all);
  if (line === null || !matching) return;
  const shown = region.querySelectorAll("tr[data-queue]:not([data-gone], [data-out])").length;
  setText(line, word("shown-of", { shown: number(shown), matching: number(matching), all: number(all) }));
}

/** The rows of queues that match no more. */
function outOf(table) {
  return table === null ? [] : [...table.querySelectorAll("tr[data-queue][data-out]")];
}

/** Take off the rows of queues that match no more, but for one that has the focus. */
function takeOut(table) {
  const rows = outOf(table).filter((row) => !row.contains(document.activeElement));
  if (table.dataset.order !== "group") takeRows(rows);
  // A heading that counts its queues, or a table without any: the server says what there is instead.
  if (table.dataset.order === "group" || table.querySelector("tr[data-queue]") === null) refetchTable();
}

/** Whether the server does not follow which queues match: then the page asks. */
function isUnfollowed() {
  return isFiltered() && document.getElementById("queues")?.dataset.matching === "";
}

/** Ask once in a while which queues match, and show them unless the reader is in the table. */
async function askForOthers() {
  if (!isOld || performance.now() - asked < ASK_EVERY) return;
  asked = performance.now();
  isOld = false;
  const page = await fetchTable();
  const region = document.getElementById("queues");
  if (page === null || region === null || !isUnfollowed()) return;
  const keys = (root) => [...root.querySelectorAll(ROWS)].map(keyOf).sort().join("\n");
  isOther = keys(page) !== keys(region);
  if (isOther && isFree()) showServed(page);
}

function showServed(page) {
  const region = document.getElementById("queues");
  isOther = false;
  if (region === null || page === null) return;
  replace(region, page);
  window.htmx?.process?.(page);
}

/** Whether the table shows but the queues that pass a filter: frames have the sums of whole groups. */
export function isFiltered() {
  return filter() !== "";
}

/** The filter in the address; the server takes so many characters of it. */
export function filter() {
  return [...(new URLSearchParams(location.search).get("q") ?? "").trim()].slice(0, 400).join("");
}

function pillOf() {
  const pill = /** @type {HTMLElement | null} */ (document.getElementById("reorder"));
  if (pill !== null) pill.onclick ??= update;
  return pill;
}

function update() {
  const table = document.querySelector("#queues table.q");
  if (isOther || isAwaited()) {
    fetchTable().then(showServed);
  } else if (table !== null) {
    carryOut(table, planOf(table));
    if (missingFrom(table)[1] > 0) bring(table, true);
    if (outOf(table).length > 0) takeOut(table);
  }
  keepOrder(levels);
}

/**
 * How many queues belong into the window that the server serves first, and are not in the table. The levels tell it
 * where they decide; of another order, or part of the queues, the server does.
 */
function missingFrom(table) {
  const { order, sort } = table.dataset;
  const next = /** @type {HTMLElement | null} */ (document.querySelector("#queues .pager a[rel=next]"));
  if (next === null || new URLSearchParams(location.search).has("after")) return [true, 0];
  if (levels === null || order !== "problems" || sort !== "") return [false, behind];
  const rows = [...table.querySelectorAll("tr[data-queue]")];
  const starred = "stars" in table.dataset ? rows.filter(isStarred) : [];
  const ranked = rows.filter((row) => !starred.includes(row));
  const room = Number(next.dataset.window) - starred.length;
  let [all, here, missing] = [0, 0, 0];
  for (const level of ["critical", "warning", "unknown"]) {
    const has = (rows) => rows.filter((row) => row.dataset.level === level).length;
    all += levels[level] - has(starred);
    here += has(ranked);
    missing = Math.max(missing, Math.min(all, room) - here);
  }
  return [true, missing];
}

/** Put the queues that the server serves now into the table, in place of what is not served: it gets no longer. */
async function bring(table, isWanted) {
  if (!isWanted && performance.now() - asked < ASK_EVERY) return;
  asked = performance.now();
  isOld = false;
  const page = await fetchTable();
  if (page === null || !table.isConnected) return;
  const known = new Set([...table.querySelectorAll(ROWS)].map(keyOf));
  behind = [...page.querySelectorAll(ROWS)].filter((row) => !known.has(keyOf(row))).length;
  if (behind === 0 || !(isWanted || isFree())) return; // the pill says it
  behind = 0;
  if (table.dataset.order === "group") {
    showServed(page);
    return;
  }
  const served = [...page.querySelectorAll("tr[data-queue]")];
  const places = new Map(served.map((row, place) => [idOf(row), place]));
  const placeOf = (row) => places.get(idOf(row)) ?? places.size;
  const rows = [...table.querySelectorAll("tr[data-queue]")];
  const have = new Set(rows.map(idOf));
  const come = served.filter((row) => !have.has(idOf(row)));
  const ordered = [...rows, ...come].sort((a, b) => placeOf(a) - placeOf(b));
  const most = Math.max(rows.length, served.length);
  const stay = ordered.filter((row, place) => place < most || row.contains(document.activeElement));
  layOut(() => table.tBodies[0].replaceChildren(...stay));
  // What left is behind the window again: the next one begins where this one ends.
  const [pager, fresh] = [document.querySelector("#queues .pager"), page.querySelector(".pager")];
  if (pager !== null && fresh !== null) replace(pager, fresh);
}

/** Put rows in anew, all of a body: only then the ones between count as no shift of the page. The focus stays. */
function layOut(act) {
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  act();
  if (document.activeElement !== focused) focused?.focus({ preventScroll: true });
}

function isBusy(pill) {
  return pill !== null && pill.matches(":hover, :focus");
}

/** Whether nothing of the reader's is in the table or on the pill: rows may come and go. */
function isFree() {
  return !isAttended(document.getElementById("queues")) && !isBusy(pillOf());
}

function keyOf(row) {
  return row.dataset.group === undefined ? idOf(row) : `group ${row.dataset.group}`;
}

/** The bodies of the table and their rows in the order in which they belong, and how many rows that moves. */
function planOf(table) {
  const { order, sort } = table.dataset;
  const compare = comparison(order, sort, "stars" in table.dataset);
  const bodies = [...table.tBodies];
  if (order === "group") bodies.sort((a, b) => rankOf(a) - rankOf(b) || byCodePoints(labelOf(a), labelOf(b)));
  const rows = new Map(bodies.map((body) => [body, inOrder([...body.querySelectorAll("tr[data-queue]")], compare)]));
  const places = new Map([...table.querySelectorAll("tbody > tr")].map((row, place) => [row, place]));
  const planned = bodies.flatMap((body) => [...body.querySelectorAll("tr[data-group]"), ...rows.get(body)]);
  return { bodies, rows, moved: planned.length - longestRise(planned.map((row) => places.get(row))) };
}

function carryOut(table, { bodies, rows }) {
  layOut(() => {
    for (const body of bodies) {
      const now = [...body.querySelectorAll("tr[data-queue]")];
      if (now.some((row, place) => row !== rows.get(body)[place])) body.append(...rows.get(body));
    }
    if (bodies.some((body, place) => body !== table.tBodies[place])) table.append(...bodies);
  });
}

/** Rows in order. What no frame has told of, and what is gone, stays in its place. */
function inOrder(rows, compare) {
  const known = rows.filter((row) => rowOf(row) !== undefined && !("gone" in row.dataset) && !("out" in row.dataset));
  const sorted = known.map((row) => [row, rowOf(row)]).sort(compare);
  const kept = new Set(known);
  let next = 0;
  return rows.map((row) => (kept.has(row) ? sorted[next++][0] : row));
}

function comparison(order, sort, stars) {
  const name = sort.replace("-", "");
  const sign = sort.startsWith("-") ? -1 : 1;
  const ranked = order !== "name" && name === "";
  const value = FIELDS[name];
  const starred = (row) => (stars && !isStarred(row) ? 1 : 0);
  return ([rowA, a], [rowB, b]) =>
    starred(rowA) - starred(rowB) ||
    (ranked ? a.rank - b.rank : 0) ||
    sign * (value(a) - value(b)) ||
    (name === "name" ? sign : 1) * byCodePoints(a.name, b.name);
}

/** Compare two rows of frames: the one that needs attention most first. */
export function byRank(a, b) {
  return a.rank - b.rank || byCodePoints(a.name, b.name);
}

function isStarred(row) {
  return row.querySelector(".star").ariaPressed === "true";
}

function rankOf(body) {
  return Number(body.querySelector("tr[data-group]").dataset.rank);
}

function labelOf(body) {
  return body.querySelector("tr[data-group]").dataset.group;
}

/** Compare as the server does: JavaScript's own order is that of 16-bit units. */
function byCodePoints(a, b) {
  const [left, right] = [[...a], [...b]];
  const at = left.findIndex((char, place) => char !== right[place]);
  if (at < 0) return left.length - right.length;
  return at < right.length ? left[at].codePointAt(0) - right[at].codePointAt(0) : 1;
}

/** The length of the longest rising sequence within numbers: what need not move. */
function longestRise(numbers) {
  const ends = []; // the smallest end of a rise of each length
  for (const n of numbers) {
    let low = 0;
    for (let high = ends.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (ends[middle] < n) low = middle + 1;
      else high = middle;
    }
    ends[low] = n;
  }
  return ends.length;
}

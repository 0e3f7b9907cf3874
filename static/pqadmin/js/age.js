// @ts-check
// The age of the list of items: rows that left are struck out, those that changed are marked, and what came is counted
// in a button that brings the list anew. Nothing moves before the reader asks for it. The counts of tabs are those of now.

import { replace, setText } from "./attention.js";
import { number } from "./format.js";
import { showSelections } from "./select.js";
import { word } from "./words.js";

/** Milliseconds between two looks, between two counts of the tabs, and characters of ids that a look asks about. */
const PAUSE = 2000;
const TABS = 30000;
const MOST = 6000;

let timer = 0;
let last = Number.NEGATIVE_INFINITY;
let counted = performance.now();
let newest = "";
let tell = (_text) => {};

/** Keep the list's age; `say` tells a reader that does not see it. */
export function startAge(say) {
  tell = say;
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-news]")) renew();
  });
  document.addEventListener("visibilitychange", look);
}

/** The queue has this change counter now: when that is not the list's, look at it soon. */
export function queueChanged(change) {
  newest = String(change);
  look();
}

/**
 * Look at once: the reader has acted on these items. Those that this took from the list are no longer chosen. A list
 * without an age, as that of the trash, is brought anew.
 */
export function lookNow(ids) {
  clearTimeout(timer);
  timer = 0;
  if (list() === null) renew();
  else check(new Set(ids), true);
}

function list() {
  return /** @type {HTMLElement | null} */ (document.querySelector("#items[data-age-url]"));
}

function look() {
  if (timer !== 0 || document.hidden || !newest || [newest, undefined].includes(list()?.dataset.change)) return;
  timer = setTimeout(() => {
    timer = 0;
    if (list()?.dataset.change !== newest) check(new Set(), performance.now() > counted + TABS);
  }, Math.max(0, last + PAUSE - performance.now()));
}

async function check(own, tabs) {
  const items = list();
  if (items === null) return;
  last = performance.now();
  const rows = asked(items);
  const address = new URL(items.dataset.ageUrl, location.href);
  address.searchParams.set("at", items.dataset.at);
  if (items.querySelector("[rel=next]") === null) address.searchParams.set("whole", "");
  if (tabs) {
    counted = last;
    address.searchParams.set("tabs", "");
  }
  address.searchParams.set("shown", rows.map((row) => row.dataset.id).join(" "));
  let answer;
  try {
    const got = await fetch(address, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!got.ok || got.redirected) return; // the next change asks again
    answer = await got.json();
  } catch {
    return;
  }
  if (!items.isConnected) return;
  items.dataset.change = answer.change;
  rows.forEach((row, place) => mark(row, answer.rows[place], own));
  showSelections();
  count(items, answer);
  for (const [state, shown] of Object.entries(answer.tabs)) {
    const tab = items.querySelector(`#tab-${state} > b`);
    if (tab !== null) setText(tab, shown);
  }
  countErrors(items, answer.dead);
  look(); // what changed meanwhile
}

/** The rows that are asked about: of very long ids not all. */
function asked(items) {
  let room = MOST;
  return [...items.querySelectorAll("tbody > tr[data-id]")].filter((row) => (room -= row.dataset.id.length + 1) > 0);
}

/** Write a row's fate into it: “-” and the state that it has elsewhere, or the mark of what it shows. */
function mark(row, code, own) {
  const gone = code.startsWith("-");
  const changed = !gone && code !== row.dataset.mark;
  row.toggleAttribute("data-gone", gone);
  row.toggleAttribute("data-changed", changed);
  choose(row, gone, own.has(row.dataset.id));
  let fate = row.querySelector(".fate");
  if (!gone && !changed) return fate?.remove();
  if (fate === null) {
    fate = document.createElement("span");
    fate.className = "fate";
    row.querySelector("td.wide")?.append(fate);
  }
  setText(fate, gone ? word(code === "-" ? "gone" : code.slice(1)) : word("changed"));
}

/** What the reader's own act took is no longer chosen; its undo brings the choice back too. */
function choose(row, gone, own) {
  const box = row.querySelector(".pick input");
  if (box === null || (gone && !own)) return;
  if (gone && box.checked) row.dataset.acted = "";
  if (gone) box.checked = false;
  else if ("acted" in row.dataset) {
    box.checked = true;
    delete row.dataset.acted;
  }
}

/** Say what a new list would show. */
function count(items, answer) {
  const button = items.querySelector("[data-news]");
  const gone = items.querySelectorAll("tr[data-gone]").length;
  const changed = items.querySelectorAll("tr[data-changed]").length;
  const parts = [];
  if (answer.new > 0) {
    const more = answer.new >= answer.most || !answer.counted;
    const n = number(answer.new) + (more ? "+" : "");
    parts.push(n === "1" ? word("list-new-one") : word("list-new", { n }));
  } else if (!answer.counted) parts.push(word("list-uncounted"));
  if (gone > 0) parts.push(word("list-gone", { n: number(gone) }));
  if (changed > 0) parts.push(word("list-changed", { n: number(changed) }));
  const text = parts.join(" · ");
  tell(text);
  // "Nothing is ready" holds of the moment of the list: it is not said beside what came since.
  items.querySelector(".blank")?.toggleAttribute("data-old", answer.new > 0);
  button.hidden = text === "";
  setText(button, text && `${text} · ${word(answer.counted ? "list-show" : "list-again")}`);
}

/** How often the errors were counted: an answer that comes after a later one's question is not shown. */
let counts = 0;

/** Write how many dead items have each error now, where all are looked at; a new error waits for a new list. */
async function countErrors(items, dead) {
  const errors = items.querySelector(".dead-errors");
  if (errors === null || errors.dataset.dead === dead || errors.querySelector(".older")) return; // or it says its age
  const count = ++counts;
  const list = await fetchList(items);
  if (list === null || count !== counts) return;
  errors.dataset.dead = dead;
  const fresh = list.querySelector(".dead-errors");
  if (fresh?.querySelector(".older")) return;
  errors.querySelector("small")?.replaceChildren(...(fresh?.querySelector("small")?.childNodes ?? []));
  const rows = (of) => [...of.querySelectorAll("tbody > tr")];
  const now = new Map((fresh ? rows(fresh) : []).map((row) => [row.querySelector("a").getAttribute("href"), row.cells]));
  for (const { cells } of rows(errors)) {
    const found = now.get(cells[0].querySelector("a").getAttribute("href"));
    setText(cells[1], found?.[1].textContent ?? number(0));
    if (found) for (const place of [2, 3]) cells[place].replaceChildren(...found[place].childNodes);
  }
}

/** Bring the list as it is now; what was chosen and typed stays. */
async function renew() {
  const items = /** @type {HTMLElement | null} */ (document.querySelector("#items[data-url]"));
  if (items === null) return;
  const fresh = await fetchList(items);
  if (fresh === null || !items.isConnected) return;
  /** @type {NodeListOf<HTMLInputElement>} */
  const ticked = items.querySelectorAll(".pick :checked");
  const chosen = new Set([...ticked].map((box) => box.value));
  const focused = items.querySelector("[data-news]") === document.activeElement;
  replace(items, fresh);
  window.htmx?.process?.(fresh);
  for (const box of fresh.querySelectorAll(".pick input")) box.checked = chosen.has(box.value);
  showSelections();
  tell("");
  if (focused) (fresh.querySelector("[data-select-page]") ?? fresh.querySelector("[aria-current]"))?.focus({ preventScroll: true });
}

/** The list as its address shows it now; null where it does not come. */
async function fetchList(items) {
  try {
    const headers = { Accept: "text/html", "HX-Request": "true", "HX-Target": "section#items" };
    const answer = await fetch(items.dataset.url, { headers, cache: "no-store" });
    if (!answer.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("items");
  } catch {
    return null;
  }
}

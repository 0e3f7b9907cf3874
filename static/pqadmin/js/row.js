// @ts-check
// Writes one queue's numbers into the elements that carry its data-fields, touching only what differs.

import { moveBefore, onceLeft, setText, settle, stay } from "./attention.js";
import { setCountdown } from "./countdown.js";
import { UNKNOWN, age, brief, counted, momentAndUtc, number, rate } from "./format.js";
import {
  attachedTitle,
  countedWords,
  detailWords,
  flagWords,
  isPaused,
  reasonWords,
  tellsTime,
  trendWords,
  verdictWords,
  word,
} from "./words.js";

/** Write a data attribute, if it differs. */
export function setData(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

function raw(value) {
  return value === null || value === undefined ? "" : String(value);
}

/** Write a count. */
export function setNumber(element, value) {
  setData(element, "value", raw(value));
  setText(element, number(value));
}

/** Write a count; its surroundings are shown only where there are any. */
export function setCount(element, value) {
  setNumber(element, value);
  element.parentElement.toggleAttribute("data-none", Number(value) === 0);
}

/** Write a count that has little room; the title has all of it. */
function setBrief(element, value) {
  setData(element, "value", raw(value));
  setText(element, brief(value));
  const whole = number(value);
  if (element.title !== whole) element.title = whole;
}

/** Write the depth of a row: that of an attached queue is a count, marked as such. */
function setDepth(element, row) {
  if (row.attached === null) {
    setNumber(element, row.ready);
    return;
  }
  setData(element, "value", raw(row.ready));
  setText(element, counted(row.ready));
}

/** Say when the depth of an attached queue was counted; `ms` null: not yet. */
function setCounted(element, ms, now) {
  setData(element, "counted", ms === null ? "" : new Date(ms).toISOString());
  setText(element, countedWords(ms, now));
  if (element.hidden) element.hidden = false;
}

/** Write a rate per second. */
export function setRate(element, value) {
  setData(element, "value", raw(value));
  setText(element, rate(value));
}

/** Show a moment (ms, or null) as an age in an element that is, or holds, a <time data-age>. */
export function setAge(element, ms, now) {
  let time = element.matches("time[data-age]") ? element : element.querySelector("time[data-age]");
  if (ms === null) {
    if (time === null) setText(element, UNKNOWN);
    else if (time === element || element.dataset.field === "min" || element.dataset.field === "max") {
      time.dateTime = "";
      setText(time, "");
    } else element.replaceChildren(UNKNOWN);
    return;
  }
  if (time === null) {
    time = document.createElement("time");
    time.dataset.age = "";
    element.replaceChildren(time);
  }
  const iso = new Date(ms).toISOString();
  if (Date.parse(time.dateTime) !== ms) {
    time.dateTime = iso;
    time.hidden = false;
    if (time.title) time.title = momentAndUtc(ms);
  }
  setText(time, age((now - ms) / 1000));
}

/** The newest row of each element; an element that leaves the page takes its row along. */
const newest = new WeakMap();

/** The newest row that was written into an element; undefined before the first one. */
export function rowOf(element) {
  return newest.get(element);
}

/** Bring all ages up to date, those in words too; `now` in ms of the server's clock. */
export function tickAges(now, root = document) {
  for (const time of root.querySelectorAll("time[data-age]")) {
    const at = Date.parse(time.getAttribute("datetime"));
    if (!Number.isNaN(at)) setText(time, age((now - at) / 1000));
  }
  for (const element of root.querySelectorAll("[data-counted]")) {
    if (element.dataset.counted) setText(element, countedWords(Date.parse(element.dataset.counted), now));
  }
  for (const element of root.querySelectorAll("[data-queue] :is([data-field=verdict], [data-field=reasons])")) {
    const root = element.closest("[data-queue]");
    const row = newest.get(root);
    if (row === undefined || !tellsTime(row) || "gone" in root.dataset) continue;
    WRITERS[element.dataset.field](element, row, now);
  }
}

/** Show an item in an element with the parts priority, value and a <time data-age>; null clears it. */
export function setItem(element, item, now) {
  setData(element, "item", item === null ? "" : item.id);
  const priority = element.querySelector("[data-part=priority]");
  const value = element.querySelector("[data-part=value]");
  if (priority !== null) setText(priority, item === null ? "" : item.priority);
  if (value !== null) setText(value, item === null ? "" : item.text);
  const time = element.querySelector("time[data-age]");
  if (time !== null) setAge(time, item === null ? null : item.since, now);
}

function setMix(element, mix) {
  if (!element.classList.contains("tall")) element.classList.toggle("flow", mix.length === 0);
  while (element.children.length > mix.length) element.lastElementChild.remove();
  while (element.children.length < mix.length) element.append(document.createElement("i"));
  mix.forEach((band, index) => {
    const column = element.children[index];
    const height = `${band.level}%`;
    if (column.style.getPropertyValue("--h") !== height) {
      column.style.setProperty("--h", height);
      column.classList.toggle("h0", band.level === 0);
    }
    if (element.ariaHidden !== "true") column.title = `${band.label}: ${number(band.depth)}`;
  });
}

const WRITERS = {
  level: (element, row) => setText(element, word(`level-${row.level}`)),
  reasons: setReasons,
  flags: (element, row) => setText(element, flagWords(row)),
  ready: setDepth,
  counted: (element, row, now) => {
    if (row.attached !== null) setCounted(element, row.attached.counted, now);
  },
  delayed: (element, row) => setCount(element, row.delayed),
  leased: (element, row) => setCount(element, row.leased),
  dead: (element, row) => setCount(element, row.dead),
  "rate-in": (element, row) => setRate(element, row.in),
  "rate-out": (element, row) => setRate(element, row.out),
  oldest: (element, row, now) => setAge(element, row.oldest, now),
  due: (element, row, now) => setCountdown(element, row.due, now),
  expiry: (element, row, now) => setCountdown(element, row.expiry, now),
  min: (element, row, now) => setItem(element, row.min, now),
  max: (element, row, now) => setItem(element, row.max, now),
  mix: (element, row) => setMix(element, row.mix),
  "mix-depths": (element, row) => {
    const depths = element.querySelectorAll("li > b");
    if (depths.length === row.mix.length) row.mix.forEach((band, index) => setBrief(depths[index], band.depth));
  },
  trend: (element, row) => {
    setData(element, "value", row.trend);
    setText(element, trendWords(row));
  },
  verdict: (element, row, now) => {
    const among = element.hasAttribute("title"); // other queues; a queue's own page has room for all
    const words = verdictWords(row, now, !among);
    setText(element, words);
    const title = row.attached === null ? words : attachedTitle(row.attached);
    if (among && element.title !== title) element.title = title;
  },
};

/** Show the reasons of a row, in their order, among all that the page knows: each has its next step beside it. */
function setReasons(list, row, now) {
  const known = new Map([...list.children].map((element) => [element.dataset.reason, element]));
  let before = list.firstElementChild;
  for (const reason of row.reasons) {
    const element = known.get(reason.code);
    if (element === undefined) continue;
    known.delete(reason.code);
    setData(element, "level", reason.level);
    setText(element.querySelector("b"), reasonWords(row, reason, now, true));
    setText(element.querySelector("small"), detailWords(reason, now));
    setHidden(element.querySelector(".next"), Boolean(reason.until)); // nothing is to be done about what has ended
    setHidden(element, false);
    if (element === before) before = before.nextElementSibling;
    else moveBefore(list, element, before);
  }
  for (const element of known.values()) setHidden(element, true);
}

/** Show or hide an element; one that has the focus once that has left it. */
function setHidden(element, hidden) {
  stay(element);
  if (!hidden) element.hidden = false;
  else if (!element.hidden) onceLeft(element, () => (element.hidden = true));
}

/** What is shown only while something holds for the row: data-when. */
const WHEN = {
  paused: isPaused,
  running: (row) => !isPaused(row),
  drift: (row) => row.drift,
};

/** Reasons that say that nothing is taken or finished. */
const STALLED = new Set(["no-consumer", "none-taken", "nothing-done"]);

/** Counts that a row shows where they are not 0, in this order, each with the moment beside it. */
const ALSO = [["delayed", "due"], ["leased", "expiry"], ["dead", null]];

/** Make the elements of counts that were 0 until now. */
function makeCounts(root, row) {
  const cell = root.querySelector("td.ready");
  if (cell === null) return;
  let next = cell.querySelector(".spark");
  for (const [field, moment] of [...ALSO].reverse()) {
    let small = cell.querySelector(`[data-field=${field}]`)?.parentElement ?? null;
    if (small === null && Number(row[field]) !== 0) {
      small = document.createElement("small");
      small.className = "also";
      const count = document.createElement("span");
      count.dataset.field = field;
      small.append(count, ` ${word(field)}`);
      if (moment !== null) {
        const time = document.createElement("time");
        time.dataset.field = moment;
        time.dataset.countdown = "";
        small.append(" ", time);
      }
      cell.insertBefore(small, next);
    }
    next = small ?? next;
  }
}

/** The link beside the one that pushes: it pauses the queue, or resumes it, and leads back to this page. */
function setPause(root, row, now) {
  const push = root.querySelector(".actions > [data-part=push]");
  if (push === null) return;
  let link = root.querySelector(".actions > [data-part=pause]");
  if (row.attached !== null || row.unreadable !== "") {
    if (link !== null) onceLeft(link, () => link.remove());
    return;
  }
  if (link === null) {
    link = document.createElement("a");
    link.className = "button small pause-link";
    link.dataset.part = "pause";
    push.before(link, " ");
  }
  const verb = row.pause !== null && (row.pause.until === null || row.pause.until > now) ? "resume" : "pause";
  const href = `${row.url}${verb}/?next=${encodeURIComponent(location.pathname + location.search)}`;
  if (link.getAttribute("href") === href) return;
  setData(link, "verb", verb);
  link.setAttribute("href", href);
  link.title = word(verb);
  link.ariaLabel = `${word(verb)}: ${row.shown}`;
}

/** The id of a row's queue. */
export function idOf(row) {
  return row.querySelector(".star").value;
}

/** Say of rows that came with the page, in words that need no neighbor, what their links and buttons are about. */
export function nameRows() {
  for (const link of document.querySelectorAll("tr[data-queue] a[data-part=link]:not([title])")) {
    nameRow(link.closest("tr"), link.textContent);
  }
}

function nameRow(root, shown) {
  for (const link of root.querySelectorAll("[data-part=link]")) link.title = shown; // the cell may cut it
  for (const words of root.querySelectorAll("[data-field=verdict][title='']")) words.title = words.textContent;
  for (const star of root.querySelectorAll(".star")) star.ariaLabel = `${star.title}: ${shown}`;
  for (const link of root.querySelectorAll("[data-part=push]")) link.ariaLabel = `${link.textContent}: ${shown}`;
}

/** Write the level of an element, and what is shown in a way of its own within it. */
export function setLevel(element, { level, mark }) {
  setData(element, "level", level);
  setData(element, "mark", mark);
}

/** Write a row into `root`: a table row, or any element with data-queue. */
export function applyRow(root, row, now) {
  setLevel(root, row);
  delete root.dataset.gone;
  newest.set(root, row);
  if (root.dataset.queue !== row.name) rename(root, row);
  if (root.matches("tr")) {
    root.toggleAttribute("data-stalled", row.reasons.some((reason) => STALLED.has(reason.code) && !reason.until));
    makeCounts(root, row);
    setPause(root, row, now);
  }
  for (const element of root.querySelectorAll("[data-field]")) {
    WRITERS[element.dataset.field]?.(element, row, now);
  }
  for (const element of root.querySelectorAll("[data-level]:not([data-reason])")) setLevel(element, row);
  for (const element of root.querySelectorAll("[data-when]")) {
    const hidden = !WHEN[element.dataset.when]?.(row);
    if (element.hidden && !hidden) settle(element);
    setHidden(element, hidden);
  }
  const rails = root.querySelectorAll(".rail");
  for (const rail of rails) setData(rail, "ready", raw(row.ready));
}

/** Take offers to resume away where these rows say that their queues are not paused any more. */
export function applyToasts(rows) {
  const forms = document.querySelectorAll("#toasts form[action$='/resume/']");
  if (forms.length === 0) return;
  const paused = new Map([...rows].map((row) => [`${row.url}resume/`, isPaused(row)]));
  for (const form of forms) {
    const its = paused.get(form.getAttribute("action"));
    if (its !== undefined) setHidden(form.closest(".toast"), !its);
  }
}

/** Return the mark of a name that looks like another one, as the server makes it. */
function alikeMark(words) {
  const mark = document.createElement("small");
  mark.className = "tag";
  mark.dataset.part = "alike";
  mark.role = "img";
  mark.title = mark.ariaLabel = words;
  mark.textContent = "≈";
  return mark;
}

/** The group of a queue, and the rest of its name, as the server splits them. */
export function splitName(shown) {
  const cut = shown.replace(/:+$/, "").lastIndexOf(":") + 1;
  return [shown.slice(0, cut), shown.slice(cut)];
}

/** Give a row (new, or renamed) its name and its addresses. */
export function rename(root, row) {
  root.dataset.queue = row.name;
  if (root.dataset.queueId) root.dataset.queueId = row.id;
  const [group, own] = splitName(row.shown);
  for (const name of root.querySelectorAll("[data-part=name]")) {
    const rest = document.createElement("b");
    rest.textContent = own;
    name.replaceChildren(group, ...(group ? [document.createElement("wbr")] : []), rest);
  }
  for (const mark of root.querySelectorAll("[data-part=alike]")) mark.remove();
  for (const link of root.querySelectorAll("[data-part=link]")) {
    link.href = row.url;
    if (row.alike) link.after(alikeMark(row.alike));
  }
  for (const star of root.querySelectorAll(".star")) star.value = row.id;
  for (const link of root.querySelectorAll("[data-part=push]")) {
    link.href = `${row.url}push/`;
    if (row.kind === "fifo") setText(link, word("enqueue"));
  }
  nameRow(root, row.shown);
}

/** Say that a queue is no longer there since now (ms); its last numbers stay a while, marked as what they are. */
export function markGone(root, now) {
  root.dataset.gone ??= String(now);
  setLevel(root, { level: "gone", mark: "" });
  for (const element of root.querySelectorAll("[data-field=verdict], [data-field=level], [data-field=trend]")) {
    setText(element, word("gone"));
    if (element.hasAttribute("title")) element.title = word("gone-title");
  }
}

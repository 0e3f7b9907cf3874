// @ts-check
// Brings frames to the page: everything that arrived since the last animation frame is written at once.
// Holds no element and no history, so that swapped fragments and months of frames leave nothing behind.

import { isAttended, moveBefore, onceLeft, setText, stay } from "./attention.js";
import { applyConsumers } from "./consumers.js";
import { setCountdown } from "./countdown.js";
import { number } from "./format.js";
import { byRank, isFiltered, showCounts, takeRows } from "./order.js";
import { applyRow, applyToasts, idOf, markGone, rename, rowOf, setAge, setData, setCount, setItem, setLevel, setNumber, setRate, splitName } from "./row.js";
import { ServerClock } from "./wall_clock.js";
import { attachedWords, inLanguage, isPaused, levelsWords, word, worstWords } from "./words.js";

/** Milliseconds that the row of a deleted queue stays, marked as gone. */
const GONE_FOR = 30_000;
/** Queues that the server takes for one screen. */
const MOST = 500;
/** Groups that the server takes for one screen. */
const MOST_GROUPS = 200;

export class Screen {
  #topic;
  #clock = new ServerClock();
  #pending = null;
  #scheduled = 0;
  #fallback = 0;
  #attached = null;
  #applied;
  #grow;
  /** The queues that do not pass the filter: a row that was taken away does not come back by a late frame. */
  #out = new Set();

  /** `applied(seq)` is called when a frame is on the screen, `grow()` when rows came that have no place here. */
  constructor(topic, { applied, grow }) {
    this.#topic = topic;
    this.#applied = applied;
    this.#grow = grow;
  }

  /** Now by the server's clock, in ms. */
  get now() {
    return this.#clock.now(performance.now());
  }

  /** Learn the server's clock from a message that it just sent. */
  setClock(now) {
    this.#clock.set(now, performance.now());
  }

  /** The machine slept for so many ms. */
  slept(ms) {
    this.#clock.slept(ms);
  }

  /** The ids of the queues on the screen, in the order of the page; of very many those around what is in sight. */
  ids() {
    const rows = [...document.querySelectorAll("tr[data-queue]")];
    if (rows.length <= MOST) return rows.map(idOf);
    // Those around what is in sight; by steps of a hundred, so that scrolling a little changes nothing.
    const first = rows.findIndex((row) => row.getBoundingClientRect().bottom > 0);
    const from = Math.max(0, Math.floor((first - MOST / 2) / 100) * 100);
    const near = rows.slice(from, from + MOST + 100).filter((row) => !("gone" in row.dataset));
    return near.slice(0, MOST).map(idOf);
  }

  /** The groups with headings on the screen. */
  groups() {
    return [...document.querySelectorAll("#queues tr[data-group]")].slice(0, MOST_GROUPS).map((row) => row.dataset.group);
  }

  /** Take off the rows of queues that are gone for a while, but not while the pointer or the focus is in the table. */
  tidy() {
    const now = this.now;
    const old = [...document.querySelectorAll("tr[data-queue][data-gone]")].filter(
      (row) => now - Number(row.dataset.gone) > GONE_FOR,
    );
    if (old.length > 0 && !isAttended(document.getElementById("queues"))) this.#takeOff(old);
  }

  #takeOff(old) {
    // A heading that counts its queues, or a table without any: the page says what there is instead.
    for (const body of takeRows(old)) {
      if (body.querySelector("[data-group-ready]") || !body.querySelector("tr[data-queue]")) this.#grow();
    }
  }

  /** Take in a frame; the newest state of each queue wins. */
  add(frame) {
    if (this.#pending === null || frame.full) {
      this.#pending = { rows: new Map(), gone: new Set(), groups: new Map(), seq: 0, total: null, ends: null, full: false, matches: undefined };
    }
    const pending = this.#pending;
    pending.full ||= frame.full;
    pending.seq = frame.seq;
    pending.total = frame.total;
    pending.ends = frame.ends ?? pending.ends;
    if (frame.matches !== undefined) pending.matches = frame.matches;
    for (const row of frame.rows) {
      pending.rows.set(row.id, row);
      pending.gone.delete(row.id);
    }
    for (const sum of frame.groups ?? []) pending.groups.set(sum.label, sum);
    for (const id of frame.gone) {
      pending.gone.add(id);
      pending.rows.delete(id);
    }
    if (this.#scheduled === 0) {
      this.#scheduled = requestAnimationFrame(() => this.flush());
      // A window that is not drawn has no animation frames; it must still keep up.
      this.#fallback = setTimeout(() => this.flush(), 1000);
    }
  }

  /** Write what is pending now. */
  flush() {
    cancelAnimationFrame(this.#scheduled);
    clearTimeout(this.#fallback);
    this.#scheduled = 0;
    const pending = this.#pending;
    if (pending === null) return;
    this.#pending = null;
    const now = this.now;
    if (this.#topic === "overview") this.#overview(pending, now);
    else this.#queue(pending, now);
    applyToasts(pending.rows.values());
    this.#applied(pending.seq);
  }

  /** Write what matters most into the tab's title, before the first dot; a doubtful one carries a question mark. */
  title(words, live) {
    const title = `${words}${live ? "" : "?"}${document.title.slice(document.title.indexOf(" · "))}`;
    if (document.title !== title) document.title = title;
  }

  /** Say anew how old the counts in the sum are. */
  tick() {
    if (this.#attached === null) return;
    const words = attachedWords(this.#attached, this.now);
    for (const element of document.querySelectorAll("[data-total=attached]")) setText(element, words);
  }

  #overview(pending, now) {
    const rows = new Map();
    for (const element of document.querySelectorAll("tr[data-queue]")) rows.set(idOf(element), element);
    const table = document.getElementById("queues");
    // The whole frame after a table is watched is the first of it: those before are of the table that it replaced.
    const isFirst = pending.full && table !== null && "watched" in table.dataset && !("framed" in table.dataset);
    if (isFirst) table.dataset.framed = "";
    const isOfTable = table !== null && "framed" in table.dataset;
    // A whole frame without `matches` is of a table without a filter.
    if (pending.full || pending.matches !== undefined) this.#out = new Set(pending.matches?.out);
    const strangers = [];
    for (const row of pending.rows.values()) {
      const element = rows.get(row.id);
      if (element) applyRow(element, row, now);
      else if (isOfTable && !isFolded(row) && !this.#out.has(row.id)) strangers.push(row);
    }
    const gone = [...pending.gone].filter((id) => rows.has(id)).map((id) => rows.get(id));
    for (const element of gone) markGone(element, now);
    // They were deleted before the table was watched: they would only fill it.
    if (isFirst && !isAttended(table)) this.#takeOff(gone);
    if (strangers.length > 0) this.#append(strangers, now);
    if (isOfTable && pending.matches !== undefined) applyMatches(table, pending.matches, this.#out);
    for (const sum of isFiltered() ? sumsOfRows() : pending.groups.values()) setGroup(sum, now);
    this.#totals(pending.total, now);
    showCounts(pending.total.queues);
  }

  #append(strangers, now) {
    const template = document.getElementById("row-template");
    const bodies = document.querySelectorAll("#queues table.q > tbody");
    if (template === null || bodies.length !== 1 || bodies[0].querySelector("[data-group]")) {
      this.#grow();
      return;
    }
    const fresh = document.createDocumentFragment();
    for (const row of strangers) {
      const element = template.content.firstElementChild.cloneNode(true);
      rename(element, row);
      applyRow(element, row, now);
      fresh.append(element);
    }
    bodies[0].append(fresh);
  }

  #totals(total, now) {
    // The list was made before every queue was read: now it can be put in order.
    const unread = document.querySelector("#queues [data-unread]");
    if (unread !== null && total.unread === 0) {
      unread.remove();
      this.#grow();
    }
    for (const element of document.querySelectorAll("[data-total]")) {
      switch (element.dataset.total) {
        case "rate-in":
        case "rate-out":
          setRate(element, element.dataset.total === "rate-in" ? total.in : total.out);
          break;
        case "oldest":
          setAge(element, total.oldest, now);
          break;
        case "due":
        case "expiry":
          setCountdown(element, total[element.dataset.total], now);
          break;
        case "attached":
          this.#attached = total.attached;
          this.tick();
          break;
        case "queues":
          setData(element, "value", String(total.queues));
          setText(element, word(total.queues === 1 ? "in-queues-one" : "in-queues", { n: number(total.queues) }));
          break;
        case "oldest-queue":
          setText(element, total.oldest_queue ?? "");
          break;
        case "level":
          setCount(element, total.levels[element.dataset.of]);
          break;
        default:
          if (element.dataset.total in total) setNumber(element, total[element.dataset.total]);
      }
    }
  }

  #queue(pending, now) {
    for (const row of pending.rows.values()) {
      for (const element of document.querySelectorAll("[data-queue]")) {
        if (element.dataset.queue === row.name || element.dataset.queueId === row.id) applyRow(element, row, now);
      }
    }
    if (pending.gone.size > 0) for (const element of document.querySelectorAll("[data-queue]")) markGone(element, now);
    if (pending.ends !== null) {
      for (const list of document.querySelectorAll("[data-live-list]")) {
        applyList(list, pending.ends[list.dataset.liveList] ?? [], now);
        setUnreadable(list.nextElementSibling, pending.ends);
      }
      applyConsumers(pending.ends.consumers, now);
    }
  }
}

function headOf(label) {
  return document.querySelector(`#queues tr[data-group="${CSS.escape(label)}"]`);
}

/** Whether the heading of a queue's group is all that is shown of it. */
function isFolded(row) {
  return headOf(splitName(row.shown)[0])?.querySelector(".fold[aria-expanded=false]") != null;
}

/** Note which rows do not pass the filter; `order.js` takes them away, and asks where the server does not follow it. */
function applyMatches(table, matches, out) {
  setData(table, "matching", matches === null ? "" : String(matches.count));
  for (const row of /** @type {NodeListOf<HTMLElement>} */ (table.querySelectorAll("tr[data-queue]"))) {
    if (out.has(idOf(row))) row.dataset.out = "";
    else delete row.dataset.out;
  }
}

/** The sums of the groups with all their queues here, added up from what their rows show. */
function sumsOfRows() {
  const sums = [];
  for (const head of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#queues tr[data-group]"))) {
    const rows = [...head.parentElement.querySelectorAll("tr[data-queue]:not([data-gone], [data-out])")].map(rowOf);
    if (rows.length !== Number(head.dataset.queues) || rows.includes(undefined)) continue;
    const sum = { label: head.dataset.group, worst: rows.sort(byRank)[0], levels: {}, in: null, out: null };
    for (const field of ["ready", "delayed", "leased", "dead"]) {
      sum[field] = rows.reduce((total, row) => total + BigInt(row[field] ?? 0), 0n);
    }
    for (const row of rows) {
      sum.levels[row.level] = (sum.levels[row.level] ?? 0) + 1;
      if (row.in !== null) [sum.in, sum.out] = [sum.in + row.in, sum.out + row.out];
    }
    const claimable = rows.filter((row) => row.oldest !== null && !isPaused(row)).map((row) => row.oldest);
    sum.oldest = claimable.length > 0 ? Math.min(...claimable) : null;
    sums.push(sum);
  }
  return sums;
}

/** Write the sum of a group into its heading. */
function setGroup(sum, now) {
  const head = headOf(sum.label);
  if (head === null) return;
  setNumber(head.querySelector("[data-group-ready]"), sum.ready);
  if (sum.worst !== null) {
    setData(head, "rank", String(sum.worst.rank));
    setLevel(head, sum.worst);
    setText(head.querySelector("[data-group-worst]"), worstWords(sum.worst));
  }
  for (const element of head.querySelectorAll("[data-sum]")) {
    const field = element.dataset.sum;
    if (field === "in" || field === "out") setRate(element, sum[field]);
    else if (field === "oldest") setAge(element, sum.oldest, now);
    else if (field === "levels") setText(element, levelsWords(sum.levels));
    else setCount(element, sum[field]);
  }
}

/** The note below an empty list: that nothing is ready, or why its items cannot be read. */
function setUnreadable(note, ends) {
  const told = note?.querySelector("[data-part=unreadable]") ?? null;
  if (told === null) return;
  const why = ends.unreadable ?? "";
  setText(told, why === "" ? "" : word("reason-unreadable", { reason: inLanguage(why, ends.said) }));
  told.hidden = why === "";
  note.querySelector("[data-part=empty]").hidden = why !== "";
}

/** Show items in a list: those that stay keep their element, so that focus and pointer keep their place. */
function applyList(list, items, now) {
  const template = document.getElementById("item-template");
  const have = new Map();
  for (const element of list.querySelectorAll(":scope > [data-item]")) have.set(element.dataset.item, element);
  const wanted = new Set(items.map((item) => item.id));
  for (const [id, element] of have) if (!wanted.has(id) && onceLeft(element, () => element.remove())) markMoved(element);
  const stays = (element) => element === null || wanted.has(element.dataset.item);
  const next = (element) => {
    while (!stays(element)) element = element.nextElementSibling;
    return element;
  };
  let before = next(list.querySelector(":scope > [data-item]"));
  for (const item of items) {
    let element = have.get(item.id);
    if (element !== undefined && "gone" in element.dataset) unmark(element);
    if (element === undefined) {
      if (template === null) continue;
      element = template.content.firstElementChild.cloneNode(true);
    }
    setItem(element, item, now);
    setLink(list, element, item);
    if (element === before) before = next(before.nextElementSibling);
    else moveBefore(list, element, before);
  }
  for (const note of list.querySelectorAll(":scope > [data-empty]")) note.hidden = items.length > 0;
}

/** An item that is no longer at this end and has the focus: it stays, and says so, until the focus leaves. */
function markMoved(element) {
  element.dataset.gone = "";
  const time = element.querySelector("time");
  if (time === null) return;
  delete time.dataset.age;
  setText(time, word("item-gone"));
}

function unmark(element) {
  stay(element);
  delete element.dataset.gone;
  const time = element.querySelector("time");
  if (time !== null) time.dataset.age = "";
}

function setLink(list, element, item) {
  const base = list.dataset.itemUrl;
  const link = element.querySelector("a");
  if (base && link !== null && !link.getAttribute("href")?.includes(item.id)) link.href = `${base}${item.id}/`;
}

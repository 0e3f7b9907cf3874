// @ts-check
// Codes in words, in the reader's language. The words come in a file that browsers keep, and runs before this one; a
// wall brings them along, its own too: <template id="live-words">, <template id="wall-words">. Where the file did not
// come it is asked for until it does: no script that tells words starts before, and the page stays as it was drawn.

import { about, age, clock, number, rate, share, shorten } from "./format.js";

const REASON_WIDTH = 120;
/** Levels that are no good news, the worst first. */
const LEVELS = ["critical", "warning", "unknown"];
/** Reasons with an age in their words. */
const AGING = new Set(["stale", "no-consumer", "none-taken", "nothing-done", "old", "paused"]);
/** Counts from which on a verdict tells them rounded. */
const ROUGHLY = 100;
/** The number of dead items from which on a lower bound is told. */
const AT_LEAST = 10;
/** Milliseconds from which on it is told how long nothing was recorded. */
const LONG = 60_000;
/** Milliseconds between tries to get the words: the first, and the most. */
const FIRST_TRY = 400;
const LAST_TRY = 15_000;
let words = null;

await wordsCame();

async function wordsCame() {
  /** @type {HTMLScriptElement | null} */
  const file = document.querySelector("script[data-words]");
  for (let wait = FIRST_TRY; file !== null && !globalThis.pqadminWords; wait = Math.min(LAST_TRY, wait * 2)) {
    await new Promise((done) => setTimeout(done, wait * (0.5 + Math.random() / 2)));
    await new Promise((done) => {
      const again = document.createElement("script");
      again.onload = again.onerror = done;
      again.src = file.src;
      document.head.append(again);
      again.remove();
    });
  }
}

function load() {
  words = new Map(Object.entries(globalThis.pqadminWords ?? {}));
  /** @type {NodeListOf<HTMLTemplateElement>} */
  const templates = document.querySelectorAll("#live-words, #wall-words");
  for (const template of templates) {
    for (const element of template.content.querySelectorAll("[data-word]")) {
      words.set(element.dataset.word, element.textContent);
    }
  }
}

/** A word by its code, with %(name)s filled in; the code itself where the page has no word for it. */
export function word(code, values = {}) {
  if (words === null) load();
  const pattern = words.get(code) ?? code;
  return pattern.replace(/%\((\w+)\)s/g, (_, name) => values[name] ?? "");
}

/** A text of the server's in the language of the page; `said` holds it by language where it is another one there. */
export function inLanguage(text, said) {
  return said?.[document.documentElement.lang] ?? text;
}

/** Where the ready items of a row are heading; the rate of growth is told as a reason. */
export function trendWords(row) {
  if (row.clears_in !== null) return word("clears", { age: age(row.clears_in) });
  return word(`trend-${row.trend}`);
}

/** Whether the words of a row's verdict hold an age, which goes on while nothing changes. */
export function tellsTime(row) {
  return row.reasons.some((reason) => AGING.has(reason.code));
}

/** Whether a person paused the queue. */
export function isPaused(row) {
  return row.reasons.some((reason) => reason.code === "paused");
}

/** The level of a row and all reasons, a long reason cut unless `whole`; `now` in ms of the server's clock. */
export function verdictWords(row, now, whole = false) {
  const parts = [word(`level-${row.level}`), ...row.reasons.map((reason) => reasonWords(row, reason, now, whole))];
  return [...parts, flagWords(row)].filter(Boolean).join(" · ");
}

/** What is special about a queue, well or not. */
export function flagWords(row) {
  const parts = [];
  if (row.kind === "fifo") parts.push(word("fifo"));
  if (row.closed) parts.push(word("closed"));
  if (row.staging) parts.push(word("staging"));
  return parts.join(" · ");
}

/** One reason of a row's verdict, in a short phrase; `whole` with the exact numbers of now. An ended stall: as it was. */
export function reasonWords(row, reason, now, whole = false) {
  // The rate of growth that another reason hid is not known.
  const unmeasured = reason.code === "growing" && reason.value === null ? "-unmeasured" : "";
  if (reason.until) {
    const at = clock(reason.until, now);
    if (reason.code === "growing") return word(`reason-grew${unmeasured}`, { rate: rate(reason.value), at });
    const words = reasonWords(row, { ...reason, until: null }, reason.until, whole);
    return word("until", { reason: words, at });
  }
  const { code, value, limit } = reason;
  if (code === "paused" && row.pause !== null) return pauseWords(row.pause, now, whole);
  if (code === "unreadable") return word("reason-unreadable", { reason: inLanguage(row.unreadable, row.said) });
  const since = code === "old" && row.oldest !== null ? row.oldest : reason.since;
  if (code === "stale" && now - since < LONG) return word("reason-unrecorded");
  const held = row.leased === 1 ? "-held-item" : row.leased ? "-held" : "";
  const watched = code === "stale" && value ? "-watched" : "";
  const near = code === "full" && value === null ? "-near" : "";
  const kind = code === "none-taken" ? held + (value === 1 ? "-one" : "") : watched + near + unmeasured;
  const told = Math.floor(value ?? 0);
  const counted = { dead: row.dead, deep: row.ready }[code];
  // A number of now that is within its target explains no trouble: then what was told stays.
  const current = whole && counted >= (limit ?? 0) ? counted : undefined;
  const isExact = counted === undefined || current !== undefined || told < (code === "dead" ? AT_LEAST : ROUGHLY);
  const n = number(current ?? told);
  const least = code === "dead" && !isExact ? "-least" : "";
  return word(`reason-${code}${kind}${least}`, {
    age: (whole ? age : about)((now - since) / 1000),
    n: isExact || least ? n : `~${n}`,
    held: number(row.leased),
    rate: rate(value),
    percent: share(value ?? 0),
    wait: age(value),
    limit: code === "waits" ? age(limit) : number(Math.floor(limit ?? 0)),
  });
}

/** Since when a reason holds, and the target of an age or of dead items, which come one after the other. */
export function detailWords({ code, limit, since, until }, now) {
  if (code === "old") return word("above", { limit: age(limit ?? 0), at: clock(since, now) });
  const isOne = code === "dead" && (limit ?? 0) <= 1;
  const words = word(isOne ? "first" : until ? "from" : "since", { at: clock(since, now) });
  if (isOne || code !== "dead") return words;
  return `${words} · ${word("target", { limit: number(Math.floor(limit)) })}`;
}

/** The queue of a group that needs attention most, by its name, but for one that is well. */
export function worstWords(worst) {
  const level = word(`level-${worst.level}`);
  return worst.level === "ok" ? level : word("worst", { word: level, queue: worst.shown });
}

/** How old the count (ms, or null before the first) of an attached queue is. */
export function countedWords(ms, now) {
  return ms === null ? word("counting") : word("counted", { age: age((now - ms) / 1000) });
}

/** What the mark of an attached queue means. */
export function attachedTitle(attached) {
  return word("attached-title", { prefix: attached.prefix });
}

/** What of a sum is of attached queues, and as of when. */
export function attachedWords(attached, now) {
  if (attached.queues === 0) return "";
  const parts = [word("sum-attached", { n: number(attached.queues) })];
  if (attached.counted !== null) parts.push(countedWords(attached.counted, now));
  if (attached.uncounted > 0) parts.push(word("sum-uncounted", { n: number(attached.uncounted) }));
  return parts.join(", ");
}

function pauseWords(pause, now, whole) {
  const values = {
    by: pause.by,
    age: (whole ? age : about)((now - pause.since) / 1000),
    reason: whole ? pause.reason : shorten(pause.reason, REASON_WIDTH),
  };
  const code = pause.by ? "paused" : "paused-for"; // no wall names the person
  const text = word(pause.reason ? `${code}-why` : code, values);
  return pause.until === null ? text : `${text} · ${word("resumes", { at: clock(pause.until, now) })}`;
}

/** How many queues have each level; a line ends between the levels, not within one. */
export function levelsWords(levels) {
  const parts = LEVELS
    .filter((level) => levels[level])
    .map((level) => word(`n-${level}`, { n: number(levels[level]) }).replaceAll(" ", "\u00a0"));
  return parts.join("\u00a0· ") || word("all-ok");
}

/** The worst level and how many queues have it, for the title of a tab. */
export function tabWords(level, queues) {
  return level === "ok" ? word("level-ok") : word(`n-${level}`, { n: number(queues) });
}

/** The worst of these levels, and how many queues have it. */
export function worstOf(levels) {
  const level = LEVELS.find((each) => levels[each]) ?? "ok";
  return { level, queues: levels[level] };
}

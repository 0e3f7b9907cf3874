// @ts-check
// Codes in words, in the reader's language. The words come in a file that browsers keep, and runs before this one; a
// wall brings them along, its own too: <template id="live-words">, <template id="wall-words">. Where the file did not
// come it is asked for until it does: no script that tells words starts before, and the page stays as it was drawn.

import { age, clock, number, rate, shorten } from "./format.js";

const REASON_WIDTH = 120;
/** Why a queue needs a look, the worst first. */
const PROBLEMS = ["unreadable", "stalled", "failing", "growing", "drift", "old", "dead", "paused"];
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

/** Where the ready items of a row are heading. */
export function outlookWords(row) {
  if (row.outlook === "draining" && row.clears_in !== null) return word("clears", { age: age(row.clears_in) });
  if (row.outlook === "growing" && row.grows_by !== null) return word("grows", { rate: rate(row.grows_by) });
  return word(`outlook-${row.outlook}`);
}

/** Why a queue needs a look, all reasons. */
function reasonsOf(row) {
  return [row.problem, ...row.more];
}

/** Whether the words of a row's state hold an age, which goes on while nothing changes. */
export function tellsTime(row) {
  return row.state === "paused" || row.state === "stalled" || reasonsOf(row).includes("old");
}

/** What state a row is in and why, the reason cut unless `whole`; `now` in ms of the server's clock. */
export function stateWords(row, now, whole = false) {
  const parts = [stateAndReason(row, now, whole)];
  const reasons = reasonsOf(row);
  if (row.drift) parts.push(word("drifted"));
  if (reasons.includes("failing")) parts.push(word("fails"));
  if (reasons.includes("old") && row.oldest !== null) {
    parts.push(word("waits", { age: age((now - row.oldest) / 1000) }));
  }
  if (reasons.includes("dead")) parts.push(word("dead-items", { n: number(row.dead) }));
  if (row.kind === "fifo") parts.push(word("fifo"));
  if (row.closed) parts.push(word("closed"));
  if (row.staging) parts.push(word("staging"));
  return parts.join(" · ");
}

function stateAndReason(row, now, whole) {
  if (row.state === "unreadable") return word("unreadable", { reason: inLanguage(row.unreadable, row.said) });
  if (row.state === "paused" && row.pause !== null) return pauseWords(row.pause, now, whole);
  if (row.state === "stalled" && row.quiet_since !== null) {
    return word("stalled-for", { age: age((now - row.quiet_since) / 1000) });
  }
  if (row.state === "growing" && row.grows_by !== null) return word("growing-by", { rate: rate(row.grows_by) });
  return word(`state-${row.state}`);
}

/** The queue of a group that needs attention most, by its name, but for one that needs none. */
export function worstWords(worst) {
  const state = word(`state-${worst.state}`);
  return worst.problem ? word("worst", { word: state, queue: worst.shown }) : state;
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
    age: age((now - pause.since) / 1000),
    reason: whole ? pause.reason : shorten(pause.reason, REASON_WIDTH),
  };
  const code = pause.by ? "paused" : "paused-for"; // no wall names the person
  const text = word(pause.reason ? `${code}-why` : code, values);
  return pause.until === null ? text : `${text} · ${word("resumes", { at: clock(pause.until, now) })}`;
}

/** How many queues need a look, by reason; a line ends between the reasons, not within one. */
export function problemWords(problems) {
  const parts = PROBLEMS
    .filter((reason) => problems[reason])
    .map((reason) => word(`problem-${reason}`, { n: number(problems[reason]) }).replaceAll(" ", "\u00a0"));
  return parts.join("\u00a0· ") || word("problem-none");
}

// @ts-check
// Asks the server for the table anew where rows cannot simply be added: the first queue of all, or a grouped table.

import { isAttended, replace } from "./attention.js";
import { pageSoon } from "./patience.js";

/** Milliseconds to wait while the pointer, the focus or a selection is in the table: rows do not move under it. */
const PATIENCE = 1000;
let running = null;

/** Replace #queues by what the page's own address shows now. Many calls at once are one. */
export function refetchTable() {
  running ??= refetch().finally(() => {
    running = null;
  });
  return running;
}

/** Whether another table is to come, once the reader's pointer, focus and selection have left this one. */
export function isAwaited() {
  return running !== null && isAttended(region());
}

/** Open and shut groups in the page as it is; without scripts the same form leads to the page anew. */
export function startFolds() {
  document.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (form.id !== "folds") return;
    event.preventDefault();
    fold(form, event.submitter);
  });
}

async function fold(form, button) {
  const body = new FormData(form);
  body.set(button.name, button.value);
  try {
    const answer = await fetch(form.action, { method: "POST", headers: { "HX-Request": "true" }, body });
    const table = answer.ok ? await fetchTable() : null;
    if (table === null || region() === null) throw new Error("no table");
    replace(region(), table);
    window.htmx?.process?.(table);
  } catch {
    location.reload(); // the page that comes says why
  }
}

async function refetch() {
  for (;;) {
    while (isAttended(region())) await new Promise((resolve) => setTimeout(resolve, PATIENCE));
    const table = await fetchTable();
    if (table === null) return;
    if (isAttended(region())) continue; // the focus came in while the answer was on its way
    region()?.replaceWith(document.adoptNode(table));
    window.htmx?.process?.(table);
    return;
  }
}

function region() {
  return document.getElementById("queues");
}

/** What the page's own address shows now as #queues; null where it does not come, or comes after another filter. */
export async function fetchTable() {
  const { href } = location;
  try {
    const answer = await fetch(href, { headers: { Accept: "text/html" }, cache: "no-store", signal: pageSoon() });
    const text = await answer.text();
    if (!answer.ok || answer.redirected || href !== location.href) return null;
    return new DOMParser().parseFromString(text, "text/html").getElementById("queues");
  } catch {
    return null; // the server went away meanwhile; the next frame asks again
  }
}

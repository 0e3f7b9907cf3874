// @ts-check
// Asks the server for the table anew where rows cannot simply be added: the first queue of all, or a grouped table.

import { isAttended } from "./attention.js";

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

async function fetchTable() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("queues");
  } catch {
    return null; // the server went away meanwhile; the next frame asks again
  }
}

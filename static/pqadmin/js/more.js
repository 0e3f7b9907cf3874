// @ts-check
// Brings the next window of the overview when the reader scrolls to the end of this one. Rows are added below what is
// there, so that nothing moves under the pointer; without scripts the same link leads to the next page.

import { replace } from "./attention.js";
import { idOf } from "./row.js";

/** Rows on one page; after that the link is a link again. */
const MOST_ROWS = 2_000;

let running = false;

/** Watch for the end of the table, in whatever table the page has by then. */
export function startMore() {
  if (!("IntersectionObserver" in window)) return;
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting) more(entry.target);
    },
    { rootMargin: "600px" },
  );
  let seen = null;
  // The table is replaced by filters and refetches: look for its link once in a while, not at every change of a number.
  const look = () => {
    const link = document.querySelector("#queues .pager a[rel=next]");
    if (link === seen) return;
    observer.disconnect();
    seen = link;
    if (link !== null) observer.observe(link);
  };
  look();
  setInterval(look, 500);
}

async function more(link) {
  const table = document.querySelector("#queues table.q");
  if (running || table === null || table.querySelectorAll("tr[data-queue]").length >= MOST_ROWS) return;
  running = true;
  try {
    const answer = await fetch(link.href, { headers: { "HX-Target": "section#queues", Accept: "text/html" } });
    if (!answer.ok || answer.redirected || !link.isConnected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const pager = page.querySelector(".pager");
    const next = page.querySelector("table.q");
    if (pager === null || next === null || !link.isConnected) return;
    const focused = document.activeElement === link;
    const first = append(table, next);
    replace(link.closest(".pager"), pager);
    // After the link had the focus, the first new row gets it.
    if (focused) first?.querySelector("a[href]")?.focus({ preventScroll: true });
  } catch {
    // The server is away: the link is still there.
  } finally {
    running = false;
  }
}

/** Add the rows of the next window and return the first of them. */
function append(table, next) {
  const have = new Set([...table.querySelectorAll("tr[data-queue]")].map(idOf));
  for (const row of next.querySelectorAll("tr[data-queue]")) if (have.has(idOf(row))) row.remove();
  const first = next.querySelector("tr[data-queue]");
  for (const body of [...next.tBodies]) {
    const last = table.tBodies[table.tBodies.length - 1];
    const head = body.querySelector("tr[data-group]");
    const same = head === null || last.querySelector("tr[data-group]")?.dataset.group === head.dataset.group;
    if (!same) {
      table.append(document.adoptNode(body));
      continue;
    }
    head?.remove();
    last.append(...body.rows);
  }
  return first;
}

// @ts-check
// Makes a wall's page anew when its own scripts did not come: a server that goes away may have handed out the page without
// them, and no person is there. A file of its own, which needs no other and which browsers keep through releases.

/** Milliseconds that the wall's scripts have to begin, and between looks after that. */
const EVERY = 20_000;
/** Milliseconds that the server has for an answer. */
const PATIENCE = 10_000;
/** How often the wait doubles after pages that did not begin either: up to about twenty minutes. */
const DOUBLINGS = 6;
/** Where the tab keeps how many pages in a row did not begin. */
const KEPT = "pqadmin-wall-reloads";

/** Looks to let go by before the server is asked. */
let left = 2 ** Math.min(reloads(), DOUBLINGS) - 1;
setTimeout(look, EVERY);

async function look() {
  if ("running" in document.body.dataset) {
    keep(0);
    return;
  }
  mark();
  if (left > 0) left -= 1;
  else if (await handedOut()) {
    keep(reloads() + 1);
    location.reload();
    return;
  }
  setTimeout(look, EVERY);
}

/** Say that nothing moves, before the server is asked: one that hangs never answers. */
function mark() {
  const { body } = document;
  const words = document.getElementById("wall-words").content;
  const say = (part, code) => (body.querySelector(`[data-part=${part}]`).textContent = words.querySelector(`[data-word=${code}]`).textContent);
  body.dataset.freshState = "old";
  say("fresh", "wall-still");
  say("veil-age", "wall-still");
  say("veil-why", "wall-why-reconnecting");
  body.querySelector("[data-part=veil]").hidden = false;
}

async function handedOut() {
  const asking = new AbortController();
  const patience = setTimeout(() => asking.abort(), PATIENCE);
  try {
    const answer = await fetch(location.href, { method: "HEAD", redirect: "manual", cache: "no-store", signal: asking.signal });
    return answer.ok;
  } catch {
    return false; // the server is away: later, then
  } finally {
    clearTimeout(patience);
  }
}

function reloads() {
  try {
    return Number(sessionStorage.getItem(KEPT)) || 0;
  } catch {
    return 0; // a browser that keeps nothing
  }
}

function keep(count) {
  try {
    sessionStorage.setItem(KEPT, String(count));
  } catch {
    // Then every page waits as the first.
  }
}

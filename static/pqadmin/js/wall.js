// @ts-check
// A screen on a wall, for months: shows frames, says how old its data is, comes back by itself after whatever happened.

import { age, local } from "./format.js";
import { answerSoon } from "./patience.js";
import { Connection } from "./socket.js";
import { Board } from "./wall_board.js";
import { Age, Due, ServerClock, placeOf, renewal } from "./wall_clock.js";
import { setData, setHidden, setText } from "./wall_tile.js";
import { word } from "./words.js";

/** Milliseconds without a move of the pointer after which it hides. */
const POINTER_RESTS = 3_000;
/** Milliseconds between tries of a screen that was turned away: an admin may let it in again. */
const ASK_AGAIN = 60_000;
/** Milliseconds between tries to make a page anew: a server that restarts does not answer the first. */
const RENEW_AGAIN = 10_000;
/** Why numbers are old, by the state of the connection. */
const WHY = { live: "wall-why-silent", unopened: "wall-why-unopened" };
/** A page that is to be made anew waits up to so many ms, so that a hundred screens do not ask at once. */
const RELOAD_WITHIN = 5_000;

const body = document.body;
const part = (name) => document.querySelector(`[data-part=${name}]`);
const steady = () => performance.now();

if (document.documentElement.dataset.timeZone === "UTC") {
  // A screen that hangs somewhere shows the time that it is there.
  document.documentElement.dataset.timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

const board = new Board();
const numbers = new Age();
const server = new ServerClock();
const renewed = renewal(steady());
const asking = new Due(ASK_AGAIN, steady());
let state = "still";
let trouble = null;
let closed = null;
let reloading = false;
/** Whether this page is to be made anew: tried again until it is, as the connection may have ended for good. */
let outdated = false;
let moved = steady();

server.set(Number(body.dataset.now), steady());
if (body.dataset.asOf) numbers.heard(steady(), Number(body.dataset.now) - Number(body.dataset.asOf));

const address = new URL(body.dataset.liveUrl, location.href);
address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
const connection = new Connection(address.href, body.dataset.release, {
  hello(message) {
    server.set(message.now, steady());
    numbers.staleAfter = message.stale_after * 1000;
    closed = null;
  },
  frame(message) {
    server.set(message.now, steady());
    numbers.heard(steady());
    [state, trouble, closed] = ["live", null, null];
    board.show(message, message.now);
    connection.ack(message.seq);
    if (message.revision !== body.dataset.revision) makeAnew();
    freshness(steady());
  },
  beat(message) {
    server.set(message.now, steady());
    numbers.heard(steady(), message.now - message.checked);
    [state, trouble] = ["live", null];
  },
  trouble(message) {
    server.set(message.now, steady());
    numbers.failing(steady(), message.now - message.since);
    trouble = message.message;
    second();
  },
  refused() {},
  missing() {
    connection.end("gone");
  },
  state(name) {
    if (name === "outdated") makeAnew();
    else if (["signed-out", "not-allowed", "gone"].includes(name)) {
      closed = "link" in body.dataset ? "wall-why-closed" : `wall-why-${name}`;
      asking.soon(steady(), ASK_AGAIN);
    }
    [state, trouble] = [name, null];
    second();
  },
});

function makeAnew() {
  outdated = true;
  asking.soon(steady(), RENEW_AGAIN);
  reload();
}

/** Load the page anew, but only when the server hands it out: an error page would stay for good. */
async function reload() {
  if (reloading) return;
  reloading = true;
  await new Promise((done) => setTimeout(done, Math.random() * RELOAD_WITHIN));
  try {
    const answer = await fetch(location.href, { method: "HEAD", redirect: "manual", cache: "no-store", signal: answerSoon() });
    if (answer.ok) {
      location.reload();
      return;
    }
  } catch {
    // The server is away: `second` tries again.
  }
  reloading = false;
}

/** Renew the screen's cookie: the answer to any request brings it. */
async function renew() {
  try {
    const answer = await fetch(location.href, { method: "HEAD", redirect: "manual", cache: "no-store", signal: answerSoon() });
    if (answer.ok) return;
  } catch {
    // Later, then.
  }
  renewed.soon(steady(), ASK_AGAIN);
}

function second() {
  const now = steady();
  const slept = numbers.look(now, Date.now());
  server.slept(slept);
  if (slept > 0) connection.open(); // though it has ended: a person may have let the screen in again
  connection.check();
  const serverNow = server.now(now);
  board.tick(serverNow);
  const here = local(serverNow);
  setText(part("clock"), here.time);
  setText(part("zone"), here.zone);
  setData(body, "shift", String(placeOf(now)));
  freshness(now);
  if (renewed.take(now)) renew();
  if (outdated && asking.take(now)) makeAnew();
  else if (closed !== null && asking.take(now)) reload();
  body.toggleAttribute("data-idle", now - moved > POINTER_RESTS);
}

function freshness(now) {
  const old = closed !== null || trouble !== null || numbers.old(now);
  const shown = closed !== null ? "closed" : old ? "old" : state === "live" ? "live" : "still";
  setData(body, "freshState", shown);
  const words = { closed: "wall-closed", old: "fresh-stale", live: "fresh-live", still: "fresh-reconnecting" };
  setText(part("fresh"), word(words[shown]));
  setHidden(part("veil"), !old);
  if (!old) return;
  const known = numbers.at(now);
  const seconds = Math.max(0, Math.floor(known / 1000));
  const told = closed !== null ? word("wall-closed") : known === null ? word("wall-none") : word("wall-old", { age: age(seconds).replace(/\.0 /, " ") });
  setText(part("veil-age"), told);
  setText(part("veil-why"), closed !== null ? word(closed) : word(trouble ?? WHY[state] ?? "wall-why-reconnecting"));
}

/** Keep the screen on, where the browser lets a page do that. */
async function stayOn() {
  try {
    await navigator.wakeLock?.request("screen");
  } catch {
    // The machine's own settings decide then.
  }
}

addEventListener("online", () => connection.retry());
addEventListener("pageshow", (event) => event.persisted && connection.retry());
for (const kind of ["pointermove", "keydown"]) addEventListener(kind, () => (moved = steady()), { passive: true });
document.addEventListener("visibilitychange", () => {
  connection.show(!document.hidden);
  if (!document.hidden) stayOn();
});
setInterval(second, 1000);
second();
stayOn();
connection.open();
setData(body, "running", ""); // for wall_guard.js

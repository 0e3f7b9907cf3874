// @ts-check
// Keeps the progress of running jobs current: asks their address anew while something runs and the page is visible.

import { replace, settle } from "./attention.js";
import { pageSoon } from "./patience.js";

/** Milliseconds between two looks, and after one that failed. */
const EVERY = 1000;
const AFTER_TROUBLE = 5000;
let timer = 0;

/** Follow a job that the page shows from now on. */
export function followJob() {
  plan(EVERY);
}

/** @returns {HTMLElement | null} */
function region() {
  return document.querySelector("#jobs[data-refresh]");
}

function plan(wait) {
  clearTimeout(timer);
  timer = 0;
  if (region() !== null && !document.hidden) timer = setTimeout(look, wait);
}

async function look() {
  let wait = EVERY;
  const address = region()?.dataset.refresh || location.href;
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store", signal: pageSoon() });
    if (!answer.ok || answer.redirected) throw new Error(`answer ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (address !== (region()?.dataset.refresh || location.href)) return plan(wait); // another one is shown by now
    show(page);
    mark(false);
  } catch {
    wait = AFTER_TROUBLE; // the server went away: the page says of when it is
    mark(true);
  }
  plan(wait);
}

/** Numbers change in their places; a job that begins or ends changes what there is to do, so everything is shown anew. */
function show(page) {
  const mine = region();
  const theirs = page.getElementById("jobs");
  if (mine === null || theirs === null) return;
  for (const badge of page.querySelectorAll("[data-running-jobs]")) {
    document.querySelector("[data-running-jobs]")?.replaceChildren(...document.adoptNode(badge).childNodes);
  }
  if (mine.dataset.set !== theirs.dataset.set) {
    replace(mine, theirs);
    for (const form of theirs.querySelectorAll("form")) settle(form);
    return;
  }
  for (const element of mine.querySelectorAll("[data-live]")) {
    const now = theirs.querySelector(`[data-live="${CSS.escape(element.dataset.live)}"]`);
    if (now !== null) update(element, now);
  }
}

/** A meter keeps its element, so that it moves on instead of beginning anew. */
function update(element, now) {
  const meter = element.querySelector("progress");
  const next = now.querySelector("progress");
  if (meter !== null && next !== null && meter.hasAttribute("value") && next.hasAttribute("value")) {
    meter.value = next.value;
  } else if (element.innerHTML !== now.innerHTML) {
    element.replaceChildren(...document.adoptNode(now).childNodes);
  }
}

function mark(stale) {
  region()?.toggleAttribute("data-stale", stale);
}

document.addEventListener("visibilitychange", () => plan(0));
addEventListener("pageshow", (event) => event.persisted && plan(0));
plan(EVERY);

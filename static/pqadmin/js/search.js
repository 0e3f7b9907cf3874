// @ts-check
// Goes on with a search by itself: each step is a short request, its rows join the list, and Cancel ends it at once.
// Without a script the link “Continue” leads on, step by step. A hidden page searches no further.

import { replace } from "./attention.js";
import { showSelections } from "./select.js";

/** Rows that one page shows: with as many, more are shown on request. */
const MOST = 50;

let running = null;

/** Go on with a search that is on the page, or comes to it. */
export function startSearches() {
  document.addEventListener("click", (event) => {
    const scope = event.target.closest?.("[data-search-next]");
    if (!scope) return;
    if (event.target.closest("[data-search-cancel]")) stop(scope, scope.dataset.canceled);
    else if (event.target.closest("[data-search-continue]")) {
      event.preventDefault();
      run(scope, rows().length + MOST);
    }
  });
  document.addEventListener("htmx:after:swap", begin);
  document.addEventListener("visibilitychange", begin);
  begin();
}

function begin() {
  const scope = document.querySelector("[data-search-next]:not([data-stopped])");
  if (running !== null && (!running.scope.isConnected || document.hidden)) {
    running.abort.abort();
    running = null;
  }
  if (scope === null || running !== null || document.hidden) return;
  const most = Number(scope.dataset.most ?? MOST); // what it was after before the page was hidden
  if (rows().length < most) run(scope, most);
}

function rows() {
  return document.querySelectorAll("#items table.rows > tbody > tr");
}

async function run(scope, most) {
  const mine = { scope, abort: new AbortController() };
  running = mine;
  scope.dataset.most = String(most);
  delete scope.dataset.stopped;
  buttons(scope, true);
  while (running === mine && scope.dataset.searchNext && rows().length < most) {
    let step;
    try {
      step = await fetchStep(scope.dataset.searchNext, mine.abort.signal);
    } catch {
      if (running === mine) stop(scope, scope.dataset.failed);
      return;
    }
    if (running !== mine || !scope.isConnected) return;
    take(scope, step);
  }
  if (running !== mine) return;
  running = null;
  buttons(scope, false);
  say(scope);
  if (!scope.dataset.searchNext) return;
  scope.dataset.stopped = "";
}

async function fetchStep(address, signal) {
  const answer = await fetch(address, {
    headers: { Accept: "text/html", "HX-Request": "true", "HX-Target": "section#items" },
    cache: "no-store",
    signal,
  });
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const list = page.getElementById("items");
  if (list === null) throw new Error("no list");
  return list;
}

/** Let what a step found join the page. */
function take(scope, step) {
  const list = scope.closest("#items");
  const body = list.querySelector("table.rows > tbody");
  for (const row of step.querySelectorAll("table.rows > tbody > tr")) body?.append(document.adoptNode(row));
  const next = step.querySelector("#scope");
  if (next === null || (!next.dataset.searchNext && rows().length === 0)) {
    replace(list, step); // the end, and nothing found: the page says what else to do
    window.htmx?.process?.(step);
    running = null;
    return;
  }
  scope.dataset.searchNext = next.dataset.searchNext ?? "";
  scope.querySelector("[data-scope]").textContent = next.querySelector("[data-scope]").textContent;
  const bar = scope.querySelector("progress");
  const filled = next.querySelector("progress");
  if (bar !== null && filled === null) bar.remove();
  else if (bar !== null) Object.assign(bar, { max: filled.max, value: filled.value });
  const link = scope.querySelector("[data-search-continue]");
  const onward = next.querySelector("[data-search-continue]");
  if (onward === null) link.hidden = true;
  else link.href = onward.getAttribute("href");
  swap(list, step, ".everything");
  swap(list, step, "footer.pager");
  // To the server each step is a page further on; here all of them are one.
  if (!new URLSearchParams(location.search).has("after")) list.querySelector("[data-first]")?.remove();
  showSelections();
}

function swap(list, step, selector) {
  const old = list.querySelector(selector);
  const fresh = step.querySelector(selector);
  if (old === null || fresh === null) return;
  replace(old, fresh);
  window.htmx?.process?.(fresh);
}

function stop(scope, why) {
  running?.abort.abort();
  running = null;
  scope.dataset.stopped = "";
  buttons(scope, false);
  const words = scope.querySelector("[data-scope]");
  words.textContent = `${words.textContent} · ${why}`;
  say(scope);
}

/** While it runs there is Cancel, else Continue; the focus goes over from one to the other. */
function buttons(scope, runs) {
  const cancel = scope.querySelector("[data-search-cancel]");
  const onward = scope.querySelector("[data-search-continue]");
  const focused = document.activeElement === cancel || document.activeElement === onward;
  cancel.hidden = !runs;
  onward.hidden = runs || !scope.dataset.searchNext;
  if (focused) (runs ? cancel : onward.hidden ? scope : onward).focus();
}

function say(scope) {
  scope.querySelector("[role=status]").textContent = scope.querySelector("[data-scope]").textContent;
}

// @ts-check
// Counts down to moments: every <time data-countdown datetime="…"> on the page says how long it is until then, or "now".
// One timer for the page, and no timer's work while it is hidden. Nothing is announced: the text is there to be read.
// With reduced motion, coarse words are shown that seldom change.

import { age, countdown, momentAndUtc } from "./format.js";
import { word } from "./words.js";

/** Seconds: with reduced motion, the last two minutes count in such steps. */
const STEP = 10;

const calm = matchMedia("(prefers-reduced-motion: reduce)");
let clock = null;

/** Keep the page's countdowns going; `now()` gives ms of the server's clock, or null while only the page's is known. */
export function startCountdowns(now = () => null) {
  const page = pageClock();
  clock = () => now() ?? page();
  tickCountdowns();
  setInterval(tickCountdowns, 1000);
  document.addEventListener("visibilitychange", () => tickCountdowns());
}

/** Bring all countdowns up to date. */
function tickCountdowns() {
  if (document.hidden || clock === null) return;
  const now = clock();
  for (const time of document.querySelectorAll("time[data-countdown]")) {
    const at = Date.parse(time.getAttribute("datetime"));
    if (!Number.isNaN(at)) write(time, at, now);
  }
}

/** Let an element that is, or holds, a <time data-countdown> count down to a moment (ms), or to nothing (null). */
export function setCountdown(element, ms, now) {
  let time = element.matches("time[data-countdown]") ? element : element.querySelector("time[data-countdown]");
  if (time === null) {
    time = document.createElement("time");
    time.dataset.countdown = "";
    element.append(time);
  }
  const hidden = ms === null;
  if (element.hidden !== hidden) element.hidden = hidden;
  if (time.hidden !== hidden) time.hidden = hidden;
  if (hidden) {
    time.dateTime = "";
    return;
  }
  if (Date.parse(time.dateTime) !== ms) {
    time.dateTime = new Date(ms).toISOString();
    time.title = momentAndUtc(ms);
  }
  write(time, ms, now);
}

function write(time, at, now) {
  const left = (at - now) / 1000;
  const text = left > 0 ? word("countdown-in", { left: calm.matches ? coarse(left) : countdown(left) }) : word("countdown-now");
  if (time.textContent !== text) time.textContent = text;
}

function coarse(left) {
  if (left >= 48 * 3600) return countdown(left);
  return left < 120 ? `${Math.ceil(left / STEP) * STEP} s` : age(left);
}

/** The server's clock by what the page brought along: good to the time that the page took to come. */
function pageClock() {
  const told = document.querySelector("time[data-countdown][data-now]");
  const offset = told === null ? 0 : Number(told.dataset.now) - Date.now();
  return () => Date.now() + offset;
}

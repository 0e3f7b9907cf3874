// @ts-check
// How fresh the numbers on the screen are, said honestly: live, stale with its age, reconnecting, unopened, signed out.

import { age } from "./format.js";
import { Age } from "./wall_clock.js";
import { word } from "./words.js";

export class Freshness {
  #age = new Age();
  #state = "connecting";
  #trouble = null;

  constructor() {
    this.look();
  }

  /** Seconds without word after which numbers count as stale. */
  set staleAfter(seconds) {
    this.#age.staleAfter = seconds * 1000;
  }

  /** The server vouched for the screen; `lag` is how many ms ago it had last looked itself. */
  heard(lag = 0) {
    this.#age.heard(performance.now(), lag);
    this.#trouble = null;
    this.#state = "connected";
  }

  /** The server is there but cannot read its store, since `ago` ms; one that began meanwhile knows no older number. */
  trouble(message, ago) {
    this.#trouble = message;
    this.#state = "connected";
    this.#age.failing(performance.now(), ago);
  }

  /** Look at both clocks of the machine, about once a second; return for how many ms it slept. */
  look() {
    return this.#age.look(performance.now(), Date.now());
  }

  /** The connection's state: reconnecting, unopened (the site answers), signed-out, not-allowed, outdated. */
  connection(state) {
    this.#state = state;
    this.#trouble = null; // what the server last said of its store is old
  }

  /** Seconds since the numbers were known to be right; null before the first frame. */
  get seconds() {
    const ms = this.#age.at(performance.now());
    return ms === null ? null : ms / 1000;
  }

  get live() {
    return this.#state === "connected" && this.#trouble === null && !this.#age.old(performance.now());
  }

  /** Write it into every [data-fresh], and return its word; null before anything is known. */
  show() {
    if (this.#state === "connecting") return null;
    const [state, code] = this.#described();
    const shown = state === "live" ? "" : this.#agoText();
    for (const element of document.querySelectorAll("[data-fresh]")) {
      const [label, small] = parts(element);
      if (element.dataset.state !== state) element.dataset.state = state;
      write(label, word(code));
      write(small, shown);
      const title = word(this.#trouble ?? `${code}-title`); // the store's own words are no code, and stay as they are
      if (element.title !== title) element.title = title;
    }
    return word(code);
  }

  #described() {
    if (["signed-out", "not-allowed", "outdated"].includes(this.#state)) return ["offline", `fresh-${this.#state}`];
    if (["reconnecting", "unopened"].includes(this.#state)) return ["reconnecting", `fresh-${this.#state}`];
    if (this.#trouble !== null) return ["stale", "fresh-store"];
    return this.live ? ["live", "fresh-live"] : ["stale", "fresh-stale"];
  }

  #agoText() {
    const seconds = this.seconds;
    return seconds === null ? "" : age(Math.max(0, Math.floor(seconds))).replace(/\.0 /, " ");
  }
}

function parts(element) {
  let label = element.querySelector("[data-part=word]");
  let small = element.querySelector("[data-part=ago]");
  if (label === null || small === null) {
    label = document.createElement("span");
    label.dataset.part = "word";
    small = document.createElement("small");
    small.dataset.part = "ago";
    element.replaceChildren(label, " ", small);
  }
  return [label, small];
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

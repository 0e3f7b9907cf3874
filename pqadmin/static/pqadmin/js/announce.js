// Speaks to screen readers, politely and seldom.

import { problemWords } from "./words.js";

/** Milliseconds between two announcements. */
const QUIET = 20_000;

export class Announcer {
  #said = null;
  #wanted = null;
  #timer = 0;
  #last = -QUIET;

  /** Say how many queues need a look when that changes; what it was when the page came is on the page. */
  problems(counts) {
    const text = problemWords(counts);
    if (this.#said === null) this.#said = text;
    this.#wanted = text;
    if (text === this.#said || this.#timer !== 0) return;
    const wait = Math.max(0, this.#last + QUIET - performance.now());
    this.#timer = setTimeout(() => this.#say(), wait);
  }

  #say() {
    this.#timer = 0;
    if (this.#wanted === this.#said) return;
    this.#said = this.#wanted;
    this.#last = performance.now();
    region().textContent = this.#said;
  }
}

function region() {
  let element = document.getElementById("live-region");
  if (element === null) {
    element = document.createElement("div");
    element.id = "live-region";
    element.className = "visually-hidden";
    element.role = "status";
    element.ariaLive = "polite";
    document.querySelector("main").append(element);
  }
  return element;
}

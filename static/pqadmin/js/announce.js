// @ts-check
// Speaks to screen readers, politely and seldom. The only live region of a page that numbers change on.

/** Milliseconds between two announcements. */
const QUIET = 20_000;

export class Announcer {
  #said = new Map();
  #wanted = new Map();
  #timer = 0;
  #last = -QUIET;

  constructor() {
    region(); // a screen reader speaks of a region only when it knew it before the text came
  }

  /** What is now to be said of a topic; said when it changes, and not at all if it has changed back by then. */
  tell(topic, text) {
    // What it was when the page came is on the page.
    if (!this.#said.has(topic)) this.#said.set(topic, text);
    this.#wanted.set(topic, text);
    if (text === this.#said.get(topic) || this.#timer !== 0) return;
    const wait = Math.max(0, this.#last + QUIET - performance.now());
    this.#timer = setTimeout(() => this.#say(), wait);
  }

  #say() {
    this.#timer = 0;
    const changed = [...this.#wanted].filter(([topic, text]) => text !== this.#said.get(topic));
    if (changed.length === 0) return;
    for (const [topic, text] of changed) this.#said.set(topic, text);
    this.#last = performance.now();
    region().textContent = changed.map(([, text]) => text).filter(Boolean).join(" · ");
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

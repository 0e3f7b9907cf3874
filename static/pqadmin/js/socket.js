// @ts-check
// The connection to /live/: opens it, keeps it, tells how fresh it is. Knows nothing of the page.
// The wire format is described in docs/reference/live-protocol.md.

import { answerSoon } from "./patience.js";
import { inLanguage } from "./words.js";

const PROTOCOL = 1;
/** Milliseconds between tries: the first, the most, and the most while the tab is hidden. */
const FIRST_TRY = 400;
const LAST_TRY = 15_000;
const LAST_TRY_HIDDEN = 60_000;
/** Milliseconds of silence after which a connection is given up for dead. */
const DEAD_AFTER = 12_000;
const DEAD_AFTER_HIDDEN = 40_000;
/** Close codes after which the page's own address says whether the person is still signed in and may read. */
const SIGNED_OUT = new Set([4401, 4403]);

export class Connection {
  #url;
  #handlers;
  #release;
  #socket = null;
  #watch = null;
  #seq = 0;
  #tries = 0;
  #timer = 0;
  /** Whether the server has greeted: a proxy may open a connection that nothing comes through. */
  #opened = false;
  /** Whether the site answered though a handshake had failed. */
  #answers = false;
  #visible = true;
  #ended = false;
  #heard = 0;

  /**
   * Handlers: frame(message), beat(message), trouble(message), hello(message), refused(message), state(name) of those in `fresh.js`, and
   * missing(), where the site itself says that the page's own address leads nowhere by now: no proxy in its place.
   * `release` is the page's: a server of another one has rows and messages that these scripts cannot read.
   */
  constructor(url, release, handlers) {
    this.#url = url;
    this.#release = release;
    this.#handlers = handlers;
  }

  open() {
    clearTimeout(this.#timer);
    this.#drop();
    this.#seq = 0;
    this.#opened = this.#ended = false;
    this.#heard = performance.now();
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
    socket.onclose = (event) => this.#closed(event.code);
  }

  /** Tell the server what is on the screen, now and after every reconnect. */
  watch(message) {
    this.#watch = message;
    if (this.#opened) this.#send(message);
  }

  ack(seq) {
    this.#send({ t: "ack", seq });
  }

  /** The tab was shown or hidden. */
  show(visible) {
    this.#visible = visible;
    if (this.#socket?.readyState === WebSocket.OPEN) this.#send({ t: "visible", visible });
    else if (visible && !this.#ended) this.retry();
  }

  /** Try again at once: the network or the tab came back. */
  retry() {
    if (this.#ended || this.#socket !== null) return;
    this.#tries = 0;
    this.open();
  }

  /** Open another connection at once: the machine slept, and the server may have given up this one. */
  openAnew() {
    this.#drop();
    this.retry();
  }

  /** Give up a connection that has been silent for too long. Call it about once a second. */
  check() {
    if (this.#socket === null || this.#ended) return;
    const limit = this.#visible ? DEAD_AFTER : DEAD_AFTER_HIDDEN;
    if (performance.now() - this.#heard > limit) {
      this.#drop();
      this.#again(this.#opened);
    }
  }

  /** Try no further, until it is opened anew. */
  end(state) {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#drop();
    this.#handlers.state(state);
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #receive(message) {
    this.#heard = performance.now();
    switch (message.t) {
      case "hello":
        this.#greeted(message);
        return;
      case "error":
        this.#handlers.refused(message);
        return;
      default:
    }
    const missed = message.seq !== this.#seq + 1;
    this.#seq = message.seq;
    this.#tries = 0;
    if (missed && !message.full) this.#send({ t: "resync" });
    if (message.t === "frame" || message.t === "wall") {
      this.#handlers.frame(message);
    } else if (message.t === "beat") {
      this.ack(message.seq);
      this.#handlers.beat(message);
    } else if (message.t === "store") {
      this.ack(message.seq);
      this.#handlers.trouble({ ...message, message: inLanguage(message.message, message.said) });
    }
  }

  #greeted(message) {
    this.#opened = true;
    this.#answers = false;
    if (message.protocol !== PROTOCOL || message.release !== this.#release) {
      this.end("outdated");
      return;
    }
    this.#handlers.hello(message);
    if (!this.#visible) this.#send({ t: "visible", visible: false });
    if (this.#watch) this.#send(this.#watch);
  }

  #closed(code) {
    const opened = this.#opened;
    this.#drop();
    // Another tab that changed the password has renewed the session: this page may still be signed in.
    if (SIGNED_OUT.has(code)) this.#again(opened, true);
    else this.#again(opened);
  }

  #again(opened, doubtful = false) {
    this.#handlers.state(this.#answers ? "unopened" : "reconnecting");
    const most = this.#visible ? LAST_TRY : LAST_TRY_HIDDEN;
    const wait = Math.min(most, FIRST_TRY * 2 ** Math.min(this.#tries, 10)) * (0.5 + Math.random() / 2);
    this.#tries += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.open(), wait);
    // A handshake that fails or hangs looks like a dead server from here: ask once in a while which of the two it is.
    if (doubtful || (!opened && (this.#answers || this.#tries % 6 === 3))) this.#probe(opened);
  }

  async #probe(opened) {
    try {
      const answer = await fetch(location.href, { method: "HEAD", redirect: "manual", cache: "no-store", signal: answerSoon() });
      if (answer.type === "opaqueredirect" || answer.status === 401) this.end("signed-out");
      else if (answer.status === 403) this.end("not-allowed");
      else if (answer.status === 404 && answer.headers.has("X-Pqadmin-Wall")) this.#handlers.missing?.();
      this.#answers = answer.ok && !opened && !this.#opened;
    } catch {
      this.#answers = false; // the server is away; the next try finds out when it is back
    }
  }

  #drop() {
    const socket = this.#socket;
    if (socket === null) return;
    this.#socket = null;
    socket.onmessage = socket.onclose = null;
    socket.close();
  }
}

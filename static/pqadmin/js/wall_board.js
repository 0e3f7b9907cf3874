// @ts-check
// The tiles of a wall and their places, and the sums of the queues without one. Keeps one row a tile and no more.

import { countdown, number } from "./format.js";
import { Tile, compact, putAt, setData, setHidden, setText } from "./wall_tile.js";
import { levelsWords, tabWords, word, worstOf } from "./words.js";

function part(name) {
  return document.querySelector(`[data-part=${name}]`);
}

/** The place of each tile, from the number in each row. */
function places(layout) {
  const each = (rows) => rows.flatMap((size, index) => Array(size).fill([size, index === 0 && rows.length > 1]));
  const high = each(layout.high);
  return each(layout.wide).map(([wide, first], n) => ({
    wide,
    high: high[n][0],
    topWide: layout.stress && first,
    topHigh: layout.stress && high[n][1],
  }));
}

/** How the counted queues are. */
function standing(counts) {
  const unread = counts.unread ? word("wall-unread", { n: number(counts.unread) }) : "";
  const levels = worstOf(counts).level !== "ok" || !unread ? levelsWords(counts) : "";
  return [levels, unread].filter(Boolean).join(" · ");
}

export class Board {
  #list = document.querySelector(".tiles");
  #blank = document.getElementById("wall-tile").content.firstElementChild;
  #rest = new Rest(document.querySelector("[data-rest]"));
  #tiles = new Map();
  #until = null;
  #head = "";

  constructor() {
    for (const cell of this.#list.querySelectorAll("[data-queue-id]")) {
      this.#tiles.set(cell.dataset.queueId, new Tile(cell));
    }
  }

  /** Show a frame; `now` in ms of the server's clock. */
  show(frame, now) {
    for (const row of frame.rows) this.#tileOf(row.id).show(row, now);
    const head = JSON.stringify([frame.part, frame.counts, frame.order, frame.layout, frame.rest]);
    if (head !== this.#head) {
      this.#head = head;
      this.#arrange(frame);
      this.#say(frame);
    }
  }

  /** Bring what ages up to date. */
  tick(now) {
    for (const tile of this.#tiles.values()) tile.tick(now);
    const next = this.#until === null ? "" : word("wall-next", { left: countdown((this.#until - now) / 1000) });
    setText(part("turn"), next);
  }

  #tileOf(id) {
    let tile = this.#tiles.get(id);
    if (tile === undefined) {
      tile = new Tile(this.#blank.cloneNode(true));
      this.#tiles.set(id, tile);
    }
    return tile;
  }

  #arrange(frame) {
    const spots = places(frame.layout);
    const kept = new Set(frame.order);
    for (const [id, tile] of this.#tiles) {
      if (kept.has(id)) continue;
      tile.cell.remove();
      this.#tiles.delete(id);
    }
    let before = this.#list.firstElementChild;
    frame.order.forEach((id, n) => {
      const tile = this.#tileOf(id);
      putAt(tile.cell, spots[n]);
      if (tile.cell === before) before = before.nextElementSibling;
      else this.#list.insertBefore(tile.cell, before);
    });
    this.#rest.show(frame.rest, spots.at(-1));
    setData(this.#list, "rowsWide", String(frame.layout.wide.length));
    setData(this.#list, "rowsHigh", String(frame.layout.high.length));
    this.#list.toggleAttribute("data-stress", frame.layout.stress);
  }

  #say(frame) {
    const { counts } = frame;
    this.#until = frame.part.until;
    setText(part("name"), frame.part.name);
    setData(document.body, "density", frame.part.density);
    setText(part("queues"), counts.queues === 1 ? word("wall-one-queue") : word("wall-queues", { n: number(counts.queues) }));
    setText(part("trouble"), counts.queues === 0 ? "" : standing(counts));
    const worst = worstOf(counts).level;
    setData(part("trouble"), "worst", worst);
    setHidden(part("nothing"), counts.queues > 0);
    const mark = worst === "ok" ? "" : `${tabWords(worst, counts[worst])} · `;
    const title = `${mark}${frame.part.name} · pqadmin`;
    if (document.title !== title) document.title = title;
  }
}

class Rest {
  #cell;

  constructor(cell) {
    this.#cell = cell;
  }

  show(rest, place) {
    const cell = this.#cell;
    setHidden(cell, rest === null);
    if (rest === null) return;
    putAt(cell, place);
    setData(cell.querySelector(".tile"), "level", worstOf(rest).level.replace("ok", "rest"));
    setText(cell.querySelector("[data-field=more]"), word("wall-more", { n: number(rest.queues) }));
    setText(cell.querySelector("[data-field=rest-words]"), standing(rest));
    setText(cell.querySelector("[data-field=rest-ready]"), word("wall-ready", { n: compact(rest.ready) }));
  }
}

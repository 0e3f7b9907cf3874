// @ts-check
// Shows the processes that take from a queue: one row each, which stays the same element while its process is live.

import { moveBefore, onceLeft, setText, stay } from "./attention.js";
import { number } from "./format.js";
import { setAge, setData, setRate } from "./row.js";

/** Bring the panel up to date; `told` is `ends.consumers` of a frame. */
export function applyConsumers(told, now) {
  const panel = document.querySelector("[data-consumers]");
  if (panel === null || told === undefined) return;
  setData(panel, "consumers", told.none);
  /** @type {HTMLTableElement} */
  const table = panel.querySelector("table");
  /** @type {HTMLTemplateElement} */
  const blank = panel.querySelector("template");
  stay(table);
  if (told.none === "") setHidden(table, false);
  else onceLeft(table, () => setHidden(table, true));
  for (const note of panel.querySelectorAll("[data-none]")) setHidden(note, note.dataset.none !== told.none);
  const count = panel.querySelector("[data-part=count]");
  setText(count, number(told.count));
  setHidden(count, told.none !== "");
  setHidden(panel.querySelector("[data-part=cut]"), told.count <= told.live.length);
  const ended = panel.querySelector("[data-part=ended]");
  setHidden(ended, told.none === "" || told.ended === null);
  if (told.ended !== null) write(ended, told.ended, now);
  const body = table.tBodies[0];
  const rows = new Map([...body.rows].map((row) => [row.dataset.consumer, row]));
  const live = new Set(told.live.map((consumer) => consumer.id));
  // A row with the focus stays, marked, until the focus leaves it.
  for (const [id, row] of rows) if (!live.has(id) && onceLeft(row, () => row.remove())) row.dataset.gone = "";
  /** @param {any} row */
  const next = (row) => {
    while (row && !live.has(row.dataset.consumer)) row = row.nextElementSibling;
    return row ?? null;
  };
  let before = next(body.rows[0]);
  for (const consumer of told.live) {
    /** @type {any} */
    const row = rows.get(consumer.id) ?? blank.content.firstElementChild.cloneNode(true);
    stay(row);
    delete row.dataset.gone;
    setData(row, "consumer", consumer.id);
    write(row, consumer, now);
    if (row === before) before = next(row.nextElementSibling);
    else moveBefore(body, row, before);
  }
}

function write(element, consumer, now) {
  for (const part of element.querySelectorAll("[data-part]")) {
    const value = consumer[part.dataset.part];
    switch (part.dataset.part) {
      case "since":
      case "last":
      case "heard":
        setAge(part, value, now);
        break;
      case "rate":
        setRate(part, value);
        break;
      case "waiting":
        setText(part, number(value));
        break;
      case "holds":
        setText(part, number(value));
        stay(part);
        if (value === 0) onceLeft(part, () => part.removeAttribute("href")); // which ends the focus
        else if (part.getAttribute("href") !== consumer.held) part.href = consumer.held;
        break;
      default:
        setText(part, String(value));
        if (part.localName === "bdi") part.title = part.textContent; // a long one is cut
    }
  }
}

function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

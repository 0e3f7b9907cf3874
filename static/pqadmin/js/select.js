// @ts-check
// Choosing items of a list: how many are chosen, all of the page at once, ranges with Shift.
// Without a script the boxes, the buttons and the link “Select page” do the same by themselves.

import { number } from "./format.js";

const BOXES = "input[type=checkbox][name=id]";
let last = null;

/** Make the page's lists of items choosable, those too that are swapped in later. */
export function startSelections() {
  document.addEventListener("change", (event) => {
    const list = event.target.closest?.("[data-selection]");
    if (list && event.target.matches(BOXES)) {
      show(list);
      offerActs(list, event.target);
    }
  });
  document.addEventListener("click", (event) => {
    const list = event.target.closest?.("[data-selection]");
    if (!list) return;
    if (event.target.closest("[data-select-page]")) {
      event.preventDefault();
      /** @type {NodeListOf<HTMLInputElement>} */
      const found = list.querySelectorAll(BOXES);
      const boxes = [...found];
      const all = boxes.every((box) => box.checked);
      for (const box of boxes) box.checked = !all;
      show(list);
    } else if (event.target.matches(BOXES)) {
      if (event.shiftKey && last !== null) range(list, last, event.target);
      last = event.target;
    }
  });
  document.addEventListener("htmx:after:swap", showSelections);
  addEventListener("pageshow", showSelections);
  showSelections();
}

/** Say of every list how many of its items are chosen. */
export function showSelections() {
  for (const list of document.querySelectorAll("[data-selection]")) show(list);
}

/** Put the acts behind a chosen box, or what has the focus in its row, where Tab leads next: their bar is above the list. */
function offerActs(list, box) {
  for (const old of list.querySelectorAll(".row-acts")) old.remove();
  if (!box.checked) return;
  const active = document.activeElement?.closest("tr") === box.closest("tr") ? document.activeElement : box;
  const acts = document.createElement("span");
  acts.className = "row-acts";
  acts.role = "group";
  acts.ariaLabel = list.querySelector(".actbar").ariaLabel;
  for (const button of list.querySelectorAll(".actbar button[name=act]")) acts.append(button.cloneNode(true));
  active.closest("th, td").append(acts);
}

function range(list, from, to) {
  const boxes = [...list.querySelectorAll(BOXES)];
  const [one, other] = [boxes.indexOf(from), boxes.indexOf(to)];
  if (one < 0 || other < 0) return;
  for (const box of boxes.slice(Math.min(one, other), Math.max(one, other) + 1)) box.checked = to.checked;
  show(list);
}

function show(list) {
  const boxes = [...list.querySelectorAll(BOXES)];
  const chosen = boxes.filter((box) => box.checked).length;
  const count = list.querySelector("[data-chosen]");
  if (count !== null) {
    count.hidden = chosen === 0;
    count.querySelector("b").textContent = number(chosen);
  }
  // A button that is off or away has no focus: it goes to what chooses anew.
  if (chosen === 0 && list.contains(document.activeElement?.closest(".row-acts, .actbar button[name=act]") ?? null)) {
    list.querySelector("[data-select-page]")?.focus({ preventScroll: true });
  }
  for (const button of list.querySelectorAll(".actbar button[name=act]")) button.disabled = chosen === 0;
  if (chosen === 0) list.querySelector(".row-acts")?.remove();
  const link = list.querySelector("[data-select-page]");
  if (link !== null) {
    const words = boxes.length > 0 && chosen === boxes.length ? link.dataset.none : link.dataset.all;
    if (link.textContent !== words) link.textContent = words;
  }
}

// @ts-check
// A queue's page with an address that is of another queue by now, or of none: it says so, and asks and acts no more.

import { word } from "./words.js";

/** What asks or acts by the queue's name: all but the dialogs, where typed text can still be copied. */
const PARTS = ":scope > :not(dialog)";

/** Whether a row shows that the address of this page is no longer that of its queue; then the page says so. */
export function isOther(row) {
  const section = document.querySelector("section[data-queue-id]");
  if (row === undefined || section === null) return false;
  const same = section.dataset.queueId === row.id;
  if (same && section.dataset.queue === row.name) return false;
  section.dataset.other = "";
  for (const part of section.querySelectorAll(PARTS)) part.inert = true;
  for (const items of section.querySelectorAll("[data-age-url]")) delete items.dataset.ageUrl;
  document.addEventListener("htmx:config:request", refuse);
  if (same && isOurs(section)) return true; // its answer leads to the new address, or says why not
  document.addEventListener("submit", refuse, { capture: true });
  const notice = noticeOf(same ? word("other-name") : word("other-queue"), row);
  const dialog = section.querySelector("dialog:is(:modal, :popover-open)");
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = section.querySelectorAll("dialog button:not([data-close])");
  for (const button of buttons) button.disabled = true;
  if (dialog !== null) dialog.firstElementChild.prepend(notice.cloneNode(true)); // it may cover the page
  section.before(notice);
  return true;
}

/** Whether this page renames the queue itself. */
function isOurs(section) {
  return "leaves" in document.body.dataset || section.querySelector("form[action$='/rename/'][aria-busy]") !== null;
}

function refuse(event) {
  if (event.target.closest?.("[data-other]")) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

function noticeOf(text, row) {
  const [notice, said, link, more] = ["div", "p", "a", "p"].map((name) => document.createElement(name));
  notice.className = "notice warn";
  notice.dataset.part = "other-queue";
  notice.role = "alert";
  Object.assign(link, { className: "link", href: row.url, textContent: row.shown });
  said.append(text, " ", link);
  more.textContent = word("other-acts");
  const box = document.createElement("div");
  box.append(said, more);
  notice.append(box);
  return notice;
}

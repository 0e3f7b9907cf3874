// @ts-check
// The side sheet of an act, and the drawer of a push: beside the page that they were opened on, which stays as it is.
// They are not modal, so that the list can be read and chosen from; on a phone they cover the page, and are.
// Without scripts their links and forms lead to pages of their own.

import { HEADERS, isSignedOut, loggedOut, natively, notAnswered, renew } from "./forms.js";
import { followJob } from "./progress.js";
import { word } from "./words.js";

/** What a proxy answers for a site that is away. */
const AWAY = [502, 503, 504];
/** Where a sheet covers the page. */
const NARROW = matchMedia("(max-width: 45rem)");
/** What another page tells is wanted here: other answers to scripts leave it to the page that a reader sees. */
const TOLD = { Accept: "text/html", "HX-Target": "div#toasts" };

/** @type {HTMLElement | null} */
let opener = null;
/** The number of the newest request for a form: an older answer comes too late. */
let asked = 0;
let changed = (/** @type {string[]} */ _ids) => {};

/** Open acts in the page's sheet; `done` is called when one has changed these items. */
export function startSheets(done) {
  changed = done;
  document.addEventListener("click", clicked);
  document.addEventListener("submit", submitted);
  document.addEventListener("keydown", escaped);
  document.addEventListener("focusin", (event) => shutMenus(event.target));
  // Escape closes a modal one by itself.
  for (const dialog of dialogs()) dialog.addEventListener("close", () => left(dialog));
}

function dialogs() {
  /** @type {NodeListOf<HTMLDialogElement>} */
  const found = document.querySelectorAll("dialog.side");
  return [...found];
}

/** What a form sends by one of its buttons. */
function sent(form, submitter) {
  return new (/** @type {any} */ (FormData))(form, submitter);
}

/** Shut the menus that do not hold this element: an open one would cover what has the focus. */
function shutMenus(within) {
  for (const menu of document.querySelectorAll("details.drop[open]")) {
    if (!menu.contains(within)) menu.removeAttribute("open");
  }
}

function clicked(event) {
  shutMenus(event.target.closest?.("a") ? null : event.target);
  const target = event.target.closest?.("a, button");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return;
  const dialog = target.closest("dialog.side");
  const drawer = /** @type {HTMLDialogElement | null} */ (document.getElementById("drawer"));
  if (target.matches("[data-dismiss]")) dismiss(target.closest(".toast"));
  else if (target.matches("[data-close]")) close(dialog);
  else if (target.matches("a[data-sheet]")) load(target.href, target);
  else if (target.matches("a[data-drawer]") && drawer !== null) open(drawer, target);
  else if (dialog !== null && target.matches("a") && leadsHere(target)) close(dialog);
  else return;
  event.preventDefault();
}

/** Whether a link of a sheet, as Cancel, leads to the page that is below it. */
function leadsHere(link) {
  return isHere(link) && ["", location.search].includes(link.search);
}

/** Whether an address is of this page, however its characters are escaped. */
function isHere({ pathname }) {
  return pathname === location.pathname || unescaped(pathname) === unescaped(location.pathname);
}

function unescaped(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // bytes of no text
  }
}

function submitted(event) {
  const form = event.target;
  if (event.defaultPrevented) return;
  if (form.matches("form[data-sheet]")) {
    event.preventDefault();
    const chosen = new URLSearchParams(sent(form, event.submitter));
    load(`${form.getAttribute("action")}?${chosen}`, event.submitter);
  } else if (form.method === "post" && form.closest("dialog.side, .toasts, #items") && document.getElementById("items")) {
    event.preventDefault();
    send(form, event.submitter);
  }
}

function escaped(event) {
  const drop = event.key === "Escape" ? event.target.closest?.("details.drop[open]") : null;
  if (drop) {
    drop.removeAttribute("open");
    drop.querySelector("summary").focus();
    return;
  }
  const dialog = document.querySelector("dialog.side:popover-open");
  if (event.key !== "Escape" || event.defaultPrevented || dialog === null) return;
  if (document.querySelector("dialog:modal, [popover]:popover-open:not(dialog)")) return; // that one is closed first
  event.preventDefault();
  close(dialog);
}

/** Bring the form of an act; where there is none, go to its page, which says why. */
async function load(address, from) {
  const mine = (asked += 1);
  let part = null;
  let redirect = null;
  let failed = false;
  try {
    const answer = await fetch(address, { headers: HEADERS, cache: "no-store" });
    redirect = answer.headers.get("HX-Redirect");
    part = partOf(await answer.text());
    failed = part === null && AWAY.includes(answer.status);
  } catch {
    failed = true;
  }
  if (mine !== asked) return;
  if (failed) return tell(word("sheet-failed")); // to go to its page would lose this one, with its last numbers
  const sheet = /** @type {HTMLDialogElement | null} */ (document.getElementById("sheet"));
  if (part === null || sheet === null) return leave(redirect ?? address);
  fill(sheet, part);
  open(sheet, from);
}

/** Show a message in the place of the last one, on the page or in the sheet that covers it: a fault, or what is at an address. */
function tell(text, address = "") {
  const [toast, said, button] = ["div", address ? "a" : "span", "button"].map((name) => document.createElement(name));
  toast.className = address ? "toast" : "toast bad";
  if (address) Object.assign(said, { className: "link", href: address });
  said.textContent = text;
  toast.append(said);
  const covering = document.querySelector("dialog.side:modal")?.firstElementChild;
  if (covering) {
    covering.querySelector(":scope > .toast")?.remove();
    toast.role = "alert";
    covering.prepend(toast);
    toast.scrollIntoView({ block: "nearest" });
    return;
  }
  const { ariaLabel } = document.querySelector("dialog.side [data-close]");
  Object.assign(button, { type: "button", className: "small", textContent: "×", ariaLabel });
  button.dataset.dismiss = "";
  toast.append(button);
  showToasts([toast]);
}

/** Show toasts in the place of those that are there; the focus is not lost with one of these. */
function showToasts(fresh) {
  const toasts = document.getElementById("toasts");
  const focused = toasts.contains(document.activeElement);
  toasts.classList.add("float");
  toasts.replaceChildren(...fresh);
  if (focused) focusBack();
}

function partOf(text) {
  return new DOMParser().parseFromString(text, "text/html").querySelector("[data-sheet-part]");
}

/** Let a part come into a dialog, under its heading. */
function fill(dialog, part) {
  const body = dialog.firstElementChild;
  body.replaceChildren(...document.adoptNode(part).childNodes);
  window.htmx?.process?.(body);
  const heading = body.querySelector("h1, h2");
  if (heading?.id) dialog.setAttribute("aria-labelledby", heading.id);
}

function open(dialog, from) {
  for (const other of dialogs()) if (other !== dialog) hide(other);
  if (!dialog.open && !dialog.matches(":popover-open")) {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    opener = focused !== null && focused.tabIndex >= 0 ? focused : from;
    if (NARROW.matches) dialog.showModal();
    else dialog.showPopover();
  }
  const heading = dialog.querySelector("h1, h2");
  heading?.setAttribute("tabindex", "-1");
  const first = dialog.id === "drawer" ? "textarea" : "[aria-invalid=true], [autofocus]";
  (dialog.querySelector(first) ?? heading)?.focus();
}

/** The sheet or the drawer that is shown; null for none. */
function shownDialog() {
  return document.querySelector("dialog.side:is(:modal, :popover-open)");
}

function hide(dialog) {
  if (dialog.open) dialog.close();
  else if (dialog.matches(":popover-open")) dialog.hidePopover();
}

function close(dialog) {
  const modal = dialog.open;
  hide(dialog);
  if (!modal) left(dialog);
}

/** The focus goes back to where it came from; what was typed into the drawer stays there. */
function left(dialog) {
  asked += 1;
  if (dialog.id === "sheet" && dialog.querySelector("[data-refresh]") === null) dialog.firstElementChild.replaceChildren();
  focusBack();
}

/** Put the focus where it came from, or near to it. */
function focusBack() {
  const menu = opener?.closest("details")?.querySelector("summary");
  const places = [opener, menu, document.querySelector("#items [data-select-page]"), document.getElementById("main")];
  const usable = (place) => place?.isConnected && !place.disabled && place.checkVisibility() && !place.closest("[inert]");
  places.find(usable)?.focus({ preventScroll: true });
}

function dismiss(toast) {
  const focused = toast.contains(document.activeElement);
  toast.remove();
  if (focused) focusBack();
}

/** Send a form from here: what it did is told beside the list, why it was refused in its sheet. */
async function send(form, submitter) {
  if (form.ariaBusy) return;
  const free = occupy(form);
  try {
    await deliver(form, submitter);
  } finally {
    free();
  }
}

/** What is sent takes no text: what is typed now would be lost with the answer. */
function occupy(form) {
  const fields = [...form.elements].filter((field) => "readOnly" in field && !field.readOnly);
  form.ariaBusy = "true";
  for (const field of fields) field.readOnly = true;
  return () => {
    form.ariaBusy = null;
    for (const field of fields) field.readOnly = false;
  };
}

async function deliver(form, submitter) {
  const dialog = form.closest("dialog.side");
  const [number, before] = [asked, shownDialog()];
  /** Whether the reader has gone on to another sheet, or closed this one: a late answer does not take its place. */
  const isLate = () => asked !== number || shownDialog() !== before;
  let answer;
  let text = "";
  try {
    if (isSignedOut(form)) await renew(form, form.getAttribute("action"));
    const body = sent(form, submitter);
    answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: HEADERS, redirect: "manual" });
    text = await answer.text();
  } catch {
    return isLate() ? tell(word("form-failed")) : notAnswered(form);
  }
  const to = answer.headers.get("HX-Redirect");
  if (answer.status === 401 && isLate()) return tell(word("form-signed-out"));
  if (answer.status === 401 && dialog !== null) return loggedOut(form, to);
  if (to !== null) return done(form, dialog, new URL(to, location.href), isLate);
  const part = partOf(text);
  if (isLate()) return tell(part?.querySelector("[role=alert]")?.textContent ?? word("form-failed"));
  const sheet = /** @type {HTMLDialogElement | null} */ (dialog ?? document.getElementById("sheet"));
  if (sheet === null || part === null) return natively(form, submitter); // another page answers: to log in, to arm
  fill(sheet, part);
  open(sheet, dialog === null ? submitter : opener);
}

/** Stay on this page if the answer leads to it or to a bulk job, and tell what it tells. */
async function done(form, dialog, to, isLate) {
  const ids = idsOf(form);
  /** @type {HTMLAnchorElement | null} */
  const jobs = document.querySelector("a:has([data-running-jobs])");
  const stays = isHere(to) || (jobs !== null && to.pathname.startsWith(jobs.pathname));
  const page = stays ? await fetchPage(to) : null;
  const told = page?.getElementById("toasts");
  if (!told) return isLate() ? changed(ids) : leave(to);
  const untold = told.childElementCount === 0;
  showToasts(document.adoptNode(told).childNodes);
  const popped = to.searchParams.get("taken") !== new URLSearchParams(location.search).get("taken");
  const shown = page.querySelector(popped ? ".taken, #jobs" : "#jobs");
  const push = page.getElementById("push");
  const late = isLate();
  if (dialog?.id === "drawer" && push !== null) {
    fill(dialog, push.parentElement);
    if (late && shownDialog() === dialog) open(dialog, opener);
  }
  if (late && shown !== null && untold) tell(shown.querySelector("h1, h2").textContent, to.href);
  if (late) return changed(ids);
  if (shown !== null) {
    const sheet = dialog ?? /** @type {HTMLDialogElement} */ (document.getElementById("sheet"));
    const part = document.createElement("div");
    part.append(shown);
    fill(sheet, part);
    open(sheet, opener);
    followJob();
  } else if (dialog !== null) close(dialog);
  changed(ids);
}

/** The items that a form is about. */
function idsOf(form) {
  const picked = form.elements.namedItem("picked")?.value ?? "";
  return picked.split(" ").map((each) => each.slice(0, each.lastIndexOf(":")));
}

/** Go to another page; where this one is being left already, as requests that end with it tell, that counts. */
function leave(address) {
  document.body.dataset.leaves = "";
  setTimeout(() => location.assign(address), 50);
}

async function fetchPage(address) {
  try {
    const answer = await fetch(address, { headers: TOLD, cache: "no-store" });
    if (!answer.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return null;
  }
}

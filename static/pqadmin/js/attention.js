// @ts-check
// What has the reader's attention is left alone by live updates: the focus, the pointer, text that is selected or typed.

/** Milliseconds for which selected text is kept from changing: a person that returns must find no old number. */
const SELECTED_FOR = 60_000;
/** Milliseconds in which what came in another's place takes no press: it was meant for the other. */
const SETTLES_IN = 1000;
const TYPED = "input:not([type=hidden], [type=checkbox], [type=radio]), textarea";

/** The selection, while there is one that keeps text from changing. */
let selected = null;
let timer = 0;
/** Texts that wait until their element is no longer selected. */
const held = new Map();
/** What is to be done with elements once the focus has left them. */
const leaving = new Map();

document.addEventListener("selectionchange", () => {
  const selection = document.getSelection();
  clearTimeout(timer);
  selected = selection === null || selection.isCollapsed || selection.rangeCount === 0 ? null : selection.getRangeAt(0);
  if (selected !== null) timer = setTimeout(letGo, SELECTED_FOR);
  catchUp();
});
// The next element has the focus only after the event.
document.addEventListener("focusout", () => leaving.size > 0 && setTimeout(leave));

function letGo() {
  selected = null;
  catchUp();
}

function catchUp() {
  for (const [element, text] of held) {
    if (isSelected(element)) continue;
    held.delete(element);
    element.textContent = text;
  }
}

function leave() {
  for (const [element, act] of leaving) {
    if (hasFocus(element)) continue;
    leaving.delete(element);
    act();
  }
}

/** Whether the selection is text of this element alone: a larger one is of the page, and holds nothing back. */
function isSelected(element) {
  return selected !== null && element.contains(selected.commonAncestorContainer);
}

function hasFocus(element) {
  return element.contains(document.activeElement);
}

/** Whether the reader is in this part of the page, or points at its table: it is not replaced under them. */
export function isAttended(element) {
  if (element === null) return false;
  const reads = selected !== null && element.contains(selected.startContainer);
  return reads || hasFocus(element) || element.querySelector("table:hover") !== null;
}

/** Write text, if it differs; into selected text once it is let go. */
export function setText(element, text) {
  if (held.size > 0) held.delete(element);
  if (element.textContent === text) return;
  if (isSelected(element)) held.set(element, text);
  else element.textContent = text;
}

/** Do what takes an element away: now, or once the focus has left it. Return whether it waits. */
export function onceLeft(element, act) {
  if (hasFocus(element)) {
    leaving.set(element, act);
    return true;
  }
  act();
  return false;
}

/** What was to be done with an element is no longer wanted. */
export function stay(element) {
  leaving.delete(element);
}

/**
 * Something that acts at once came by itself, maybe under a pointer that is about to press: no press meets it for a moment.
 * A key needs no such thing, as the focus never goes to another control by itself.
 */
export function settle(element) {
  clearTimeout(Number(element.dataset.settles));
  element.dataset.settles = String(setTimeout(() => delete element.dataset.settles, SETTLES_IN));
}

/** Put an element before another of the same list, or last; the focus stays in it. */
export function moveBefore(list, element, before) {
  const focused = hasFocus(element) ? /** @type {HTMLElement} */ (document.activeElement) : null;
  if (element.isConnected && list.moveBefore) list.moveBefore(element, before);
  else list.insertBefore(element, before);
  if (focused !== null && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

/** Let a newer element come in the place of another: what was typed there goes over, the focus to the same control. */
export function replace(old, fresh) {
  const focused = hasFocus(old) ? document.activeElement : null;
  const typed = [...old.querySelectorAll(TYPED)].filter((field) => field.value !== field.defaultValue || field === focused);
  old.replaceWith(document.adoptNode(fresh));
  for (const field of typed) {
    const next = same(fresh, field);
    if (next === null) continue;
    next.value = field.value;
    if (field === focused && field.selectionStart !== null) next.setSelectionRange(field.selectionStart, field.selectionEnd);
  }
  if (focused === null) return;
  // Never to another control: a key that is on its way must not press what the reader did not mean.
  (same(fresh, focused) ?? document.getElementById("main"))?.focus({ preventScroll: true });
}

function same(root, control) {
  const found = [...root.querySelectorAll(control.localName)];
  return found.find((each) => name(each) === name(control)) ?? null;
}

/** What makes a control the same in a newer page: its id, else where it leads, or which button or field of which form it is. */
function name(control) {
  if (control.id) return control.id;
  const value = control.matches(TYPED) ? "" : control.value;
  return [control.getAttribute("href"), control.name, value, control.form?.getAttribute("action")].join(" ");
}

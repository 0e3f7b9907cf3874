// @ts-check
// The palette: Ctrl K or ⌘ K opens it, arrows move through what is found, Enter goes there. Without a script it is a page.

const TICKED = "input[type=checkbox][name=id]:checked";
const dialog = document.getElementById("palette");
/** The field in which Enter came before the answer to its text, and that text. */
let wanted = null;

/** Make the palette open by its key and by [data-palette-open]. */
export function startPalette() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      if (dialog === null) return;
      event.preventDefault();
      if (dialog.open) dialog.close();
      else open();
      return;
    }
    if (event.target.closest?.(".palette")) move(event);
  });
  mark();
  document.addEventListener("htmx:after:swap", arrive);
  document.addEventListener("htmx:after:init", ({ target }) => {
    // The keys may come before htmx handles them.
    if (dialog?.open && target.matches("[data-palette-field]")) window.htmx.trigger(target, "opened");
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("#palette a[data-press]")) act(event);
    const link = event.target.closest?.("[data-palette-open]");
    if (link && dialog !== null && !event.ctrlKey && !event.metaKey && event.button === 0) {
      event.preventDefault();
      open();
    } else if (event.target === dialog) dialog.close();
  });
}

function open() {
  const field = dialog.querySelector("[data-palette-field]");
  wanted = null;
  if (!dialog.open) dialog.showModal();
  const list = selection();
  field.form.elements.state.value = list?.elements.state.value ?? "";
  field.form.elements.selected.value = list?.querySelectorAll(TICKED).length || "";
  // What it found for another selection is no answer: Enter waits for one.
  delete dialog.querySelector("#palette-found").dataset.asked;
  field.select();
  field.focus();
  window.htmx?.trigger(field, "opened");
}

/**
 * The list with rows that can be ticked, if the page has one.
 * @returns {HTMLFormElement | null}
 */
function selection() {
  return document.querySelector("form[data-selection]");
}

/** An act on what is ticked, or a choice of the menu: press its button. */
function act(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return; // its page, elsewhere
  const { press } = event.target.closest("a[data-press]").dataset;
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = document.querySelectorAll("form[data-selection] button[name=act], #me button[name=theme]");
  const button = [...buttons].find(({ name, value }) => press === (name === "act" ? value : `${name}=${value}`));
  if (button === undefined || button.disabled) return;
  event.preventDefault();
  dialog.close();
  button.focus(); // from here on the keys are where a press of the button leaves them
  button.click();
}

function move(event) {
  if (event.isComposing) return; // the key is the input method's
  const holder = event.target.closest(".palette");
  const field = holder.querySelector("[data-palette-field]");
  if (field === null) return;
  const links = [...holder.querySelectorAll("#palette-found a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") focus(event, links[Math.min(at + 1, links.length - 1)]);
  else if (event.key === "ArrowUp") focus(event, at > 0 ? links[at - 1] : field);
  else if (event.key === "Escape" && holder === dialog) {
    event.preventDefault(); // a search field would empty itself first
    dialog.close();
  } else if (event.key === "Enter" && event.target === field) enter(event, field, holder.querySelector("#palette-found"));
  else if (at >= 0 && event.key.length === 1 && !event.ctrlKey && !event.metaKey && event.key !== " ") field.focus();
}

/** Enter: go to the first that was found for what the field says. A second Enter does not wait for it: it opens the page. */
function enter(event, field, found) {
  const link = found.querySelector("a");
  if (found.dataset.asked === field.value) {
    if (link === null) return;
    event.preventDefault();
    link.click();
  } else if (window.htmx && (wanted?.text !== field.value || event.repeat)) {
    event.preventDefault();
    wanted = { field, text: field.value };
  }
}

/** An answer came: go, if it is the one that Enter waits for. */
function arrive() {
  mark();
  for (const link of dialog?.querySelectorAll("a[data-press]:not([data-press*='='])") ?? []) {
    const list = selection();
    if (list !== null) link.search = new URLSearchParams([...new FormData(list), ["act", link.dataset.press]]);
  }
  if (wanted === null) return;
  const { field, text } = wanted;
  const holder = field.closest(".palette");
  const found = holder.querySelector("#palette-found");
  if (field.value !== text || (holder === dialog && !dialog.open)) wanted = null;
  else if (found.dataset.asked === text) {
    wanted = null;
    found.querySelector("a")?.click();
  }
}

/** Mark the first entry, which Enter takes, for the eye and for screen readers. */
function mark() {
  const field = document.querySelector("[data-palette-field]");
  const link = document.querySelector("#palette-found a");
  if (field === null) return;
  if (link === null) field.removeAttribute("aria-activedescendant");
  else {
    link.id = "palette-first";
    field.setAttribute("aria-activedescendant", link.id);
  }
}

function focus(event, element) {
  event.preventDefault();
  element?.focus();
}

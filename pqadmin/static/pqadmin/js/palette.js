// The palette: Ctrl K or ⌘ K opens it, arrows move through what is found, Enter goes there. Without a script it is a page.

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
  document.addEventListener("htmx:after:swap", arrive);
  document.addEventListener("click", (event) => {
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
  field.select();
  field.focus();
  window.htmx?.trigger(field, "input");
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

function focus(event, element) {
  event.preventDefault();
  element?.focus();
}

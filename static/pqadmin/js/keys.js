// @ts-check
// Keys of one letter. They do nothing while a person types, in a dialog, or when they are turned off.

const OFF = "pqadmin-single-keys-off";
const GO = { q: "queues", j: "jobs", a: "audit", t: "trash" };
/** Milliseconds in which the second key of a pair has to come. */
const PAIR = 1500;

let gone = Number.NEGATIVE_INFINITY;

/** Listen for keys. */
export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target) || off()) return;
    if (event.target.closest?.("dialog")) return;
    if (act(event.key)) event.preventDefault();
  });
  offerChoice(document);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-keys-open]");
    const sheet = document.getElementById("keys");
    if (link && sheet !== null && !event.ctrlKey && !event.metaKey && event.button === 0) {
      event.preventDefault();
      open();
    } else if (sheet !== null && event.target === sheet) sheet.close();
  });
}

/** Let single keys be turned off where the sheet is shown. */
function offerChoice(within) {
  for (const choice of within.querySelectorAll("[data-single-keys]")) {
    const box = choice.querySelector("input");
    choice.hidden = false;
    box.checked = !off();
    box.addEventListener("change", () => {
      try {
        if (box.checked) localStorage.removeItem(OFF);
        else localStorage.setItem(OFF, "1");
      } catch {
        box.checked = true; // nothing is kept in this browser: the keys stay on
      }
    });
  }
}

/** Open the sheet, which comes when it is asked for the first time; where that fails, its page is gone to. */
async function open() {
  const sheet = document.getElementById("keys");
  if (sheet === null) return;
  if (sheet.childElementCount === 0) {
    try {
      const answer = await fetch(sheet.dataset.url, { headers: { "HX-Target": "dialog#keys" }, cache: "no-store" });
      if (!answer.ok || answer.redirected) throw new Error("no sheet");
      sheet.innerHTML = await answer.text();
      offerChoice(sheet);
    } catch {
      location.assign(sheet.dataset.url);
      return;
    }
  }
  if (!sheet.open) sheet.showModal();
}

function off() {
  try {
    return localStorage.getItem(OFF) !== null;
  } catch {
    return false;
  }
}

function typing(element) {
  if (element.isContentEditable || element.matches?.("textarea, select")) return true;
  return element.matches?.("input:not([type=checkbox], [type=radio], [type=submit], [type=button])") ?? false;
}

/** Do what a key stands for; return whether it stands for anything. */
function act(key) {
  const second = performance.now() - gone < PAIR;
  gone = Number.NEGATIVE_INFINITY;
  if (second && Object.hasOwn(GO, key.toLowerCase())) return press(`[data-key-go=${GO[key.toLowerCase()]}]`);
  switch (key) {
    case "g":
      gone = performance.now();
      return true;
    case "?":
      open();
      return true;
    case "/":
      return focus(first("main input[type=search]") ?? first("main form[role=search] input:not([type=hidden])"));
    case "p":
      return press("main a[href$='/push/'].primary");
    case "u":
      return press("#reorder:not([hidden])");
    case "j":
      return step(1);
    case "k":
      return step(-1);
    case "x": {
      const box = document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]");
      box?.click();
      return box !== null && box !== undefined;
    }
    default:
      return false;
  }
}

function first(selector) {
  return document.querySelector(selector);
}

function press(selector) {
  const link = first(selector);
  link?.click();
  return link !== null;
}

function focus(element) {
  element?.focus();
  element?.select?.();
  return element !== null;
}

/** Move the focus to the link of the next or previous row. */
function step(by) {
  const shown = [...document.querySelectorAll("main table tbody tr")].filter((row) => row.checkVisibility());
  const rows = shown.filter((row) => row.querySelector("a[href]"));
  if (rows.length === 0) return false;
  const at = rows.indexOf(document.activeElement?.closest("tr"));
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
  const link = rows[next].querySelector("th a[href], td a[href]");
  link.focus();
  link.scrollIntoView({ block: "nearest" });
  return true;
}

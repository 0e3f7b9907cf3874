// @ts-check
// Copy buttons: <button data-copy-url="…" data-copied="Copied" hidden>. They copy what the address answers, as text;
// with data-copy-from="SELECTOR" the text of that element. Without a script, or where the browser gives no clipboard (a page that is not secure), they stay hidden.

/** Milliseconds that the button says so. */
const SAID_FOR = 2000;

/** Show the page's copy buttons and make them work. */
export function showCopyButtons() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy-url], button[data-copy-from]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

async function copy(button) {
  const label = button.lastChild;
  const words = label.textContent;
  if (words === button.dataset.copied) return;
  try {
    const text = await textOf(button);
    if (text === null) {
      location.reload(); // the item was taken meanwhile, or the login is over: the page says which
      return;
    }
    await navigator.clipboard.writeText(text);
  } catch {
    button.hidden = true; // refused by the browser; the download beside it still works
    return;
  }
  label.textContent = button.dataset.copied;
  setTimeout(() => {
    label.textContent = words;
  }, SAID_FOR);
}

async function textOf(button) {
  if (button.dataset.copyFrom) return document.querySelector(button.dataset.copyFrom)?.textContent.trim() ?? null;
  const answer = await fetch(button.dataset.copyUrl, { cache: "no-store" });
  return answer.ok ? answer.text() : null;
}

// @ts-check
// The reader's own time zone, as the browser knows it: pages are written in it unless another one is chosen.

import { readersZone } from "./format.js";

/** Offer the browser's time zone wherever the page has a button for it. */
export function offerOwnZone() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!own) return;
  const told = `pqadmin_browser_zone=${own}`;
  if (!document.cookie.split("; ").includes(told)) document.cookie = `${told}; Path=/; Max-Age=31536000; SameSite=Lax`;
  if (own === "UTC") return;
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = document.querySelectorAll("[data-own-zone]");
  for (const button of buttons) {
    button.value = button.textContent = own;
    button.hidden = false;
    if (own === readersZone()) button.ariaPressed = "true";
  }
}

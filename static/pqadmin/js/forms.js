// @ts-check
// What was typed into a form is not lost where the session has ended meanwhile: the form stays, and says so.
// Without scripts the login page says that nothing was changed.

import { word } from "./words.js";

/** An answer is wanted as a part of this page. */
export const HEADERS = { Accept: "text/html", "HX-Request": "true", "HX-Target": "div#act" };

/** What a form says above its fields. */
const OWN_NOTICE = ":scope > .notice.bad";
/** Forms that are to be sent again after a login, which makes their tokens against forgery invalid. */
const signedOut = new WeakSet();
/** Forms of pages that are being sent, as the session goes on. */
const sure = new WeakSet();

/** Send the forms of pages only while the session goes on; those of sheets are sent by `startSheets`. */
export function startForms() {
  document.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (event.defaultPrevented || sure.delete(form) || !form.matches("main form.body[method=post]")) return;
    event.preventDefault();
    sendPage(form, event.submitter);
  });
  document.addEventListener("htmx:before:response", answered);
}

/** An answer to htmx leads elsewhere only after a click: after a poll or a preview, what is typed here would be lost. */
function answered(/** @type {CustomEvent} */ event) {
  const { ctx } = event.detail;
  const { status } = ctx.response;
  const to = ctx.hx.redirect;
  const form = ctx.sourceElement.closest("form[method=post], .palette form");
  if (status === 401 && to !== undefined && form !== null) {
    event.preventDefault();
    if (!signedOut.has(form)) loggedOut(form, to);
  } else if (to !== undefined) {
    if (!["click", "toggle"].includes(ctx.sourceEvent?.type)) event.preventDefault();
  } else if (form !== null && isSignedOut(form)) {
    if (status === 403) askAgain(form, ctx.sourceEvent);
    else form.querySelector(OWN_NOTICE)?.remove();
  }
}

/** Ask once more after a login beside this page, which made the form's token invalid. */
async function askAgain(form, { target, type }) {
  await renew(form, form.getAttribute("action") ?? location.href);
  target.dispatchEvent(new Event(type, { bubbles: true }));
}

async function sendPage(form, submitter) {
  if (form.ariaBusy) return;
  form.ariaBusy = "true";
  let answer;
  try {
    answer = await renew(form, location.href);
  } catch {
    return notAnswered(form);
  } finally {
    form.ariaBusy = null;
  }
  if (answer.status === 401) return loggedOut(form, answer.headers.get("HX-Redirect"));
  sure.add(form);
  form.requestSubmit(submitter);
}

/** Give a form the token of the page that an address has now. */
export async function renew(form, address) {
  const answer = await fetch(address, { headers: HEADERS, cache: "no-store" });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  /** @type {HTMLInputElement | null} */
  const fresh = page.querySelector("[name=csrfmiddlewaretoken]");
  if (fresh) form.elements.csrfmiddlewaretoken.value = fresh.value;
  if (fresh) form.querySelector(OWN_NOTICE)?.remove();
  return answer;
}

/** Offer to log in beside this page, so that nothing that was typed is lost. */
export function loggedOut(form, login) {
  signedOut.add(form);
  const link = document.createElement("a");
  Object.assign(link, { className: "link", href: login, target: "_blank", rel: "noopener", textContent: word("form-login") });
  const asks = form.getAttribute("method") === "get";
  notice(form, `${word(asks ? "find-signed-out" : "form-signed-out")} `).append(link);
}

/** Whether a form was refused for want of a login. */
export function isSignedOut(form) {
  return signedOut.delete(form);
}

/** Say on a form that it may be sent again. */
export function notAnswered(form) {
  notice(form, word("form-failed"));
}

/** Say on a form why it was not sent; what was typed stays. */
function notice(form, text) {
  form.querySelector(OWN_NOTICE)?.remove();
  const box = document.createElement("div");
  const said = document.createElement("p");
  box.className = "notice bad";
  box.role = "alert";
  form.prepend(box);
  box.append(said);
  said.textContent = text;
  box.scrollIntoView({ block: "nearest" });
  return said;
}

/** Send a form as without scripts. */
export function natively(form, submitter) {
  if (submitter?.name) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: submitter.name, value: submitter.value });
    form.append(field);
  }
  HTMLFormElement.prototype.submit.call(form);
}

// @ts-check
// How long a request may take. One that a proxy takes and never answers would be waited for for good.

/** Milliseconds for an answer without a body, and for a page or a part of one: as long as htmx waits. */
const ANSWER = 10_000;
const PAGE = 60_000;

/** Ends a request that only asks whether the site answers. */
export function answerSoon() {
  return limit(ANSWER);
}

/** Ends a request for a page. */
export function pageSoon() {
  return limit(PAGE);
}

/** @returns {AbortSignal} */
function limit(wait) {
  return /** @type {any} */ (AbortSignal).timeout(wait);
}

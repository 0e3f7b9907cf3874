// @ts-check
// Nothing moves under a finger that presses: what htmx brings meanwhile is shown once it has let go.
// To press a button leaves the field beside it, which may ask for a preview; that would push the button away, and
// a press that ends on something else is no click.

let free = Promise.resolve();
let letGo = () => {};

addEventListener("pointerdown", press, { capture: true, passive: true });
// The click, and what it does, come after the pointer is up.
for (const end of ["pointerup", "pointercancel", "blur", "pagehide"]) addEventListener(end, () => setTimeout(letGo));

/** Hold back what htmx fetches for as long as the pointer is down. */
export function startPresses() {
  document.addEventListener("htmx:config:request", (/** @type {CustomEvent} */ { detail: { ctx } }) => {
    ctx.fetch = async (/** @type {Parameters<typeof fetch>} */ ...request) => {
      const answer = await fetch(...request);
      const text = await answer.text();
      answer.text = async () => text;
      await free;
      return answer;
    };
  });
}

/** Resolves once nothing is pressed. */
export function released() {
  return free;
}

function press() {
  letGo();
  free = new Promise((resolve) => (letGo = resolve));
}

// Makes a wall's page anew whose own scripts did not come: a server that goes away may have handed out the page without
// them, and nobody stands there. A file of its own, which needs no other and which browsers keep through releases.

/** Milliseconds that the wall's scripts have to begin, and between tries after that. */
const EVERY = 20_000;

setInterval(look, EVERY);

async function look() {
  const { body } = document;
  if ("running" in body.dataset) return;
  try {
    const answer = await fetch(location.href, { method: "HEAD", redirect: "manual", cache: "no-store" });
    if (answer.ok) {
      location.reload();
      return;
    }
  } catch {
    // The server is away: later, then.
  }
  const words = document.getElementById("wall-words").content;
  const say = (part, code) => (body.querySelector(`[data-part=${part}]`).textContent = words.querySelector(`[data-word=${code}]`).textContent);
  body.dataset.freshState = "old";
  say("fresh", "wall-still");
  say("veil-age", "wall-still");
  say("veil-why", "wall-why-reconnecting");
  body.querySelector("[data-part=veil]").hidden = false;
}

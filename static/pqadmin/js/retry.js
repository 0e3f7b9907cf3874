// @ts-check
// The page of an outage: asks for its own address again, and loads it once it is no outage. What is read stays till then.

const RETRY_EVERY = 5000;

async function ask() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.status !== 503) location.reload();
  } catch {
    // the server is away too: it is asked again
  }
}

setInterval(ask, RETRY_EVERY);

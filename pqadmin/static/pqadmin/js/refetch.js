// Asks the server for the table anew where rows can not simply be added: the first queue of all, or a grouped table.

/** Milliseconds to wait while the pointer is on the table: rows do not move under it. */
const PATIENCE = 1000;
let running = null;

/** Replace #queues by what the page's own address shows now. Many calls at once are one. */
export function refetchTable() {
  running ??= refetch().finally(() => {
    running = null;
  });
  return running;
}

async function refetch() {
  while (document.querySelector("#queues table:hover, #queues :focus") !== null) {
    await new Promise((resolve) => setTimeout(resolve, PATIENCE));
  }
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const table = page.getElementById("queues");
    if (table === null) return;
    document.getElementById("queues")?.replaceWith(document.adoptNode(table));
    window.htmx?.process?.(table);
  } catch {
    // The server went away meanwhile; the next frame asks again.
  }
}

// @ts-check
// The push form: what is typed at a choice chooses it, and the reader's own time zone is suggested.

/** @type {NodeListOf<HTMLInputElement>} */
const picking = document.querySelectorAll("[data-picks]");
for (const field of picking) {
  field.addEventListener("input", () => {
    const choice = document.getElementById(field.dataset.picks);
    if (choice !== null && field.value !== "") choice.checked = true;
  });
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** @type {NodeListOf<HTMLInputElement>} */
const zoned = document.querySelectorAll("[data-zone]");
for (const field of zoned) {
  const known = /** @type {HTMLDataListElement | null} */ (field.list);
  if (!zone || known === null || [...known.options].some((option) => option.value === zone)) continue;
  const option = document.createElement("option");
  option.value = zone;
  known.prepend(option);
}

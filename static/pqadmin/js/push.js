// The push form: what is typed at a choice chooses it, and the reader's own time zone is suggested.

for (const field of document.querySelectorAll("[data-picks]")) {
  field.addEventListener("input", () => {
    const choice = document.getElementById(field.dataset.picks);
    if (choice !== null && field.value !== "") choice.checked = true;
  });
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const field of document.querySelectorAll("[data-zone]")) {
  const known = field.list;
  if (!zone || known === null || [...known.options].some((option) => option.value === zone)) continue;
  const option = document.createElement("option");
  option.value = zone;
  known.prepend(option);
}

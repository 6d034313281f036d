// Buttons that copy an address: <button data-copy="text">.
"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const label = button.querySelector("[data-copy-label]") || button;
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    label.textContent = "Copied";
  } catch {
    // Without TLS, or refused by the browser: select the text, so that Ctrl-C copies it.
    const field = document.getElementById(button.dataset.copyField);
    if (field) field.select();
    label.textContent = "Press Ctrl-C";
  }
  window.setTimeout(() => { label.textContent = before; }, 2000);
});

// Buttons that copy the text of an element: <button data-copy-text="its id" hidden>. Without this script they stay away.
"use strict";

for (const button of document.querySelectorAll("[data-copy-text]")) {
  const source = document.getElementById(button.dataset.copyText);
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // Without TLS, or refused by the browser: select the text, so that Ctrl-C copies it.
      window.getSelection().selectAllChildren(source);
      button.textContent = "Press Ctrl-C";
    }
    window.setTimeout(() => { button.textContent = label; }, 2000);
  });
}

// Colour plates and comprehension pairs: keys that choose, and no answer before the images are there.
"use strict";

(() => {
  const form = document.querySelector("[data-choice-form]");
  const inputs = [...form.querySelectorAll("input[type=radio]")];
  const next = form.querySelector("[data-needs-images]");
  const loadNotice = form.querySelector("[data-load-notice]");
  const RETRY_SECONDS = [1, 2, 4, 8];

  const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

  // The server knows no such image for this page, so the page may be outdated; if that does not help, we keep trying.
  function reloadOnce(address) {
    try {
      if (sessionStorage.getItem(`gone ${address}`)) return;
      sessionStorage.setItem(`gone ${address}`, "reloaded");
    } catch {
      return; // a browser that stores nothing would reload for ever
    }
    window.location.reload();
  }

  async function shown(image) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await image.decode();
        return;
      } catch {
        loadNotice.textContent = "The image has not arrived yet. Trying again…";
        await pause(RETRY_SECONDS[Math.min(attempt, RETRY_SECONDS.length - 1)]);
        // Past the browser's cache, so that the next try does not meet the failure again.
        const answer = await fetch(image.src, { cache: "reload" }).catch(() => null);
        if (answer && (answer.status === 403 || answer.status === 404)) reloadOnce(image.src);
        image.src = image.src;
      }
    }
  }

  const images = [...form.querySelectorAll("[data-must-load]")];
  if (next) {
    next.disabled = true;
    Promise.all(images.map(shown)).then(() => {
      loadNotice.textContent = "";
      next.disabled = false;
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("a, button, summary, select, details")) return;
    const key = event.key.toLowerCase();
    const chosen = inputs.find((input) => input.dataset.key === key || `arrow${input.dataset.arrow}` === key);
    if (chosen) {
      event.preventDefault();
      chosen.checked = true;
      chosen.focus();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!event.repeat && !(next && next.disabled)) form.requestSubmit(next || undefined);
    }
  });
})();

// The way back to the panel: by itself after a while, unless the participant wants to stay.
"use strict";

(() => {
  const link = document.getElementById("completion-link");
  if (!link || !link.dataset.seconds) return;
  const countdown = document.getElementById("countdown");
  const text = document.getElementById("countdown-text");
  const end = performance.now() + Number(link.dataset.seconds) * 1000;
  text.textContent = `You are taken there in ${link.dataset.seconds} seconds.`;
  countdown.hidden = false;
  const timer = setInterval(() => {
    if (performance.now() < end) return;
    clearInterval(timer);
    window.location.assign(link.href);
  }, 200);
  document.getElementById("stay").addEventListener("click", () => {
    clearInterval(timer);
    countdown.hidden = true;
  });
})();

// The last page: nothing of the participation stays in this browser, and it leads back to the panel by itself after a
// while, unless the participant wants to stay.
"use strict";

// Answers that came too late are kept nowhere.
ratingStore(document.body.dataset.participation).clear();

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

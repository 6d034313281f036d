// Waiting, for the scripts of the main study.
"use strict";

const RETRY_SECONDS = [0.5, 1, 2, 4, 8];

const seconds = (count) => new Promise((resolve) => setTimeout(resolve, count * 1000));

// Longer from attempt to attempt, and over at once when the connection is back.
function retryPause(attempt) {
  const backOnline = new Promise((resolve) => window.addEventListener("online", resolve, { once: true }));
  return Promise.race([seconds(RETRY_SECONDS[Math.min(attempt, RETRY_SECONDS.length - 1)]), backOnline]);
}

// Resolves when what was just put into the page is on the screen; in a hidden tab only once it is looked at.
const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

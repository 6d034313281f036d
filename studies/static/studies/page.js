// What every page of the study needs: the device check, the place that is kept, measuring the window, copying, and no
// answer sent twice.
"use strict";

// A page that the browser kept alive may be of a step that is over: ask the server again.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});

(() => {
  const notice = document.getElementById("device-notice");
  if (!notice) return;
  const study = document.getElementById("study");
  const minimumWidth = Number(notice.dataset.minimumWidth);
  const minimumHeight = Number(notice.dataset.minimumHeight);
  const phonesAllowed = "phonesAllowed" in notice.dataset;
  // A phone: operated by finger, and with a short side that no tablet has.
  const isPhone =
    window.matchMedia("(pointer: coarse)").matches && Math.min(window.screen.width, window.screen.height) < 600;

  function problem() {
    if (isPhone) return phonesAllowed ? null : "phone";
    return window.innerWidth < minimumWidth || window.innerHeight < minimumHeight ? "small" : null;
  }

  function check() {
    const found = problem();
    notice.hidden = found === null;
    study.inert = found !== null;
    for (const section of notice.querySelectorAll("[data-case]")) section.hidden = section.dataset.case !== found;
    notice.querySelector("[data-current-size]").textContent = `${window.innerWidth} × ${window.innerHeight}`;
  }

  check();
  window.addEventListener("resize", check);
})();

// Holds the place while somebody is at the page, however long they read or think: within the time after which a place is
// passed on they have moved, typed or scrolled. Who has walked away from an open page does not hold it for ever.
(() => {
  const HEARTBEAT_SECONDS = 60;
  const { heartbeatUrl: url, leaseMinutes } = document.body.dataset;
  if (!url) return;
  const headers = { "X-CSRFToken": document.querySelector("#study [name=csrfmiddlewaretoken]").value };
  let lastSign = Date.now();

  for (const sign of ["pointerdown", "pointermove", "keydown", "scroll", "focus"]) {
    window.addEventListener(sign, () => (lastSign = Date.now()), { capture: true, passive: true });
  }

  async function beat() {
    if (document.hidden || Date.now() - lastSign > leaseMinutes * 60_000) return;
    const response = await fetch(url, { method: "POST", headers }).catch(() => null);
    if (response && response.status === 409) window.location.reload(); // it has ended, and there is another page
  }

  setInterval(beat, HEARTBEAT_SECONDS * 1000);
})();

for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    const sizes = { width: window.innerWidth, height: window.innerHeight, ratio: window.devicePixelRatio };
    for (const field of form.querySelectorAll("[data-measure]")) field.value = sizes[field.dataset.measure];
    // When the answer never got through, the page is still here and must be usable again.
    setTimeout(() => delete form.dataset.sent, 8000);
  });
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = button.parentElement.querySelector("[data-copy-source]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      window.getSelection().selectAllChildren(source);
      button.textContent = "Press Ctrl+C";
    }
  });
}

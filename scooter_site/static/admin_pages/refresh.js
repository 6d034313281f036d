// Parts of a page that keep themselves up to date: <div data-refresh-url="..." data-refresh-seconds="10">.
// The server answers with the part's new inside; the header X-Refresh-Done ends it, by reloading the whole page.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const part of document.querySelectorAll("[data-refresh-url]")) keepFresh(part);
});

function keepFresh(part) {
  const milliseconds = Number(part.dataset.refreshSeconds || 10) * 1000;
  const again = () => window.setTimeout(refresh, milliseconds);

  async function refresh() {
    // A page nobody looks at asks for nothing.
    if (document.hidden) {
      document.addEventListener("visibilitychange", refresh, { once: true });
      return;
    }
    try {
      const response = await fetch(part.dataset.refreshUrl, { headers: { "X-Requested-With": "fetch" } });
      if (response.redirected) {
        window.location.reload(); // signed out: the log-in page comes back here afterwards
        return;
      }
      if (response.headers.has("X-Refresh-Done")) {
        window.location.reload();
        return;
      }
      if (response.ok) replaceInside(part, await response.text());
    } catch {
      // The server is away for a moment: keep what is shown and ask again.
    }
    again();
  }

  again();
}

// Whoever goes through the part by keyboard stays at the link they were at, and wide tables stay where they were moved.
function replaceInside(part, html) {
  const stops = () => [...part.querySelectorAll("a[href], button, input, [tabindex]")];
  const tables = () => [...part.querySelectorAll(".scooter-scroll")];
  const place = stops().indexOf(document.activeElement);
  const moved = tables().map((table) => table.scrollLeft);
  part.innerHTML = html;
  if (place >= 0) stops()[place]?.focus({ preventScroll: true });
  tables().forEach((table, number) => { table.scrollLeft = moved[number] ?? 0; });
}

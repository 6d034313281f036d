// One box that ticks all boxes of a form: <input type="checkbox" data-tick-all="id of the form" hidden>.
"use strict";

for (const all of document.querySelectorAll("[data-tick-all]")) {
  const boxes = () => document.querySelectorAll(`input[type=checkbox][form="${all.dataset.tickAll}"]`);
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes()) box.checked = all.checked;
  });
  document.addEventListener("change", (event) => {
    if (event.target.getAttribute("form") !== all.dataset.tickAll) return;
    all.checked = [...boxes()].every((box) => box.checked);
  });
}

// Draw the box of a crop on the image; the number fields and the box follow each other. Without a pointer the fields do.
"use strict";

for (const holder of document.querySelectorAll("[data-crop]")) {
  const field = (name) => document.getElementById(`id_${holder.dataset.crop}-${name}`);
  const fields = ["left", "top", "right", "bottom"].map(field);
  if (!fields.every(Boolean)) continue;
  const [width, height] = [Number(holder.dataset.width), Number(holder.dataset.height)];
  const image = holder.querySelector("img");
  const box = document.createElement("div");
  box.className = "scooter-crop-box";
  box.setAttribute("aria-hidden", "true");
  holder.append(box);

  const show = () => {
    const [left, top, right, bottom] = fields.map((input) => Number(input.value));
    const fits = left < right && top < bottom && left >= 0 && top >= 0 && right <= width && bottom <= height;
    box.hidden = !fits;
    box.style.left = `${(100 * left) / width}%`;
    box.style.top = `${(100 * top) / height}%`;
    box.style.width = `${(100 * (right - left)) / width}%`;
    box.style.height = `${(100 * (bottom - top)) / height}%`;
  };

  // Where the pointer is, in pixels of the image.
  const position = (event) => {
    const shown = image.getBoundingClientRect();
    const within = (value, most) => Math.min(Math.max(Math.round(value), 0), most);
    return [
      within(((event.clientX - shown.left) / shown.width) * width, width),
      within(((event.clientY - shown.top) / shown.height) * height, height),
    ];
  };

  let start = null;
  holder.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    start = position(event);
    holder.setPointerCapture(event.pointerId);
  });
  holder.addEventListener("pointermove", (event) => {
    if (!start) return;
    const end = position(event);
    const edges = [0, 1].map((axis) => [start[axis], end[axis]].sort((a, b) => a - b));
    if (edges.some(([from, to]) => from === to)) return;
    fields[0].value = edges[0][0];
    fields[1].value = edges[1][0];
    fields[2].value = edges[0][1];
    fields[3].value = edges[1][1];
    show();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    holder.addEventListener(name, () => {
      start = null;
    });
  }
  for (const input of fields) input.addEventListener("input", show);
  show();
}

for (const button of document.querySelectorAll("[data-fill]")) {
  button.addEventListener("click", () => {
    const field = document.getElementById(button.dataset.fill);
    field.value = button.dataset.value;
    field.focus();
    for (const other of button.parentElement.querySelectorAll("[data-fill]")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
  });
}

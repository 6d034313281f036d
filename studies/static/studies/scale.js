// The two ways to give a rating. Both have: reset(value) to a stored answer or to none, open(), close(), focus(), value
// (null: not answered), its description in words, and onAnswer. The slider also calls onRestore: it is back at what it
// was, which is no answer.
"use strict";

// Width of the slider's thumb in CSS pixels; participant.css draws it in the same size.
const THUMB = 28;
// A finger that has moved this far sideways is setting the slider; before, it may be about to scroll the page.
const DRAG_START = 6;

class Slider {
  constructor(container, scale) {
    this.container = container;
    this.input = container.querySelector("input");
    this.scale = scale;
    this.value = null;
    this.onAnswer = () => {};
    this.onRestore = () => {};
    this.pointer = null;
    this.isPanning = false;
    this.isKeyFresh = false;

    container.addEventListener("pointerdown", (event) => this.#down(event));
    container.addEventListener("pointermove", (event) => this.#move(event));
    container.addEventListener("pointerup", (event) => this.#up(event));
    container.addEventListener("pointercancel", (event) => this.#cancel(event));
    this.input.addEventListener("input", () => this.#input());
    this.input.addEventListener("keydown", (event) => this.#keydown(event));
  }

  reset(value = null) {
    this.pointer = null;
    this.isKeyFresh = false;
    this.#show(value);
  }

  open() {
    this.input.disabled = false;
  }

  close() {
    this.input.disabled = true;
    this.pointer = null;
  }

  focus() {
    this.input.focus({ preventScroll: true });
  }

  get description() {
    return describe(this.value, this.scale);
  }

  get #middle() {
    return Math.round((this.scale.minimum + this.scale.maximum) / 2);
  }

  #show(value) {
    this.value = value;
    this.input.value = value === null ? this.#middle : value;
    this.container.classList.toggle("unanswered", value === null);
    this.input.setAttribute("aria-valuetext", value === null ? "not answered yet" : describe(value, this.scale));
  }

  #answer(value) {
    this.#show(value);
    this.onAnswer();
  }

  // Pointers are handled here and not left to the browser: a click on the start position must count, and browsers
  // differ in what a finger on the track does.
  #down(event) {
    if (this.input.disabled || event.button !== 0 || !event.isPrimary) return;
    this.isPanning = false;
    this.pointer = { id: event.pointerId, x: event.clientX, y: event.clientY, before: this.value, isDrag: false };
    if (event.pointerType === "touch") return;
    event.preventDefault();
    this.container.setPointerCapture(event.pointerId);
    this.pointer.isDrag = true;
    this.focus();
    this.#answer(this.#valueAt(event.clientX));
  }

  #move(event) {
    if (!this.pointer || event.pointerId !== this.pointer.id) return;
    const across = Math.abs(event.clientX - this.pointer.x);
    const along = Math.abs(event.clientY - this.pointer.y);
    if (!this.pointer.isDrag && across >= DRAG_START && across > along) this.pointer.isDrag = true;
    if (this.pointer.isDrag) this.#answer(this.#valueAt(event.clientX));
  }

  #up(event) {
    if (!this.pointer || event.pointerId !== this.pointer.id) return;
    this.pointer = null;
    this.focus();
    this.#answer(this.#valueAt(event.clientX));
  }

  // The browser has taken the finger for scrolling: whatever the slider did meanwhile is undone.
  #cancel(event) {
    if (!this.pointer || event.pointerId !== this.pointer.id) return;
    const before = this.pointer.before;
    this.pointer = null;
    this.isPanning = true;
    this.#show(before);
    this.onRestore();
  }

  // The browser's own change of value: by keys and assistive technology; by finger it must not add to the above.
  #input() {
    if (this.pointer || this.isPanning) this.#show(this.value);
    else this.#answer(Number(this.input.value));
  }

  #keydown(event) {
    this.isPanning = false;
    // A key still held down from the image before does not rate this one.
    if (event.repeat && !this.isKeyFresh) {
      event.preventDefault();
      return;
    }
    this.isKeyFresh = true;
    // Keys that leave the start position where it is answer with it.
    const stays = event.key === " " || (event.key === "Home" && this.input.value === this.input.min);
    if (stays && this.value === null) {
      event.preventDefault();
      this.#answer(Number(this.input.value));
    }
  }

  #valueAt(x) {
    const box = this.input.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (x - box.left - THUMB / 2) / (box.width - THUMB)));
    return Math.round(this.scale.minimum + share * (this.scale.maximum - this.scale.minimum));
  }
}

class Likert {
  constructor(container, scale) {
    this.container = container;
    this.inputs = [...container.querySelectorAll("input")];
    this.scale = scale;
    this.value = null;
    this.isOpen = false;
    this.onAnswer = () => {};
    container.addEventListener("change", (event) => this.#answer(event.target));
    document.addEventListener("keydown", (event) => {
      if (!this.isOpen || event.repeat || event.altKey || event.ctrlKey || event.metaKey) return;
      const input = this.inputs[Number(event.key) - 1];
      if (event.key.trim() && input) this.#answer(input);
    });
  }

  reset(value = null) {
    this.value = value;
    for (const input of this.inputs) input.checked = value !== null && Number(input.value) === value;
  }

  open() {
    this.isOpen = true;
    for (const input of this.inputs) input.disabled = false;
  }

  close() {
    this.isOpen = false;
    for (const input of this.inputs) input.disabled = true;
  }

  focus() {
    this.container.focus({ preventScroll: true });
  }

  // The chosen button says it all.
  get description() {
    return "";
  }

  #answer(input) {
    input.checked = true;
    input.focus({ preventScroll: true });
    this.value = Number(input.value);
    this.onAnswer();
  }
}

// "+37: rather modified". The words follow what the side means, not the sign.
function describe(value, scale) {
  const half = (scale.maximum - scale.minimum) / 2;
  const offset = (value - scale.minimum - half) / half;
  const certainty = Math.abs(offset);
  const side = offset > 0 === scale.higherIsModified ? "modified" : "unmodified";
  let words = `certainly ${side}`;
  if (certainty === 0) words = "undecided";
  else if (certainty <= 0.25) words = `perhaps ${side}`;
  else if (certainty <= 0.6) words = `rather ${side}`;
  else if (certainty < 1) words = `very likely ${side}`;
  const sign = scale.minimum < 0 && value > 0 ? "+" : "";
  return `${sign}${value}`.replace("-", "−") + `: ${words}`;
}

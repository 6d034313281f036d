// What is measured about one answer. It begins when the image is on the screen, so time spent on loading is no part of it.
"use strict";

class ItemClock {
  constructor() {
    this.shownAt = performance.now();
    this.#reset();
    this.isAway = !document.hasFocus();
    // Leaving a tab is told twice, by the window and by the page: one loss.
    window.addEventListener("blur", () => this.#leave());
    window.addEventListener("focus", () => this.#comeBack());
    document.addEventListener("visibilitychange", () => {
      this.#count();
      if (document.hidden) this.#leave();
      else this.#comeBack();
    });
  }

  start() {
    this.shownAt = performance.now();
    this.#reset();
  }

  touch() {
    this.lastInteraction = this.elapsed;
    this.firstInteraction ??= this.lastInteraction;
  }

  get visible() {
    this.#count();
    return this.visibleTime;
  }

  get measurements() {
    return {
      response_ms: this.elapsed,
      first_interaction_ms: this.firstInteraction,
      last_interaction_ms: this.lastInteraction,
      visible_ms: Math.min(Math.round(this.visible), this.elapsed),
      focus_losses: Math.min(this.focusLosses, 9999),
      client_ms: Math.round(performance.now()),
    };
  }

  // Resolves when the item has been in sight for so long.
  async seen(milliseconds) {
    while (this.visible < milliseconds) {
      const isVisible = new Promise((resolve) =>
        document.addEventListener("visibilitychange", resolve, { once: true }),
      );
      if (document.hidden) await isVisible;
      else await Promise.race([isVisible, seconds(Math.ceil(milliseconds - this.visible) / 1000)]);
    }
  }

  get elapsed() {
    return Math.round(performance.now() - this.shownAt);
  }

  #reset() {
    this.firstInteraction = null;
    this.lastInteraction = null;
    this.focusLosses = 0;
    this.visibleTime = 0;
    this.countedAt = performance.now();
    this.wasVisible = !document.hidden;
  }

  #count() {
    const now = performance.now();
    if (this.wasVisible) this.visibleTime += now - this.countedAt;
    this.countedAt = now;
    this.wasVisible = !document.hidden;
  }

  #leave() {
    if (!this.isAway) this.focusLosses += 1;
    this.isAway = true;
  }

  #comeBack() {
    this.isAway = false;
  }
}

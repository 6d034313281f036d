// The images of the current item and of the few that follow: fetched ahead, decoded, and fetched again until they come.
"use strict";

class Images {
  // onSlow(message): the image that is waited for takes long. onGone(): the server has no such image for this page.
  constructor({ onSlow, onGone }) {
    this.onSlow = onSlow;
    this.onGone = onGone;
    this.entries = new Map(); // address -> promise of a decoded image, only for the items at hand
    this.wanted = []; // in the order in which they are needed
  }

  // Have these at hand, in this order, and forget all others: that bounds what is fetched and kept.
  keep(addresses) {
    this.wanted = addresses;
    for (const address of [...this.entries.keys()]) if (!addresses.includes(address)) this.entries.delete(address);
    this.#fetchAhead();
  }

  // Resolves with the image, decoded, however long that takes.
  async shown(address) {
    const slow = setTimeout(() => this.onSlow("Loading the image…"), 1000);
    const late = (attempt) => {
      clearTimeout(slow);
      // The first repeat is silent: a link that has expired is no reason to worry anybody.
      if (attempt > 0) this.onSlow("The image has not arrived yet. We keep trying; nothing is lost.");
    };
    const image = await this.#entry(address, late);
    clearTimeout(slow);
    return image;
  }

  // One after the other, so that those to come do not take the line from the one that is waited for.
  async #fetchAhead() {
    const wanted = this.wanted;
    for (const address of wanted) {
      await this.#entry(address);
      if (this.wanted !== wanted) return; // the list has changed meanwhile, and has a round of its own
    }
  }

  #entry(address, late) {
    let entry = this.entries.get(address);
    if (!entry) {
      entry = { late: () => {} };
      entry.image = this.#load(address, entry);
      this.entries.set(address, entry);
    }
    if (late) {
      entry.late = late;
      if (entry.failures) late(entry.failures);
    }
    return entry.image;
  }

  async #load(address, entry) {
    for (let attempt = 0; ; attempt += 1) {
      const image = new Image();
      image.src = address;
      try {
        await image.decode();
        return image;
      } catch {
        entry.failures = attempt + 1;
        entry.late(attempt);
        if (attempt > 0) await retryPause(attempt - 1);
        if (this.entries.get(address) !== entry) return image; // no longer wanted
        await this.#refresh(address, attempt);
      }
    }
  }

  // Past the browser's cache, so that the next try does not meet the failure again.
  async #refresh(address, attempt) {
    const answer = await fetch(address, { cache: "reload" }).catch(() => null);
    if (attempt > 0 && answer && (answer.status === 403 || answer.status === 404)) this.onGone(address);
  }
}

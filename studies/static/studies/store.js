// What one participation keeps in this browser until it is over: answers on their way, and the pace. No personal data.
"use strict";

class Store {
  constructor(key) {
    this.key = key;
    this.memory = {}; // for a browser that stores nothing: there it lives as long as this page
    this.storesNothing = false;
  }

  // Always from the browser's storage: another tab of the same session may have changed it.
  read(name, otherwise) {
    if (this.storesNothing) return this.memory[name] ?? otherwise;
    try {
      const text = localStorage.getItem(`${this.key} ${name}`);
      return text === null ? otherwise : JSON.parse(text);
    } catch {
      return otherwise;
    }
  }

  write(name, value) {
    this.memory[name] = value;
    try {
      localStorage.setItem(`${this.key} ${name}`, JSON.stringify(value));
    } catch {
      this.storesNothing = true;
    }
  }

  clear() {
    this.memory = {};
    try {
      for (const key of Object.keys(localStorage)) if (key.startsWith(`${this.key} `)) localStorage.removeItem(key);
    } catch {
      // Nothing was stored.
    }
  }
}

const ratingStore = (participation) => new Store(`rating ${participation}`);

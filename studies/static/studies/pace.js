// How long the ratings still take: at first by the minutes that the study plans for them, more and more by how fast this
// participant is.
"use strict";

class Pace {
  // The study's minutes weigh as much as this many of the participant's own items.
  static PRIOR_ITEMS = 8;
  // A single item counts at most this often the study's pace: a pause is no pace.
  static LONGEST = 5;

  constructor(store, minutes, count) {
    this.store = store;
    this.planned = (minutes * 60_000) / Math.max(1, count);
  }

  add(milliseconds) {
    const { items, time } = this.store.read("pace", { items: 0, time: 0 });
    const counted = Math.min(milliseconds, this.planned * Pace.LONGEST);
    this.store.write("pace", { items: items + 1, time: time + counted });
  }

  remaining(items) {
    const own = this.store.read("pace", { items: 0, time: 0 });
    const each = (own.time + this.planned * Pace.PRIOR_ITEMS) / (own.items + Pace.PRIOR_ITEMS);
    const minutes = Math.ceil((each * items) / 60_000);
    return minutes <= 1 ? "about 1 minute left" : `about ${minutes} minutes left`;
  }
}

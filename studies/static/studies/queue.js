// Answers on their way to the server: kept in the browser until acknowledged, sent one after the other in the order of
// their items, and sent again until the server has them. The token of its item makes a repeat harmless.
"use strict";

class AnswerQueue {
  // How many answers may wait; the server lets the page see as many items ahead.
  static LIMIT = 3;
  // Reloads that one answer may cause before it is given up.
  static RELOADS = 3;

  // May be set: canSend(answer): whether it is its turn; onStored(answer, state); onRefused(answer, message): the item
  // has to be answered again; onTrouble(): no connection for now; onOutdated(): this page has to be loaded anew.
  constructor(store, { url, csrfToken }) {
    this.store = store;
    this.url = url;
    this.csrfToken = csrfToken;
    this.isRunning = false;
    this.isStopped = false;
  }

  get waiting() {
    return this.store.read("answers", []);
  }

  get isEmpty() {
    return this.waiting.length === 0;
  }

  get isFull() {
    return this.waiting.length >= AnswerQueue.LIMIT;
  }

  has(token) {
    return this.waiting.some((answer) => answer.token === token);
  }

  add(answer) {
    const others = this.waiting.filter((other) => other.token !== answer.token);
    this.store.write("answers", [...others, answer].sort((one, other) => one.position - other.position));
    this.send();
  }

  stop() {
    this.isStopped = true;
  }

  // Send what waits. Does nothing while it is at work already.
  async send() {
    if (this.isRunning) return;
    this.isRunning = true;
    try {
      for (let attempt = 0; ; ) {
        const answer = this.waiting[0];
        if (!answer || this.isStopped || !this.canSend(answer)) return;
        if (await this.#sendOne(answer)) {
          attempt = 0;
        } else if (!this.isStopped) {
          this.onTrouble();
          await retryPause(attempt);
          attempt += 1;
        }
      }
    } finally {
      this.isRunning = false;
    }
  }

  // Whether the server has decided about it.
  async #sendOne(answer) {
    const { position, reloads, ...body } = answer;
    const reply = await postJson(this.url, this.csrfToken, body);
    if (!reply) return false;
    if (reply.ok) {
      this.#remove(answer);
      this.onStored(answer, reply.content);
    } else if (reply.status === 400) {
      this.#remove(answer);
      this.onRefused(answer, reply.content?.error || "The answer was not accepted.");
    } else {
      this.#outdated(answer, reply.status);
    }
    return true;
  }

  // 409: the server is elsewhere, and its page knows where. Else the session or its key has changed, and the answer is
  // sent again from the page that is loaded now.
  #outdated(answer, status) {
    this.stop();
    const reloads = (answer.reloads || 0) + 1;
    if (status === 409 || reloads > AnswerQueue.RELOADS) this.#remove(answer);
    else this.#replace({ ...answer, reloads });
    this.onOutdated();
  }

  #remove(answer) {
    this.store.write("answers", this.waiting.filter((other) => other.token !== answer.token));
  }

  #replace(answer) {
    this.store.write("answers", this.waiting.map((other) => (other.token === answer.token ? answer : other)));
  }
}

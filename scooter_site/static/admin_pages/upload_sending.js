// Sends one file in parts to the API of uploads, and goes on after whatever interrupted it. Used by upload.js.
"use strict";

const uploads = (() => {
  const PARTS_AT_ONCE = { direct: 3, site: 2 }; // the site's web server has few threads, a bucket has many
  const LINKS_AT_ONCE = 8;
  const MOST_TRIES = 8;
  const FIRST_DELAY_MS = 500;
  const LONGEST_DELAY_MS = 30000;
  const LINK_RESERVE_MS = 30000; // a link that expires sooner is not begun with

  class Refused extends Error {
    constructor(status, message) {
      super(message);
      this.status = status;
      // Another try mends what the network or the server's load did, not what the server decided.
      this.isFinal = [401, 403, 404, 409, 415, 507].includes(status);
    }
  }

  function messageOf(answer, status) {
    if (status === 401 || (status === 403 && /CSRF|credentials/i.test(answer.detail || ""))) {
      return "You are signed out. Sign in in another tab, then press Resume.";
    }
    const texts = Object.values(answer).flat(3).filter((text) => typeof text === "string");
    return texts.join(" ") || `The server answered ${status}.`;
  }

  // Ends at once when the signal says to stop.
  function pause(milliseconds, signal) {
    return new Promise((done) => {
      window.setTimeout(done, milliseconds);
      if (signal) signal.addEventListener("abort", done, { once: true });
    });
  }

  function readable(bytes) {
    for (const [unit, size] of [["GB", 1024 ** 3], ["MB", 1024 ** 2], ["kB", 1024]]) {
      if (bytes >= size) return `${(bytes / size).toFixed(bytes >= 100 * size ? 0 : 1)} ${unit}`;
    }
    return `${bytes} bytes`;
  }

  function readableTime(seconds) {
    if (seconds < 90) return `about ${Math.max(1, Math.round(seconds))} s left`;
    const minutes = Math.round(seconds / 60);
    return minutes < 90 ? `about ${minutes} minutes left` : `about ${Math.round(minutes / 60)} hours left`;
  }

  // --- The API -------------------------------------------------------------------------------------------------

  class Api {
    constructor(address) {
      this.address = address;
    }

    async call(method, path = "", content = undefined, signal = undefined) {
      const headers = { "X-CSRFToken": document.querySelector("[name=csrfmiddlewaretoken]").value };
      if (content !== undefined) headers["Content-Type"] = "application/json";
      const body = content === undefined ? undefined : JSON.stringify(content);
      const response = await fetch(this.address + path, { method, headers, body, signal });
      if (response.status === 204) return null;
      const answer = await response.json().catch(() => ({}));
      if (!response.ok) throw new Refused(response.status, messageOf(answer, response.status));
      return answer;
    }

    // As call, but patient: for what must work in the middle of a long upload.
    async insist(method, path, content = undefined) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.call(method, path, content);
        } catch (error) {
          if (error.isFinal || attempt === MOST_TRIES) throw error;
          await pause(delayAfter(attempt));
        }
      }
    }
  }

  function delayAfter(attempt) {
    const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
    return longest * (0.5 + Math.random() / 2); // not all parts again at the same moment
  }

  // --- One file on its way -------------------------------------------------------------------------------------

  class Sending {
    constructor(api, upload, file, changed) {
      Object.assign(this, { api, upload, file, changed });
      this.arrived = new Map(upload.parts.map((part) => [part.number, part.size]));
      this.underWay = new Map(); // number -> bytes sent so far
      this.links = new Map();
      this.stopper = new AbortController();
    }

    get isStopped() {
      return this.stopper.signal.aborted;
    }

    get bytes() {
      return [...this.arrived.values(), ...this.underWay.values()].reduce((sum, size) => sum + size, 0);
    }

    // Sends what is missing; true if all is there, false if it was stopped. Throws what another try cannot mend.
    async run() {
      this.stopper = new AbortController();
      this.waiting = [];
      for (let number = 1; number <= this.upload.part_count; number += 1) {
        if (!this.arrived.has(number)) this.waiting.push(number);
      }
      const lanes = this.upload.is_direct ? PARTS_AT_ONCE.direct : PARTS_AT_ONCE.site;
      await Promise.all(Array.from({ length: lanes }, () => this.lane()));
      return !this.isStopped;
    }

    stop() {
      this.stopper.abort();
    }

    async lane() {
      try {
        while (!this.isStopped && this.waiting.length) await this.sendWithRetries(this.waiting.shift());
      } catch (error) {
        this.stop(); // the other lanes too
        throw error;
      }
    }

    async sendWithRetries(number) {
      for (let attempt = 1; !this.isStopped; attempt += 1) {
        try {
          await this.send(number);
          return;
        } catch (error) {
          if (this.isStopped) return;
          if (error.isFinal || attempt === MOST_TRIES) throw error;
          this.links.delete(number);
          await pause(delayAfter(attempt), this.stopper.signal);
        } finally {
          this.underWay.delete(number);
          this.changed();
        }
      }
    }

    async send(number) {
      const start = (number - 1) * this.upload.part_size;
      const part = this.file.slice(start, start + this.upload.part_size);
      const link = await this.linkFor(number);
      const headers = {};
      if (!this.upload.is_direct) {
        headers["X-CSRFToken"] = document.querySelector("[name=csrfmiddlewaretoken]").value;
        headers["Content-Type"] = "application/octet-stream";
        const digest = await sha256(part);
        if (digest) headers["Content-Digest"] = `sha-256=:${digest}:`;
      }
      if (this.isStopped) return;
      await this.put(number, link, part, headers);
      this.arrived.set(number, part.size);
    }

    async linkFor(number) {
      // The site's own address is known by path only: a proxy may have changed its host.
      if (!this.upload.is_direct) return `${this.api.address}${this.upload.id}/parts/${number}/`;
      const known = this.links.get(number);
      if (known && Date.parse(known.expires_at) - Date.now() > LINK_RESERVE_MS) return known.url;
      const numbers = [number, ...this.waiting.slice(0, LINKS_AT_ONCE - 1)];
      const { links } = await this.api.call("POST", `${this.upload.id}/parts/`, { numbers }, this.stopper.signal);
      links.forEach((link) => this.links.set(link.number, link));
      return this.links.get(number).url;
    }

    put(number, url, part, headers) {
      return new Promise((resolve, reject) => {
        const request = new XMLHttpRequest(); // fetch() tells nothing of how much has been sent
        request.open("PUT", url);
        Object.entries(headers).forEach(([name, value]) => request.setRequestHeader(name, value));
        request.upload.addEventListener("progress", (event) => {
          this.underWay.set(number, Math.min(event.loaded, part.size));
          this.changed();
        });
        request.addEventListener("loadend", () => {
          if (request.status >= 200 && request.status < 300) resolve();
          else reject(this.refusal(request));
        });
        this.stopper.signal.addEventListener("abort", () => request.abort(), { once: true });
        request.send(part);
      });
    }

    refusal(request) {
      if (request.status === 0) {
        return new Error(
          this.upload.is_direct
            ? "The bucket cannot be reached, or does not let this page send to it. If this stays so, an administrator " +
              "must run “manage.py configure_bucket”."
            : "The server cannot be reached.",
        );
      }
      if (!this.upload.is_direct) {
        let answer = {};
        try {
          answer = JSON.parse(request.responseText);
        } catch {
          // a page of a proxy
        }
        return new Refused(request.status, messageOf(answer, request.status));
      }
      if (request.status === 404) return new Refused(404, "The bucket has given this upload up. Cancel it and begin again.");
      return new Error(`The bucket answered ${request.status}.`); // 403 is mostly a link that was too old
    }
  }

  async function sha256(part) {
    if (!window.crypto.subtle) return ""; // browsers have it on secure pages only
    const digest = await window.crypto.subtle.digest("SHA-256", await part.arrayBuffer());
    return window.btoa(String.fromCharCode(...new Uint8Array(digest)));
  }

  return { Api, Sending, readable, readableTime };
})();

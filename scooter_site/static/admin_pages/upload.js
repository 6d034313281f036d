// Sends a large file in parts: <div data-uploads-url="/api/v1/uploads/" data-uploads-for="id_archive">.
// When it has arrived, the hidden field "upload" in that part of the page says its id, and the file itself is not posted.
// Without this script the form's own file field does it all in one request.
"use strict";

(() => {
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

  // --- The page ------------------------------------------------------------------------------------------------

  class Panel {
    constructor(holder) {
      this.holder = holder;
      this.input = document.getElementById(holder.dataset.uploadsFor);
      this.form = this.input.form;
      this.fileName = this.input.name;
      this.endings = this.input.accept.split(",").map((ending) => ending.trim().toLowerCase()).filter(Boolean);
      this.api = new Api(holder.dataset.uploadsUrl);
      this.open = [];
      this.part = (name) => holder.querySelector(`[data-part="${name}"]`);
      this.id = holder.querySelector("input[name=upload]");
      this.input.addEventListener("change", () => this.choose());
      this.form.addEventListener("submit", (event) => this.submit(event));
      this.part("toggle").addEventListener("click", () => (this.isSending ? this.sending.stop() : this.go()));
      this.part("cancel").addEventListener("click", () => this.cancel());
      holder.hidden = false;
      this.begin();
    }

    async begin() {
      try {
        if (this.id.value) {
          const upload = await this.api.call("GET", `${this.id.value}/`);
          if (upload.status === "complete") this.arrived(upload);
          else this.id.value = "";
        }
        const { results } = await this.api.call("GET");
        const fitting = results.filter((upload) => upload.id !== this.id.value && this.fits(upload.filename));
        this.open = await Promise.all(fitting.slice(0, 5).map((upload) => this.api.call("GET", `${upload.id}/`)));
        this.showOpen();
      } catch (error) {
        this.say(error.message, true);
      }
    }

    fits(filename) {
      return !this.endings.length || this.endings.some((ending) => filename.toLowerCase().endsWith(ending));
    }

    // --- Choosing ---

    async choose() {
      const [file] = this.input.files;
      if (!file) return;
      this.wanted = null;
      if (!this.fits(file.name)) {
        this.fail(`Choose a file that ends in ${this.endings.join(" or ")}.`);
        return;
      }
      this.holdInput(true);
      this.part("progress").hidden = false;
      this.part("name").textContent = file.name;
      this.show(0, file.size || 1, "");
      this.showButtons();
      this.say("");
      try {
        const known = this.open.find((upload) => this.isSame(upload, file));
        const upload = known
          ? await this.api.call("GET", `${known.id}/`)
          : await this.api.call("POST", "", { filename: file.name, size: file.size });
        this.open = this.open.filter((other) => other.id !== upload.id);
        this.showOpen();
        this.remember(upload.id, file);
        this.sending = new Sending(this.api, upload, file, () => this.showProgress());
        await this.go(Boolean(known));
      } catch (error) {
        this.fail(error.message);
      }
    }

    isSame(upload, file) {
      if (upload.status !== "receiving" || upload.filename !== file.name || upload.size !== file.size) return false;
      const lastModified = window.localStorage.getItem(`scooter-upload-${upload.id}`);
      return lastModified === null || lastModified === String(file.lastModified);
    }

    remember(id, file) {
      window.localStorage.setItem(`scooter-upload-${id}`, String(file.lastModified));
    }

    // --- Sending ---

    async go(isResumed = false) {
      const { sending } = this;
      this.isSending = true;
      this.startedAt = Date.now();
      this.startedWith = sending.bytes;
      this.say(isResumed ? "Going on with what is missing. Keep this page open." : "Sending. Keep this page open.");
      this.showButtons();
      this.showProgress();
      try {
        const isWhole = await sending.run();
        const upload = isWhole ? await this.api.insist("POST", `${sending.upload.id}/complete/`) : null;
        if (sending !== this.sending) return; // cancelled meanwhile
        if (upload) this.arrived(upload);
        else this.paused("Paused. You can close this page, and go on later by choosing the same file again.");
      } catch (error) {
        if (sending === this.sending) this.paused(`Paused: ${error.message}`, true);
      }
    }

    paused(message, isBad = false) {
      this.isSending = false;
      this.wanted = null;
      this.say(message, isBad);
      this.showButtons();
      this.showProgress();
    }

    arrived(upload) {
      this.isSending = false;
      this.sending = null;
      this.upload = upload;
      this.id.value = upload.id;
      window.localStorage.removeItem(`scooter-upload-${upload.id}`);
      this.holdInput(true);
      this.part("progress").hidden = false;
      this.part("name").textContent = upload.filename;
      this.show(upload.size, upload.size, "");
      this.showButtons();
      this.say("The file has arrived. Save to start the import.");
      if (this.wanted) this.form.requestSubmit(this.wanted);
    }

    async cancel() {
      const upload = this.sending ? this.sending.upload : this.upload;
      if (this.sending) this.sending.stop();
      this.reset();
      this.say(`${upload.filename} was cancelled, and what had arrived of it deleted.`);
      this.input.focus();
      await this.remove(upload);
    }

    async remove(upload) {
      window.localStorage.removeItem(`scooter-upload-${upload.id}`);
      try {
        await this.api.insist("DELETE", `${upload.id}/`);
      } catch (error) {
        this.say(`${upload.filename} could not be deleted: ${error.message}`, true);
      }
    }

    // --- Saving ---

    submit(event) {
      if (this.id.value || !this.sending) return;
      event.preventDefault();
      if (this.isSending) {
        this.wanted = event.submitter;
        this.say("The import starts as soon as the file has arrived. Keep this page open.");
      } else {
        this.say("The file has not arrived whole: press Resume, or Cancel.", true);
        this.part("toggle").focus();
      }
    }

    // --- Showing ---

    holdInput(isHeld) {
      // What goes in parts must not be posted as well.
      this.input.disabled = isHeld;
      if (isHeld) this.input.removeAttribute("name");
      else this.input.name = this.fileName;
      this.holder.previousElementSibling.classList.toggle("scooter-held", isHeld);
      this.showOpen();
    }

    reset() {
      this.id.value = "";
      this.sending = null;
      this.upload = null;
      this.wanted = null;
      this.isSending = false;
      this.holdInput(false);
      this.input.value = "";
      this.input.dispatchEvent(new Event("change"));
      this.part("progress").hidden = true;
      this.showButtons();
    }

    fail(message) {
      this.reset();
      this.say(message, true);
      this.input.focus();
    }

    say(text, isBad = false) {
      this.part("message").textContent = text;
      this.part("message").classList.toggle("scooter-error", isBad);
    }

    showProgress() {
      if (!this.sending) return;
      const { bytes, upload } = this.sending;
      const seconds = (Date.now() - this.startedAt) / 1000;
      const rate = (bytes - this.startedWith) / seconds;
      const left = this.isSending && seconds > 2 && rate > 0 ? `, ${readableTime((upload.size - bytes) / rate)}` : "";
      this.show(bytes, upload.size, left);
    }

    show(bytes, size, left) {
      const percent = Math.floor((100 * bytes) / size);
      const bar = this.part("bar");
      bar.setAttribute("aria-valuenow", String(percent));
      bar.setAttribute("aria-valuetext", `${percent} %, ${readable(bytes)} of ${readable(size)}`);
      this.part("filled").style.width = `${percent}%`;
      this.part("figures").textContent =
        bytes === size ? readable(size) : `${readable(bytes)} of ${readable(size)}${left}`;
    }

    showButtons() {
      this.part("toggle").hidden = !this.sending;
      this.part("cancel").hidden = !(this.sending || this.upload);
      this.part("toggle").textContent = this.isSending ? "Pause" : "Resume";
      this.part("cancel").textContent = this.sending ? "Cancel" : "Remove";
    }

    showOpen() {
      const list = this.part("open");
      list.replaceChildren(...this.open.map((upload) => this.openItem(upload)));
      this.part("open-holder").hidden = !this.open.length || this.input.disabled; // one file at a time
    }

    openItem(upload) {
      const item = this.part("open-item").content.firstElementChild.cloneNode(true);
      const isWhole = upload.status === "complete";
      const bytes = upload.parts.reduce((sum, part) => sum + part.size, 0);
      item.querySelector("strong").textContent = upload.filename;
      item.querySelector("span").textContent = isWhole
        ? `${readable(upload.size)}, has arrived and waits for an import.`
        : `${readable(bytes)} of ${readable(upload.size)} have arrived. Choose the same file again to go on.`;
      const [use, drop] = item.querySelectorAll("button");
      use.hidden = !isWhole;
      use.addEventListener("click", () => {
        this.open = this.open.filter((other) => other !== upload);
        this.arrived(upload);
        this.part("cancel").focus();
      });
      drop.setAttribute("aria-label", `Delete ${upload.filename}`);
      drop.addEventListener("click", () => {
        this.open = this.open.filter((other) => other !== upload);
        this.showOpen();
        this.input.focus();
        this.remove(upload);
      });
      return item;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-uploads-url]").forEach((holder) => new Panel(holder));
  });
})();

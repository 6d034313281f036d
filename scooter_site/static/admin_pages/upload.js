// The panel that sends a large file in parts: <div data-uploads-url="/api/v1/uploads/" data-uploads-for="id_archive">.
// When it has arrived, the hidden field "upload" in that part of the page says its id, and the file itself is not posted.
// Without this script the form's own file field does it all in one request.
"use strict";

(() => {
  const { Api, Sending, readable, readableTime } = uploads;

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

// The main study: one image after the other, each answer saved before the next image comes.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("trial-data").textContent);
  const form = document.getElementById("rating-form");
  const next = document.getElementById("next");
  const stage = document.getElementById("stage");
  const stageText = document.getElementById("stage-text");
  const stageNotice = document.getElementById("stage-notice");
  const readout = document.getElementById("readout");
  const progress = document.getElementById("progress");
  const position = document.getElementById("position");
  const csrfToken = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const definition = {
    minimum: data.scale.minimum,
    maximum: data.scale.maximum,
    higherIsModified: data.scale.higher_is_modified,
  };
  const likert = document.getElementById("likert");
  const scale = likert ? new Likert(likert, definition) : new Slider(document.getElementById("slider"), definition);
  const byFinger = window.matchMedia("(pointer: coarse)").matches;
  const sliderHint = byFinger ? "Tap or drag on the scale." : "Click on the scale, or use the arrow keys.";
  const hint = likert ? "Choose a point of the scale." : sliderHint;

  // After an image has appeared the scale stays closed for a moment: the second click of a double click, and a key
  // pressed twice, belong to the image before.
  const GUARD_MS = 250;
  const RETRY_SECONDS = [0.5, 1, 2, 4, 8];
  const REQUEST_SECONDS = 20;
  const STORE = `rating ${data.run_url}`;

  let trial = null;
  let state = "loading"; // -> open -> saving -> loading ...
  let shownAt = 0;
  let firstInteraction = null;
  let lastInteraction = null;
  let focusLosses = 0;

  // --- Waiting -----------------------------------------------------------------------------------------------

  const seconds = (count) => new Promise((resolve) => setTimeout(resolve, count * 1000));
  const retryPause = (attempt) => {
    const backOnline = new Promise((resolve) => window.addEventListener("online", resolve, { once: true }));
    return Promise.race([seconds(RETRY_SECONDS[Math.min(attempt, RETRY_SECONDS.length - 1)]), backOnline]);
  };
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

  function tell(message) {
    stageNotice.textContent = message;
    stageNotice.hidden = !message;
  }

  // --- Images ------------------------------------------------------------------------------------------------

  const preloaded = new Map(); // address -> image element, kept only for the items that come next

  function fetchImage(address) {
    const image = new Image();
    image.src = address;
    return image;
  }

  function preload(addresses) {
    for (const address of [...preloaded.keys()]) if (!addresses.includes(address)) preloaded.delete(address);
    for (const address of addresses) if (!preloaded.has(address)) preloaded.set(address, fetchImage(address));
  }

  // Resolves with an image that is really decoded, however long that takes.
  async function decoded(address) {
    let image = preloaded.get(address) || fetchImage(address);
    const slow = setTimeout(() => tell("Loading the image…"), 1000);
    for (let attempt = 0; ; attempt += 1) {
      try {
        await image.decode();
        clearTimeout(slow);
        return image;
      } catch {
        clearTimeout(slow);
        tell("The image has not arrived yet. We keep trying; nothing is lost.");
        await retryPause(attempt);
        const answer = await fetch(address, { cache: "reload" }).catch(() => null);
        if (answer && (answer.status === 403 || answer.status === 404)) reload();
        image = fetchImage(address);
      }
    }
  }

  // --- Answers that are on their way --------------------------------------------------------------------------

  // Kept until acknowledged, so that a reload in the middle sends the answer again instead of losing it.
  function keep(answer) {
    try {
      if (answer) sessionStorage.setItem(STORE, JSON.stringify(answer));
      else sessionStorage.removeItem(STORE);
    } catch {
      // A browser that stores nothing still has the answer in this page.
    }
  }

  function kept() {
    try {
      return JSON.parse(sessionStorage.getItem(STORE));
    } catch {
      return null;
    }
  }

  // --- The server --------------------------------------------------------------------------------------------

  const stopped = () => new Promise(() => {}); // the page is about to be replaced

  function reload() {
    window.location.replace(data.run_url);
    return stopped();
  }

  // Post until the server has acknowledged it. The same token makes a repeat harmless.
  async function save(answer) {
    for (let attempt = 0; ; attempt += 1) {
      const abort = new AbortController();
      const limit = setTimeout(() => abort.abort(), REQUEST_SECONDS * 1000);
      try {
        const { reloads, ...body } = answer;
        const response = await fetch(data.rate_url, {
          method: "POST",
          headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken },
          body: JSON.stringify(body),
          signal: abort.signal,
        });
        if (response.ok) return await response.json();
        if (response.status < 500) return refused(response, answer);
      } catch {
        // No connection, or no answer in time: tried again below.
      } finally {
        clearTimeout(limit);
      }
      tell(
        navigator.onLine
          ? "Saving takes longer than usual. We keep trying; please leave this page open."
          : "You are offline. Your answer is kept and will be saved as soon as the connection is back.",
      );
      await retryPause(attempt);
    }
  }

  async function refused(response, answer) {
    if (response.status === 400) {
      keep(null);
      const body = await response.json().catch(() => ({}));
      tell(`${body.error || "The answer was not accepted."} Please answer this item again.`);
      return null;
    }
    // The session is over, or this page is too old to post: the page of the current step knows more.
    const reloads = (answer.reloads || 0) + 1;
    if (reloads > 3) {
      tell("Your answer could not be saved. Please open your link again; you continue at this image.");
      keep(null);
      return stopped();
    }
    keep({ ...answer, reloads });
    return reload();
  }

  // --- The items ----------------------------------------------------------------------------------------------

  async function show(answer) {
    if (!answer.trial) {
      await reload();
      return;
    }
    trial = answer.trial;
    state = "loading";
    clearStage();
    scale.reset();
    readout.textContent = "";
    preload([trial, ...answer.upcoming].map((item) => item.image).filter(Boolean));
    progress.value = trial.position - 1;
    position.textContent = `${trial.position} of ${trial.total}`;
    if (trial.image) {
      const image = await decoded(trial.image);
      image.className = "stage-image";
      image.alt = `Image ${trial.position} of ${trial.total}`;
      image.draggable = false;
      stage.append(image);
    } else {
      stageText.textContent = trial.text;
      stageText.hidden = false;
    }
    tell("");
    await painted();
    shownAt = performance.now();
    firstInteraction = null;
    lastInteraction = null;
    focusLosses = 0;
    await seconds(GUARD_MS / 1000);
    open();
  }

  function clearStage() {
    for (const image of stage.querySelectorAll("img")) image.remove();
    stageText.hidden = true;
    tell("");
  }

  function open() {
    state = "open";
    readout.textContent = hint;
    readout.classList.add("is-hint");
    scale.open();
    scale.focus();
  }

  scale.onChange = () => {
    lastInteraction = Math.round(performance.now() - shownAt);
    firstInteraction ??= lastInteraction;
    const isAnswered = scale.value !== null;
    next.disabled = !isAnswered;
    readout.textContent = isAnswered ? scale.description : hint;
    readout.classList.toggle("is-hint", !isAnswered);
  };

  async function submit() {
    if (state !== "open" || scale.value === null) return;
    const answer = {
      token: trial.token,
      value: scale.value,
      touched: firstInteraction !== null,
      start_position: null, // neither widget shows a position before it is answered
      response_ms: Math.round(performance.now() - shownAt),
      first_interaction_ms: firstInteraction,
      last_interaction_ms: lastInteraction,
      focus_losses: Math.min(focusLosses, 9999),
    };
    await send(answer);
  }

  async function send(answer) {
    state = "saving";
    scale.close();
    next.disabled = true;
    keep(answer);
    const reply = await save(answer);
    if (reply) {
      keep(null);
      await show(reply);
    } else {
      state = "open";
      scale.open();
      scale.focus();
      next.disabled = scale.value === null;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("a, button:not(#next), summary, select, #preview-step, .preview-banner")) return;
    event.preventDefault(); // one way to submit by Enter, wherever else the focus is
    if (!event.repeat) submit();
  });
  window.addEventListener("blur", () => {
    focusLosses += 1;
  });

  const unsaved = kept();
  if (unsaved && data.trial && unsaved.token === data.trial.token) {
    send(unsaved);
  } else {
    keep(null);
    show(data);
  }
})();

// The main study's page: one item after the other. The server says which; the page goes ahead of it only while the
// connection fails, and by a few answers at most.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("trial-data").textContent);
  const form = byId("rating-form");
  const next = byId("next");
  const back = byId("back");
  const stageImages = byId("stage-images");
  const stageText = byId("stage-text");
  const stageNotice = byId("stage-notice");
  const pauseBox = byId("break");
  const viewing = byId("viewing");
  const readout = byId("readout");
  const remaining = byId("remaining");
  const csrfToken = form.querySelector("[name=csrfmiddlewaretoken]").value;

  const definition = {
    minimum: data.scale.minimum,
    maximum: data.scale.maximum,
    higherIsModified: data.scale.higher_is_modified,
  };
  const likert = byId("likert");
  const scale = likert ? new Likert(likert, definition) : new Slider(byId("slider"), definition);
  const byFinger = window.matchMedia("(pointer: coarse)").matches;
  const sliderHint = byFinger ? "Tap or drag on the scale." : "Click on the scale, or use the arrow keys.";
  const hint = likert ? "Choose a point of the scale." : sliderHint;

  // After an image has appeared the scale stays closed for a moment: the second click of a double click, and a key
  // pressed twice, belong to the image before.
  const GUARD_MS = 250;
  // So long the page waits for the server to have an answer before it goes on without.
  const PATIENCE_SECONDS = 0.8;

  const store = ratingStore(form.dataset.participation);
  const clock = new ItemClock();
  const pace = new Pace(store, data.minutes, data.trial.total);
  const queue = new AnswerQueue(store, { url: data.rate_url, csrfToken });
  const images = new Images({ onSlow: tell, onGone: reloadOnce });

  let items = []; // what the server said last: the item it is at, and a few that follow
  let current = null; // the item on the screen
  let shownSize = { shown_width: null, shown_height: null };
  // loading -> open -> sending -> loading ...; also: break, waiting (for the connection), left (this page is over)
  let state = "loading";
  let hasTrouble = false;

  function tell(message) {
    stageNotice.textContent = message;
    stageNotice.hidden = !message;
  }

  // --- Leaving this page --------------------------------------------------------------------------------------

  function reload() {
    state = "left";
    queue.stop();
    window.location.replace(data.run_url);
  }

  // The server knows no such image for this page, so the page may be outdated; if that does not help, we keep trying.
  function reloadOnce(address) {
    if (store.read("gone", null) === address) return;
    store.write("gone", address);
    reload();
  }

  // Two tabs would answer the same items: the one opened last goes on.
  function giveWayToLaterTabs() {
    if (!window.BroadcastChannel) return; // then both follow the server
    const channel = new BroadcastChannel(store.key);
    channel.addEventListener("message", () => {
      state = "left";
      queue.stop();
      byId("study").remove();
      byId("elsewhere").hidden = false;
      byId("continue-here").focus();
    });
    channel.postMessage("opened");
    byId("continue-here").addEventListener("click", reload);
  }

  // --- What the server says -----------------------------------------------------------------------------------

  // Whether there is still something to answer here.
  function take(reply) {
    if (!reply.trial) {
      store.clear();
      reload();
      return false;
    }
    items = [reply.trial, ...reply.upcoming];
    return true;
  }

  queue.canSend = (answer) => items.findIndex((item) => item.token === answer.token) <= 0;

  queue.onStored = (answer, reply) => {
    if (state === "left") return;
    hasTrouble = false;
    if (!take(reply)) return;
    tellRemaining();
    const isAhead = current && current.token !== answer.token && items.some((item) => item.token === current.token);
    if (isAhead) allowBack();
    else advance();
  };

  queue.onTrouble = () => {
    if (state === "left") return;
    hasTrouble = true;
    tellRemaining();
    if (state === "sending") advance();
    else if (state === "waiting") tellWaiting();
  };

  queue.onRefused = (answer, message) => {
    if (state === "left") return;
    const item = items.find((other) => other.token === answer.token);
    if (item) show(item, `${message} Please answer this item again.`);
    else reload();
  };

  queue.onOutdated = reload;

  // --- The items ----------------------------------------------------------------------------------------------

  function advance() {
    const item = queue.isFull ? null : items.find((other) => !queue.has(other.token));
    if (!item) wait();
    else if (isBreakDue(item)) offerBreak(item);
    else show(item);
  }

  async function show(item, message = "") {
    begin("loading", item);
    const addresses = imagesOf(item);
    images.keep([...addresses, ...imagesAfter(item)]);
    const shown = [];
    for (const address of addresses) shown.push(await images.shown(address));
    if (current !== item || state !== "loading") return;
    place(item, shown);
    tell(message);
    await painted();
    if (current !== item || state !== "loading") return;
    measure(shown[0]);
    clock.start();
    await look(item);
    if (current === item && state === "loading") open(item);
  }

  function begin(newState, item) {
    state = newState;
    current = item;
    stageImages.replaceChildren();
    stageText.hidden = true;
    pauseBox.hidden = true;
    tell("");
    scale.close();
    scale.reset();
    next.disabled = true;
    if (back) back.disabled = true;
    sayHint("");
    if (!item) return;
    byId("progress").value = item.position - 1;
    byId("position").textContent = `${item.position} of ${item.total}`;
    tellRemaining();
  }

  function imagesOf(item) {
    return [item.image, item.second_image].filter((address) => address);
  }

  function imagesAfter(item) {
    return items.filter((other) => other.position > item.position).flatMap(imagesOf);
  }

  function place(item, shown) {
    shown.forEach((image, index) => {
      const name = `Image ${item.position} of ${item.total}`;
      image.className = "stage-image";
      image.alt = shown.length > 1 ? `${name}, ${index ? "right" : "left"}` : name;
      image.draggable = false;
      const slot = document.createElement("div");
      slot.className = "stage-slot";
      slot.append(image);
      stageImages.append(slot);
    });
    stageImages.hidden = shown.length === 0;
    stageText.textContent = item.text || "";
    stageText.hidden = !item.text;
  }

  // The image as it is shown, in pixels of the device.
  function measure(image) {
    const box = image ? image.getBoundingClientRect() : null;
    const pixels = (length) => Math.round(length * window.devicePixelRatio);
    shownSize = {
      shown_width: box ? pixels(box.width) : null,
      shown_height: box ? pixels(box.height) : null,
    };
  }

  // Until it has been in sight for as long as the study wants.
  async function look(item) {
    if (item.exposure_ms) {
      await clock.seen(item.exposure_ms);
      if (current === item) stageImages.replaceChildren();
    }
    const isNew = item.image && item.answer === null;
    const wanted = Math.max(GUARD_MS, isNew ? data.minimum_viewing_ms : 0);
    const isLong = wanted > GUARD_MS;
    if (isLong) sayHint("Look at the image first.");
    viewing.hidden = !isLong;
    const filling = viewing.animate([{ transform: "scaleX(0)" }, { transform: "scaleX(1)" }], wanted);
    await clock.seen(wanted);
    filling.cancel();
    viewing.hidden = true;
  }

  function open(item) {
    scale.reset(item.answer);
    reopen();
  }

  // With whatever is set on the scale.
  function reopen() {
    state = "open";
    scale.open();
    scale.focus();
    followScale();
    allowBack();
  }

  function sayHint(text) {
    readout.textContent = text;
    readout.classList.toggle("is-hint", text !== "");
  }

  function followScale() {
    next.disabled = scale.value === null;
    sayHint(scale.value === null ? hint : "");
    if (scale.value !== null) readout.textContent = scale.description;
  }

  scale.onAnswer = () => {
    clock.touch();
    tell("");
    followScale();
  };
  scale.onRestore = followScale;

  // --- Answering ----------------------------------------------------------------------------------------------

  async function submit() {
    if (state !== "open" || scale.value === null) return;
    const item = current;
    const isRevision = item.answer !== null;
    state = "sending";
    scale.close();
    next.disabled = true;
    if (back) back.disabled = true;
    const isKept = isRevision && scale.value === item.answer;
    const following = items.filter((other) => other.position > item.position);
    if (isKept && following.length) {
      items = following;
      advance();
      return;
    }
    if (isKept) clock.touch(); // what follows only the server knows: it is sent the answer once more
    if (!isRevision) pace.add(clock.elapsed);
    queue.add({
      position: item.position,
      token: item.token,
      value: scale.value,
      touched: true,
      start_position: null, // neither widget shows a position before it is answered
      ...(isRevision ? { revision: true } : {}),
      ...clock.measurements,
      ...shownSize,
    });
    tellRemaining();
    if (navigator.onLine) await seconds(PATIENCE_SECONDS);
    if (current === item && state === "sending") advance();
  }

  function allowBack() {
    if (back) back.disabled = !(state === "open" && current.position > 1 && queue.isEmpty);
  }

  async function goBack() {
    if (state !== "open") return;
    const item = current;
    state = "sending";
    scale.close();
    back.disabled = true;
    const reply = await postJson(data.back_url, csrfToken, { token: item.token });
    if (state === "left") return;
    if (!reply) {
      reopen();
      tell("Going back needs a connection. You can go on meanwhile.");
    } else if (!reply.ok) {
      reload();
    } else if (take(reply.content)) {
      show(items[0]);
    }
  }

  // --- Connection and breaks ----------------------------------------------------------------------------------

  const count = (answers) => (answers === 1 ? "1 answer" : `${answers} answers`);

  function tellRemaining() {
    const isOffline = hasTrouble || !navigator.onLine;
    const kept = queue.waiting.length;
    remaining.classList.toggle("is-offline", isOffline);
    if (isOffline) remaining.textContent = kept ? `No connection: ${count(kept)} kept` : "No connection";
    else if (current) remaining.textContent = pace.remaining(current.total - current.position + 1);
  }

  function wait() {
    begin("waiting", null);
    tellWaiting();
  }

  function tellWaiting() {
    const kept = queue.waiting.length;
    const [what, are, they] = kept === 1 ? ["answer", "is", "it is"] : [`${kept} answers`, "are", "they are"];
    tell(
      hasTrouble || !navigator.onLine
        ? `There is no connection. Your last ${what} ${are} kept in this browser, even if you close it. As soon as ` +
            `the connection is back ${they} saved and you go on here; you need not do anything.`
        : `Saving your last ${what}…`,
    );
  }

  function isBreakDue(item) {
    const answered = item.position - 1;
    const isPlace = data.break_every > 0 && answered > 0 && answered % data.break_every === 0;
    return isPlace && item.answer === null && store.read("break", 0) < item.position;
  }

  function offerBreak(item) {
    begin("break", item);
    images.keep([...imagesOf(item), ...imagesAfter(item)]);
    byId("break-text").textContent = `${item.position - 1} of ${item.total} done. Take a short break if you like.`;
    pauseBox.hidden = false;
    byId("break-end").focus();
  }

  byId("break-end").addEventListener("click", () => {
    if (state !== "break") return;
    store.write("break", current.position);
    advance();
  });

  // ------------------------------------------------------------------------------------------------------------

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  if (back) back.addEventListener("click", goBack);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("a, button:not(#next), summary, select, #preview-step, .preview-banner")) return;
    event.preventDefault(); // one way to submit by Enter, wherever else the focus is
    if (!event.repeat) submit();
  });
  window.addEventListener("online", tellRemaining);
  window.addEventListener("offline", tellRemaining);

  giveWayToLaterTabs();
  take(data);
  advance();
  queue.send(); // what an earlier visit could not send
})();

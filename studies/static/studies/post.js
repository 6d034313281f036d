// A request of the main study's page.
"use strict";

const REQUEST_SECONDS = 20;

// What the server has decided: its status, and what it says. Null if it has not: no connection, nothing in time, a
// server in trouble, or a success that is not ours, such as the page of a hotel's network.
async function postJson(url, csrfToken, body) {
  const abort = new AbortController();
  const limit = setTimeout(() => abort.abort(), REQUEST_SECONDS * 1000);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken },
      body: JSON.stringify(body),
      signal: abort.signal,
      keepalive: true, // the page may be closed meanwhile
    });
    const { ok, status } = response;
    const content = await response.json().catch(() => null);
    const isTemporary = status >= 500 || status === 408 || status === 429;
    return isTemporary || (ok && !content) ? null : { ok, status, content };
  } catch {
    return null;
  } finally {
    clearTimeout(limit);
  }
}

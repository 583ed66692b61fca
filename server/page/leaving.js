// Ends the session of a tab that is closed.
//
// A call that was stopped a moment ago has its session until its step ends, and so long the server refuses to close it.
// When the tab is gone, no script of the page can try again, so a service worker does (leaving_worker.js). Browsers have
// those for HTTPS and for the own machine. Elsewhere the server ends such a session when it has been idle for too long.

import { closeSession, currentToken } from "./api.js";

let worker = null;

async function prepare() {
  if (navigator.serviceWorker === undefined) return;
  try {
    await navigator.serviceWorker.register("leaving_worker.js");
    worker = (await navigator.serviceWorker.ready).active;
  } catch {
    // A person can forbid it, and the page does without.
  }
}

prepare();

// Ends the session of `current()` when the tab is closed. `current()` returns {model, id, running}, or null without a
// session; `running`: the controller of the call that uses it, or null.
export function closeWhenLeaving(current) {
  // The worker has to know before the page is gone. It waits until the page is, because a person may also stay.
  addEventListener("beforeunload", () => {
    const now = current();
    if (now !== null && now.running !== null) {
      (worker ?? navigator.serviceWorker?.controller)?.postMessage({ model: now.model, sessionId: now.id, token: currentToken() });
    }
  });
  addEventListener("pagehide", () => {
    const now = current();
    if (now === null) return;
    now.running?.abort();
    closeSession(now.model, now.id).catch(() => {}); // nobody would see the error
  });
}

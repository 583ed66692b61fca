// The service worker that ends sessions of tabs that were closed while a call used them. It answers no requests of pages.

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;
const GIVE_UP_MS = 120_000;
const GONE_MS = 5000;
const IN_USE = 409; // another call has the session

const sleep = (milliseconds) => new Promise((resolve) => {
  setTimeout(resolve, milliseconds);
});

// Whether the page has gone within a few seconds.
async function isGone(page) {
  const end = Date.now() + GONE_MS;
  while (Date.now() < end) {
    if ((await self.clients.get(page)) === undefined) return true;
    await sleep(FIRST_PAUSE_MS);
  }
  return false;
}

async function close({ model, sessionId, token }) {
  const end = Date.now() + GIVE_UP_MS;
  for (let pause = FIRST_PAUSE_MS; Date.now() < end; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    await sleep(pause);
    const response = await fetch("longshort.v1.Sessions/CloseSession", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-session-id": sessionId,
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ model, sessionId }),
    }).catch(() => null); // no connection: the next try may have one
    if (response !== null && response.status !== IN_USE) return;
  }
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("message", (event) => {
  event.waitUntil(isGone(event.source.id).then((gone) => gone && close(event.data)));
});

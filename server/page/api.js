// Calls of the server by the Connect protocol in JSON, with the tab's token, and their errors in words.

const TOKEN = "longshort.token";
const WORDS = {
  aborted: "Another call is using this session.",
  canceled: "The call was stopped.",
  data_loss: "Data were lost on the way.",
  deadline_exceeded: "The call took too long.",
  failed_precondition: "The model cannot do this.",
  internal: "The server failed.",
  invalid_argument: "The server does not accept this.",
  not_found: "The server does not have this.",
  permission_denied: "Your token does not allow this.",
  resource_exhausted: "The server is full.",
  unauthenticated: "The server asks for a token.",
  unavailable: "The server cannot take calls now.",
  unimplemented: "This server cannot do this.",
};
// HTTP statuses of answers that have no code: of a proxy, or of the server before it has read the call.
const CODES = {
  400: "invalid_argument", 401: "unauthenticated", 403: "permission_denied", 404: "unimplemented",
  408: "deadline_exceeded", 413: "invalid_argument", 429: "resource_exhausted", 502: "unavailable",
  503: "unavailable", 504: "deadline_exceeded",
};

export class CallError extends Error {
  // `retryAfter`: seconds, if the server asks to call again.
  constructor(code, message, retryAfter = null) {
    const words = WORDS[code] ?? "The call failed.";
    super(message ? `${words} ${sentence(message)}` : words);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

// With a capital and a full stop.
export function sentence(text) {
  const trimmed = text.trim();
  const start = /^[a-z]+[ ,']/.test(trimmed) ? trimmed[0].toUpperCase() + trimmed.slice(1) : trimmed;
  return /[.!?]$/.test(start) ? start : `${start}.`;
}

let asking = null;
let ask = async () => null;

// `dialog(reason)` asks the person for a token; it resolves to the token, or null.
export function askBy(dialog) {
  ask = dialog;
}

export const currentToken = () => sessionStorage.getItem(TOKEN);
export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

// Asks once for all calls that wait for a token. Resolves to whether there is a new one.
export function askForToken(reason = "") {
  asking ??= ask(reason)
    .then((token) => {
      if (token !== null) sessionStorage.setItem(TOKEN, token);
      return token !== null;
    })
    .finally(() => {
      asking = null;
    });
  return asking;
}

function headersOf(type, session) {
  const token = sessionStorage.getItem(TOKEN);
  return {
    ...(type ? { "content-type": type } : {}),
    ...(session ? { "x-session-id": session } : {}), // a proxy sends the calls of a session to one server
    ...(token ? { authorization: `Bearer ${token}` } : {}),
  };
}

const sessionOf = (message) => message.session?.id ?? message.sessionId;

async function request(path, options) {
  try {
    return await fetch(new URL(path, document.baseURI), { ...options, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError("unavailable", "It does not answer. Is it still running?");
  }
}

async function errorOf(response) {
  const text = await response.text();
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    body = { message: text.length < 300 && !text.includes("<") ? text : "" };
  }
  const after = Number(response.headers.get("retry-after"));
  return new CallError(
    body.code ?? CODES[response.status] ?? "unknown",
    body.message ?? body.detail ?? "",
    response.headers.has("retry-after") && Number.isFinite(after) ? after : null,
  );
}

// An answer with status 200. Asks for a token where the server wants one, unless the call is `quiet`.
async function send(path, { type, session, quiet = false, ...options }) {
  for (;;) {
    const used = sessionStorage.getItem(TOKEN);
    const response = await request(path, { ...options, headers: headersOf(type, session) });
    if (response.ok) return response;
    const error = await errorOf(response);
    if (error.code !== "unauthenticated" || quiet) throw error;
    // Another call may have got a token meanwhile.
    if (sessionStorage.getItem(TOKEN) !== used) continue;
    if (!(await askForToken(used === null ? "" : error.message))) throw error;
  }
}

// The answer to a message in JSON.
export async function post(path, message, { signal, quiet, keepalive } = {}) {
  const body = JSON.stringify(message);
  const session = sessionOf(message);
  return (await send(path, { method: "POST", type: "application/json", session, body, signal, quiet, keepalive })).json();
}

// A unary call: `method` as "Inference/ScoreText".
export const call = (method, message, options) => post(`longshort.v1.${method}`, message, options);

// The text of a GET.
export async function get(path, { signal, quiet } = {}) {
  return (await send(path, { signal, quiet })).text();
}

function envelope(message) {
  const body = new TextEncoder().encode(JSON.stringify(message));
  const whole = new Uint8Array(5 + body.length);
  new DataView(whole.buffer).setUint32(1, body.length);
  whole.set(body, 5);
  return whole;
}

// The messages of a server stream. Leaving the loop, or aborting `signal`, cancels the call.
export async function* stream(method, message, { signal } = {}) {
  const type = "application/connect+json";
  const session = sessionOf(message);
  const response = await send(`longshort.v1.${method}`, { method: "POST", type, session, body: envelope(message), signal });
  const reader = response.body.getReader();
  let data = new Uint8Array(0);
  try {
    for (;;) {
      let start = 0;
      while (data.length - start >= 5) {
        const view = new DataView(data.buffer, data.byteOffset + start);
        const end = start + 5 + view.getUint32(1);
        if (data.length < end) break;
        const content = JSON.parse(new TextDecoder().decode(data.subarray(start + 5, end)));
        if (view.getUint8(0) & 2) {
          if (content.error) throw new CallError(content.error.code, content.error.message);
          return;
        }
        yield content;
        start = end;
      }
      const { value, done } = await reader.read();
      if (done) throw new CallError("unavailable", "The connection broke before the end of the answer.");
      const rest = data.subarray(start);
      data = new Uint8Array(rest.length + value.length);
      data.set(rest);
      data.set(value, rest.length);
    }
  } catch (error) {
    if (error instanceof TypeError) throw new CallError("unavailable", "The connection broke.");
    throw error;
  } finally {
    reader.cancel().catch(() => {}); // of a stream that has ended, or was aborted: nothing is left to cancel
  }
}

// Bytes in JSON.
export function toBase64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

export const fromBase64 = (text = "") => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

// An id for a session that no other tab has. crypto.randomUUID is missing where the page comes by plain HTTP.
export function newSessionId() {
  const numbers = crypto.getRandomValues(new Uint8Array(12));
  return `page-${[...numbers].map((number) => number.toString(16).padStart(2, "0")).join("")}`;
}

// Waits while a call uses the session. A call that was stopped does until its step ends, which takes seconds on a busy
// server. Returns whether there is such a session. (To try would be refused, and a refusal is a red line in the console.)
export async function whenFree(model, sessionId, signal) {
  for (let pause = 0.1; ; pause = Math.min(2 * pause, 4)) {
    await sleep(pause, signal);
    const session = await findSession(model, sessionId, signal);
    if (!session?.inUse) return session !== undefined;
  }
}

async function findSession(model, sessionId, signal) {
  let pageToken = "";
  do {
    const page = await call("Sessions/ListSessions", { model, pageToken }, { quiet: true, signal });
    const found = page.sessions?.find((one) => one.sessionId === sessionId);
    if (found !== undefined) return found;
    pageToken = page.nextPageToken ?? "";
  } while (pageToken !== "");
  return undefined;
}

// Ends a session; the call goes out even while the page closes. `stopped`: a call that used it was stopped just now.
export async function closeSession(model, sessionId, { stopped = false } = {}) {
  for (;;) {
    // No call has created it, or the server has ended it.
    if (stopped && !(await whenFree(model, sessionId))) return;
    try {
      await call("Sessions/CloseSession", { model, sessionId }, { quiet: true, keepalive: true });
      return;
    } catch (error) {
      if (error.code === "not_found") return;
      if (error.code !== "aborted") throw error;
      stopped = true;
    }
  }
}

export function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}

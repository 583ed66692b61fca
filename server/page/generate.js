// The view Generate: streams a continuation into a conversation, which is a session on the server.

import { closeSession, fromBase64, newSessionId, sleep, stream } from "./api.js";
import { bar, byId, count, make, percent, say, seconds, several, short } from "./dom.js";
import { bitsOf, visible } from "./surprise.js";
import { Transcript } from "./transcript.js";

const TOP_ALTERNATIVES = 5;
// An answer lists at most so many tokens, alternatives included.
const LISTED = 131072;

export function makeGenerate(models) {
  const form = byId("generate-form");
  const prompt = byId("prompt");
  const transcript = new Transcript(byId("transcript"));
  const status = byId("generate-status");
  const start = byId("generate-start");
  const stop = byId("generate-stop");
  const fresh = byId("generate-new");
  const temperature = byId("temperature");
  const selected = models.choice(byId("generate-model"), (model) => model.languageModel && model.tokenizer !== "none");
  let conversation = null; // {model, id, tokens}: tokens in the session, of what this page has received
  let running = null;

  async function generate() {
    const model = selected();
    if (model === null) return say(status, "The server has no language model that gives text.", true);
    if (prompt.value === "" && conversation === null) return say(status, "There is no prompt yet: type how the text begins.", true);
    conversation ??= { model: { name: model.name, version: model.version }, id: newSessionId(), tokens: 0 };
    running = new AbortController();
    start.disabled = true;
    stop.disabled = false;
    fresh.disabled = true;
    const words = prompt.value;
    const maxTokens = byId("max-tokens").valueAsNumber;
    transcript.say(words);
    const request = {
      model: conversation.model,
      ...(words === "" ? {} : { prompt: { text: words } }),
      maxTokens: String(maxTokens),
      sampling: { temperature: temperature.valueAsNumber, ...(byId("seed").value ? { seed: byId("seed").value } : {}) },
      session: { id: conversation.id, expectedTokens: String(conversation.tokens), mustExist: conversation.tokens > 0 },
      keepPartial: true,
      tokenLogProbabilities: true,
      topAlternatives: Math.max(0, Math.min(TOP_ALTERNATIVES, Math.floor(LISTED / maxTokens) - 1)),
    };
    prompt.value = "";
    say(status, "Generating …");
    const began = performance.now();
    const figures = { tokens: 0, seed: null, first: null, reason: null, cached: 0 };
    let mayExist = false;
    try {
      for await (const message of patiently(request)) take(message, figures, began);
      const ended = figures.reason === "FINISH_REASON_STOP" ? "Finished at a stop string." : "Finished.";
      say(status, `${ended} ${summary(figures, began)}`);
    } catch (error) {
      const stopped = error.name === "AbortError";
      mayExist = stopped || error.code === "unavailable";
      // Without a conversation, another model was chosen.
      if (stopped && conversation !== null) say(status, `Stopped. ${summary(figures, began)}`);
      else if (!stopped) say(status, error.message, true);
      // Nothing of this turn is in the session: the next call says the prompt again.
      if (figures.tokens === 0) {
        transcript.takeBack();
        prompt.value = words;
      }
    }
    transcript.finish();
    running = null;
    start.disabled = false;
    stop.disabled = true;
    if (conversation === null) return;
    fresh.disabled = false;
    start.textContent = "Continue";
    if (conversation.tokens === 0) {
      // A call that was stopped this early, or whose connection broke, may still create the session.
      if (mayExist) close({ stopped: true });
      else forget();
    }
  }

  // Repeats a call whose session is still in use by one that was stopped, until that one's step ends.
  async function* patiently(request) {
    for (let pause = 0.1; ; pause = Math.min(2 * pause, 1)) {
      try {
        yield* stream("Inference/GenerateStream", request, { signal: running.signal });
        return;
      } catch (error) {
        if (error.code !== "aborted") throw error;
        await sleep(pause, running.signal);
      }
    }
  }

  function take(message, figures, began) {
    if (message.start) figures.seed = message.start.seed ?? "0";
    if (message.delta) {
      figures.first ??= (performance.now() - began) / 1000;
      figures.tokens += Number(message.delta.tokenCount ?? 0);
      if (message.delta.sessionTokens) conversation.tokens = Number(message.delta.sessionTokens);
      transcript.add(message.delta.tokens ?? []);
    }
    if (message.end) figures.reason = message.end.finishReason;
    if (message.summary) {
      conversation.tokens = Number(message.summary.sessionTokens ?? conversation.tokens);
      figures.cached = Number(message.summary.usage?.cachedTokens ?? 0);
    }
  }

  function summary(figures, began) {
    const parts = [several(figures.tokens, "token")];
    const took = (performance.now() - began) / 1000 - (figures.first ?? 0);
    if (figures.first !== null) parts.push(`the first after ${seconds(figures.first)}`);
    if (figures.tokens > 1 && took > 0) parts.push(`${short(figures.tokens / took, 3)} tokens/s`);
    if (figures.cached > 0) parts.push(`${count(figures.cached)} read before`);
    if (figures.seed !== null) parts.push(`seed ${figures.seed}`);
    return `${parts.join(", ")}.`;
  }

  function forget() {
    conversation = null;
    fresh.disabled = true;
    start.textContent = "Generate";
  }

  async function close(options) {
    const { model, id } = conversation;
    forget();
    try {
      await closeSession(model, id, options);
    } catch (error) {
      // The server ends an idle session by itself.
      say(status, error.message, true);
    }
  }

  function startNew() {
    transcript.clear();
    say(status, "");
    if (conversation !== null) close({ stopped: running !== null });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const field of [byId("max-tokens"), byId("seed")]) if (!field.reportValidity()) return;
    if (running === null) generate();
  });
  prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  stop.addEventListener("click", () => running?.abort());
  fresh.addEventListener("click", startNew);
  byId("generate-model").addEventListener("change", () => {
    const model = selected();
    if (model !== null) byId("max-tokens").max = model.limits.maxTokens;
    if (conversation !== null) {
      running?.abort();
      startNew();
    }
  });
  temperature.addEventListener("input", () => {
    byId("temperature-value").textContent = temperature.value;
  });
  byId("generate-colour").addEventListener("change", (event) => byId("transcript").classList.toggle("coloured", event.target.checked));
  addEventListener("pagehide", () => {
    // The page is closing, so no error is shown.
    if (conversation !== null) closeSession(conversation.model, conversation.id).catch(() => {});
  });
  new Alternatives(byId("transcript"), byId("popup"));
}

// The popup with the alternatives of a token, below the pointer or the focus.
class Alternatives {
  constructor(transcript, popup) {
    this.transcript = transcript;
    this.popup = popup;
    this.shown = null;
    // Not pointerover, which also follows when the text moves below a pointer that rests.
    transcript.addEventListener("pointermove", (event) => this.show(event.target));
    transcript.addEventListener("focusin", (event) => this.show(event.target));
    transcript.addEventListener("focusout", () => this.hide());
    for (const element of [transcript, popup]) {
      element.addEventListener("pointerleave", (event) => {
        if (!popup.contains(event.relatedTarget) && !transcript.contains(event.relatedTarget)) this.hide();
      });
    }
    transcript.addEventListener("scroll", () => this.hide(), { passive: true });
    transcript.addEventListener("click", (event) => event.target.tokens && event.target.focus());
    transcript.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.hide());
  }

  show(span) {
    if (!span.tokens || span === this.shown) return;
    this.hide();
    this.shown = span;
    this.popup.replaceChildren(...span.tokens.map(describe));
    this.popup.hidden = false;
    span.setAttribute("aria-describedby", this.popup.id);
    const at = span.getClientRects()[0];
    const box = this.popup.getBoundingClientRect();
    const below = at.bottom + box.height + 12 < innerHeight;
    const left = Math.max(8, Math.min(innerWidth - box.width - 8, at.left - 12));
    this.popup.style.left = `${left + scrollX}px`;
    this.popup.style.top = `${(below ? at.bottom + 4 : at.top - box.height - 4) + scrollY}px`;
  }

  hide() {
    this.shown?.removeAttribute("aria-describedby");
    this.shown = null;
    this.popup.hidden = true;
  }

  onKey(event) {
    const spans = this.transcript.getElementsByClassName("token");
    const steps = { ArrowLeft: -1, ArrowUp: -10, ArrowRight: 1, ArrowDown: 10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || spans.length === 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const now = [...spans].indexOf(document.activeElement);
    const from = now >= 0 ? now : step === 1 || step === 10 ? -1 : spans.length;
    const next = Math.max(0, Math.min(spans.length - 1, from + step));
    spans[next].focus();
  }
}

const nameOf = (bytes) => (bytes.length === 1 && bytes[0] === 0x20 ? "space" : visible(bytes));

function describe(token) {
  const probability = Math.exp(token.logProbability ?? 0);
  const alternatives = (token.alternatives ?? []).map((one) =>
    bar(nameOf(fromBase64(one.raw)), Math.exp(one.logProbability ?? 0), one.id === token.id));
  const title = `${nameOf(token.bytes)}: ${short(bitsOf(token.logProbability ?? 0), 2)} bits, ${percent(probability)}`;
  return make("div", {}, make("p", { textContent: title }), make("ul", { className: "bars" }, alternatives));
}

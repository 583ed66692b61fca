// The view Generate: streams a continuation into a conversation, which is a session on the server.

import { closeSession, newSessionId, stream, toBase64, whenFree } from "./api.js";
import { Alternatives } from "./alternatives.js";
import { copies } from "./copy.js";
import { byId, count, say, seconds, sendByKey, several, short } from "./dom.js";
import { nextExample, PROMPTS } from "./examples.js";
import { closeWhenLeaving } from "./leaving.js";
import { makeSameCall } from "./same_call.js";
import { Sampling } from "./sampling.js";
import { generateCall } from "./snippets.js";
import { encode, joined } from "./source.js";
import { Transcript } from "./transcript.js";

const TOP_ALTERNATIVES = 5;
// An answer lists at most so many tokens, alternatives included.
const LISTED = 131072;
// The server has restarted, or has ended the session: it does not have it, or not as this page knows it.
const LOST = ["not_found", "failed_precondition"];

export function makeGenerate(models) {
  const form = byId("generate-form");
  const prompt = byId("prompt");
  const transcript = new Transcript(byId("transcript"));
  const status = byId("generate-status");
  const start = byId("generate-start");
  const stop = byId("generate-stop");
  const fresh = byId("generate-new");
  const copy = byId("generate-copy");
  const selected = models.choice(byId("generate-model"), (model) => model.languageModel && model.tokenizer !== "none");
  const sameCall = makeSameCall("generate", () => generateCall(selected(), transcript.words + prompt.value, sampling));
  const sampling = new Sampling(sameCall.update);
  // {model, id, tokens, stopped}: tokens in the session, of what this page has received; whether its last call was stopped.
  let conversation = null;
  let running = null;

  async function generate() {
    const model = selected();
    if (model === null) return say(status, "The server has no language model that gives text.", true);
    if (prompt.value === "" && conversation === null) return say(status, "There is no prompt yet: type how the text begins.", true);
    conversation ??= { model: { name: model.name, version: model.version }, id: newSessionId(), tokens: 0, stopped: false };
    running = new AbortController();
    start.disabled = true;
    stop.disabled = false;
    fresh.disabled = true;
    const words = prompt.value;
    const { maxTokens } = sampling;
    const before = transcript.bytes;
    transcript.say(words);
    const request = {
      model: conversation.model,
      ...promptOf(words, before),
      maxTokens: String(maxTokens),
      sampling: sampling.message,
      stop: sampling.stop,
      session: sessionOf(conversation),
      keepPartial: true,
      tokenLogProbabilities: true,
      topAlternatives: Math.max(0, Math.min(TOP_ALTERNATIVES, Math.floor(LISTED / maxTokens) - 1)),
    };
    prompt.value = "";
    say(status, "Generating …");
    const began = performance.now();
    const figures = { tokens: 0, seed: null, first: null, reason: null, stop: "", cached: 0, decode: 0, again: false };
    let mayExist = false;
    try {
      for await (const message of persistently(request, words, before, figures)) take(message, figures, began);
      say(status, `${howItEnded(figures)} ${summary(figures)}`);
    } catch (error) {
      const stopped = error.name === "AbortError";
      mayExist = stopped || error.code === "unavailable";
      if (conversation !== null) conversation.stopped = stopped;
      // Without a conversation, another model was chosen.
      if (stopped && conversation !== null) say(status, `Stopped. ${summary(figures)}`);
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
    sameCall.update();
    if (conversation === null) return;
    fresh.disabled = false;
    copy.disabled = false;
    start.textContent = "Continue";
    if (conversation.tokens === 0 && transcript.bytes.length === 0) {
      // A call that was stopped this early, or whose connection broke, may still create the session.
      if (mayExist) close({ stopped: true });
      else forget();
    }
  }

  const sessionOf = ({ id, tokens }) => ({ id, expectedTokens: String(tokens), mustExist: tokens > 0 });

  // A session that holds nothing yet gets the whole text.
  function promptOf(words, before) {
    if (conversation.tokens === 0 && before.length > 0) return { prompt: { raw: toBase64(joined([before, encode(words)])) } };
    return words === "" ? {} : { prompt: { text: words } };
  }

  // If the server has lost the session, a new one begins with the whole text.
  async function* persistently(request, words, before, figures) {
    try {
      yield* patiently(request);
    } catch (error) {
      if (!LOST.includes(error.code) || before.length === 0 || figures.tokens > 0) throw error;
      if (error.code === "failed_precondition") closeSession(conversation.model, conversation.id).catch(() => {});
      figures.again = true;
      Object.assign(conversation, { id: newSessionId(), tokens: 0 });
      say(status, "The server no longer has this conversation. The page sends its text again …");
      yield* patiently({ ...request, ...promptOf(words, before), session: sessionOf(conversation) });
    }
  }

  // Waits while the session is in use by a call that was stopped.
  async function* patiently(request) {
    for (;;) {
      if (conversation.stopped) await whenFree(conversation.model, conversation.id, running.signal);
      conversation.stopped = false;
      try {
        yield* stream("Inference/GenerateStream", request, { signal: running.signal });
        return;
      } catch (error) {
        if (error.code !== "aborted") throw error;
        conversation.stopped = true;
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
    if (message.end) {
      figures.reason = message.end.finishReason;
      figures.stop = message.end.stop ?? "";
      figures.decode = message.end.timings?.decodeSeconds ?? 0;
    }
    if (message.summary) {
      conversation.tokens = Number(message.summary.sessionTokens ?? conversation.tokens);
      figures.cached = Number(message.summary.usage?.cachedTokens ?? 0);
    }
  }

  function howItEnded({ reason, stop: found, again }) {
    const ended = reason === "FINISH_REASON_STOP" ? `Finished at the stop string ${JSON.stringify(found)}.` : "Finished.";
    return again ? `${ended} The server no longer had the conversation, so the page sent its text again.` : ended;
  }

  // The server measures how long it generates: messages may arrive in one piece. Its first token belongs to the prompt's
  // time. A call that was stopped has no such time.
  function summary(figures) {
    const parts = [several(figures.tokens, "token")];
    if (figures.first !== null) parts.push(`the first after ${seconds(figures.first)}`);
    if (figures.tokens > 1 && figures.decode > 0) parts.push(`${short((figures.tokens - 1) / figures.decode, 3)} tokens/s`);
    if (figures.cached > 0) parts.push(`${count(figures.cached)} tokens before it from the cache`);
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
    copy.disabled = true;
    say(status, "");
    if (conversation !== null) close({ stopped: running !== null || conversation.stopped });
    sameCall.update();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running === null) say(status, "");
    if (sampling.check() && running === null) generate();
  });
  sendByKey(form, [form, byId("generate-settings")]);
  prompt.addEventListener("input", sameCall.update);
  stop.addEventListener("click", () => running?.abort());
  fresh.addEventListener("click", startNew);
  byId("generate-example").addEventListener("click", () => {
    prompt.value = nextExample(PROMPTS, prompt.value);
    say(status, "");
    sameCall.update();
    prompt.focus();
  });
  copies(copy, "The text", () => transcript.words);
  byId("generate-model").addEventListener("change", () => {
    const model = selected();
    if (model !== null) byId("max-tokens").max = model.limits.maxTokens;
    if (conversation !== null) {
      running?.abort();
      startNew();
    }
    sameCall.update();
  });
  byId("generate-colour").addEventListener("change", (event) => byId("transcript").classList.toggle("coloured", event.target.checked));
  closeWhenLeaving(() => conversation && { ...conversation, running });
  new Alternatives(byId("transcript"), byId("popup"));
}

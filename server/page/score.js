// The view Score: sends a text piece by piece in one session, and shows the scores as they arrive.

import { call, closeSession, fromBase64, newSessionId, sleep, toBase64 } from "./api.js";
import { Curve } from "./curve.js";
import { acceptDrops, byId, count, make, oncePerFrame, percent, say, seconds, several, short, size } from "./dom.js";
import { bitsOf, describeToken, legend, ScoredText } from "./surprise.js";
import { TextView } from "./text_view.js";

const FIRST_PIECE = 1024; // tokens
const LAST_PIECE = 16384; // so that no answer holds the page up for longer than a frame or two
const PIECE_SECONDS = 0.7;
const MAX_BYTES = 8e6;
// Up to this length the page also asks what the model expected instead. It makes answers several times as long.
const ALTERNATIVES_UP_TO = 32768; // tokens
const IN_TEXT_FIELD = 100_000; // characters; a longer text is kept beside the field, which would be slow
const REGIONS = 300;
const TRIES = 6;
const EXAMPLE = `The '''Moon''' is the only natural [[satellite]] of the Earth. It goes round the Earth in about a month, and its gravity raises the tides of the oceans twice a day.

The same words in another order:

Day a satellite natural only the raises Earth twice. In oceans of the tides a month round goes its, gravity the and about Moon it Earth is the of the.

Random digits, which nobody can guess:

8f1c07e92b64da35 71b0e4c29f8d6a53 0d9e72fb184c6a5e
`;

export function makeScore(models) {
  const form = byId("score-form");
  const area = byId("score-text");
  const chip = byId("score-chip");
  const status = byId("score-status");
  const detail = byId("score-detail");
  const curveElement = byId("score-curve");
  const start = byId("score-start");
  const stop = byId("score-stop");
  const progress = byId("score-progress");
  const selected = models.choice(byId("score-model"), (model) => model.languageModel && model.tokenizer !== "none");
  const curve = new Curve(curveElement, { label: (top) => `${short(top)} bits` });
  let source = null; // {name, bytes} of a file or of a long text; null: the text field's
  let text = null;
  let used = null; // the model that scored it
  let running = null;
  let sums = null; // bits and bytes of each region

  const view = new TextView(byId("score-view"), {
    select: (character) => say(detail, describe(character)),
    scrolled: () => markRegion(),
  });

  function take(name, bytes) {
    if (bytes.length > MAX_BYTES) {
      say(status, `${name} has ${size(bytes.length)}; this page takes at most ${size(MAX_BYTES)}.`, true);
      return;
    }
    say(status, "");
    const words = bytes.length <= IN_TEXT_FIELD ? decode(bytes) : null;
    if (words !== null) {
      source = null;
      area.value = words;
    } else {
      source = { name, bytes };
      chip.firstElementChild.textContent = `${name}, ${size(bytes.length)}`;
      area.value = "";
    }
    chip.hidden = source === null;
    area.hidden = source !== null;
  }

  function decode(bytes) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return null; // a byte model reads it all the same
    }
  }

  async function takeFile(file) {
    try {
      take(file.name, new Uint8Array(await file.arrayBuffer()));
    } catch (error) {
      say(status, `${file.name} cannot be read: ${error.message}`, true);
    }
  }

  async function score() {
    const model = selected();
    if (model === null) return say(status, "The server has no language model that takes text.", true);
    const bytes = source?.bytes ?? new TextEncoder().encode(area.value);
    if (bytes.length === 0) return say(status, "There is no text yet: type one, or drop a file.", true);
    const byCharacter = model.tokenizer === "fairseq_characters";
    text = new ScoredText(bytes, byCharacter);
    used = { name: model.name, version: model.version };
    running = new AbortController();
    const tokensPerRegion = Math.max(16, Math.ceil(text.tokens / REGIONS));
    sums = { tokensPerRegion, bits: new Float64Array(Math.ceil(text.tokens / tokensPerRegion)).fill(NaN), bytes: [] };
    start.disabled = true;
    stop.disabled = false;
    byId("score-result").hidden = false;
    progress.hidden = false;
    progress.value = 0;
    say(status, "Scoring …");
    view.show(text);
    showTotals(0);
    drawCurve();
    const began = performance.now();
    const elapsed = () => (performance.now() - began) / 1000;
    const session = newSessionId();
    let complete = false;
    try {
      await readAll(session, elapsed);
      complete = true;
      say(status, `Scored ${size(bytes.length)} in ${seconds(elapsed())}.`);
    } catch (error) {
      if (error.name === "AbortError") say(status, `Stopped after ${size(text.scoredBytes)}.`);
      else say(status, error.message, true);
    }
    showTotals(elapsed());
    progress.hidden = true;
    running = null;
    start.disabled = false;
    stop.disabled = true;
    try {
      await closeSession(used, session, { stopped: !complete });
    } catch (error) {
      // The server ends an idle session by itself. What has gone wrong before is said already.
      if (complete) say(status, error.message, true);
    }
  }

  async function readAll(session, elapsed) {
    const topAlternatives = text.tokens <= ALTERNATIVES_UP_TO ? 4 : 0;
    let piece = FIRST_PIECE;
    while (text.read < text.tokens) {
      const from = text.read;
      const end = text.pieceEnd(from, piece);
      const before = performance.now();
      const answer = await callPatiently("Inference/ScoreText", {
        model: used,
        inputs: [{ raw: toBase64(text.bytesOf(from, end)) }],
        tokenLogProbabilities: true,
        topAlternatives,
        session: { id: session, expectedTokens: String(from) },
      });
      used = answer.model;
      text.add(end, answer.scores[0]);
      addToRegions(from, end);
      view.update(text.character(from), text.character(end - 1) + 1);
      progress.value = end / text.tokens;
      showTotals(elapsed());
      drawCurve();
      const took = (performance.now() - before) / 1000;
      const most = topAlternatives ? LAST_PIECE / 4 : LAST_PIECE;
      piece = Math.round(Math.max(256, Math.min(most, piece * 2, ((end - from) * PIECE_SECONDS) / took)));
    }
  }

  // Calls again, later, while the server is full.
  async function callPatiently(method, message) {
    for (let tries = 1; ; ++tries) {
      try {
        return await call(method, message, { signal: running.signal });
      } catch (error) {
        if (!["resource_exhausted", "unavailable"].includes(error.code) || tries === TRIES) throw error;
        const pause = error.retryAfter ?? 2 ** (tries - 1);
        say(status, `${error.message} The page tries again in ${several(pause, "second")}.`);
        await sleep(pause, running.signal);
        say(status, "Scoring …");
      }
    }
  }

  function addToRegions(from, end) {
    for (let token = Math.max(1, from); token < end; ++token) {
      const region = Math.floor(token / sums.tokensPerRegion);
      sums.bits[region] = (sums.bits[region] || 0) + bitsOf(text.logProbabilities[token]);
      const bytes = text.byCharacter ? text.starts[token + 1] - text.starts[token] : 1;
      sums.bytes[region] = (sums.bytes[region] ?? 0) + bytes;
    }
  }

  const drawCurve = oncePerFrame(() => {
    const values = Array.from(sums.bits, (bits, region) => bits / (sums.bytes[region] ?? NaN));
    const top = values.reduce((most, value) => (value > most ? value : most), 0);
    curve.draw([values], Math.max(2, Math.ceil((top * 1.1) / 2) * 2));
    markRegion();
  });

  // The part of the curve whose text is in sight.
  function markRegion() {
    if (text === null || sums === null) return;
    const [first, end] = view.range().map((character) => text.token(character));
    curve.mark(first / text.tokens, end / text.tokens);
    const region = Math.min(sums.bits.length - 1, Math.floor(first / sums.tokensPerRegion));
    const value = sums.bits[region] / sums.bytes[region];
    const place = percent(first / text.tokens);
    curveElement.setAttribute("aria-valuenow", Math.round((first / text.tokens) * 100));
    const words = Number.isNaN(value) ? `${place} of the text, not scored yet` : `${short(value)} bits per byte at ${place} of the text`;
    curveElement.setAttribute("aria-valuetext", words);
    byId("score-region").textContent = words;
  }

  function showTotals(elapsed) {
    const bits = text.bits;
    const scored = text.scoredBytes;
    const rows = [
      ["Bits per byte", scored ? short(bits / scored, 4) : "–", "main"],
      ["Scored", `${count(scored)} of ${count(text.bytes.length)} bytes`],
      ["As a compressor", scored ? asCompressor(bits / 8, scored) : "–"],
      ["Log-likelihood", scored ? `${count(text.logLikelihood)} nats` : "–"],
      ["Speed", elapsed > 0 && scored ? `${count(scored / elapsed)} bytes/s` : "–"],
    ];
    if (text.byCharacter) rows.splice(1, 0, ["Bits per character", text.scored ? short(bits / text.scored, 4) : "–"]);
    byId("score-totals").replaceChildren(...rows.map(([name, value, kind = ""]) =>
      make("div", { className: `tile ${kind}` }, make("dt", { textContent: name }), make("dd", { textContent: value }))));
  }

  function asCompressor(packed, bytes) {
    const ratio = bytes / packed;
    return `${size(packed)}, ${ratio >= 1 ? `${short(ratio, 2)} times smaller` : `${short(1 / ratio, 2)} times larger`}`;
  }

  function describe(character) {
    const first = text.token(character);
    const end = text.token(character + 1);
    const tokens = [];
    for (let token = first; token < end; ++token) {
      const logProbability = text.logProbabilities[token];
      const raw = text.bytesOf(token, token + 1);
      const alternatives = (text.alternatives[token] ?? []).map((one) =>
        ({ raw: fromBase64(one.raw), logProbability: one.logProbability ?? 0 }));
      if (token === 0) tokens.push("The first token has no score: nothing comes before it");
      else if (Number.isNaN(logProbability)) tokens.push("Not scored yet");
      else tokens.push(describeToken(raw, logProbability, alternatives));
    }
    return `At byte ${count(text.starts[character])}. ${tokens.join("; ")}.`;
  }

  function download() {
    const content = {
      model: used,
      name: source?.name,
      bytes: text.bytes.length,
      scored_bytes: text.scoredBytes,
      tokens: text.read,
      scored_tokens: text.scored,
      log_likelihood: text.logLikelihood,
      bits_per_byte: text.scoredBytes ? text.bits / text.scoredBytes : null,
      token: text.byCharacter ? "character" : "byte",
      regions: Array.from(sums.bits, (bits, region) => ({
        first_token: region * sums.tokensPerRegion,
        bits_per_byte: Number.isNaN(bits) ? null : bits / sums.bytes[region],
      })),
      log_probabilities: Array.from(text.logProbabilities.subarray(0, text.read), (value) => (Number.isNaN(value) ? null : value)),
    };
    const url = URL.createObjectURL(new Blob([JSON.stringify(content)], { type: "application/json" }));
    make("a", { href: url, download: "scores.json" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  function goTo(ratio) {
    if (text === null) return;
    const bounded = Math.max(0, Math.min(1, ratio));
    view.scrollToLine(view.lineOf(text.character(Math.min(text.tokens - 1, Math.floor(bounded * text.tokens)))));
    view.drawSoon();
  }

  byId("score-legend").replaceChildren(...legend());
  byId("score-example").addEventListener("click", () => take("Example", new TextEncoder().encode(EXAMPLE)));
  byId("score-file").addEventListener("change", (event) => {
    if (event.target.files.length > 0) takeFile(event.target.files[0]);
    event.target.value = "";
  });
  chip.lastElementChild.addEventListener("click", () => {
    take("", new Uint8Array(0));
    area.focus();
  });
  area.addEventListener("paste", (event) => {
    const pasted = event.clipboardData.getData("text");
    if (pasted.length <= IN_TEXT_FIELD) return;
    event.preventDefault();
    take("Pasted text", new TextEncoder().encode(pasted));
  });
  acceptDrops(form, (files) => takeFile(files[0]));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running === null) score();
  });
  stop.addEventListener("click", () => running?.abort());
  byId("score-download").addEventListener("click", download);
  addEventListener("pagehide", () => running?.abort());
  curveElement.addEventListener("pointerdown", (event) => {
    const move = (to) => {
      const box = curveElement.getBoundingClientRect();
      goTo((to.clientX - box.left) / box.width);
    };
    move(event);
    curveElement.setPointerCapture(event.pointerId);
    curveElement.onpointermove = move;
    curveElement.onpointerup = curveElement.onpointercancel = () => {
      curveElement.onpointermove = null;
    };
  });
  curveElement.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 };
    if (text === null || steps[event.key] === undefined) return;
    event.preventDefault();
    goTo(text.token(view.range()[0]) / text.tokens + steps[event.key]);
  });
}

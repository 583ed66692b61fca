// The view Score: sends a text piece by piece in one session, and shows the scores as they arrive.

import { call, closeSession, fromBase64, newSessionId, sleep, toBase64 } from "./api.js";
import { copies } from "./copy.js";
import { Curve } from "./curve.js";
import { acceptDrops, byId, count, oncePerFrame, percent, say, seconds, sendByKey, several, short, size } from "./dom.js";
import { SCORED } from "./examples.js";
import { closeWhenLeaving } from "./leaving.js";
import { download, Regions, showTotals, TimeLeft } from "./regions.js";
import { makeSameCall } from "./same_call.js";
import { scoreCall } from "./snippets.js";
import { bytesOfFile, decodeExactly, encode, sourceOf } from "./source.js";
import { describeToken, legend, ScoredText } from "./surprise.js";
import { TextView } from "./text_view.js";

const FIRST_PIECE = 1024; // tokens
const LAST_PIECE = 16384; // so that no answer holds the page up for longer than a frame or two
const PIECE_SECONDS = 0.7;
const MAX_BYTES = 8e6;
// Up to this length the page also asks what the model expected instead. It makes answers several times as long.
const ALTERNATIVES_UP_TO = 32768; // tokens
const TRIES = 6;

export function makeScore(models) {
  const form = byId("score-form");
  const status = byId("score-status");
  const detail = byId("score-detail");
  const curveElement = byId("score-curve");
  const start = byId("score-start");
  const stop = byId("score-stop");
  const progress = byId("score-progress");
  const left = byId("score-left");
  const selected = models.choice(byId("score-model"), (model) => model.languageModel && model.tokenizer !== "none");
  const curve = new Curve(curveElement, { label: (top) => `${short(top)} bits` });
  const sameCall = makeSameCall("score", () => scoreCall(selected(), source));
  const source = sourceOf("score", sameCall.update);
  let text = null;
  let name; // of the scored text, if it is a file's
  let used = null; // the model that scored it
  let running = null;
  let session = null; // the id of the one in which the text is read
  let regions = null;

  const view = new TextView(byId("score-view"), {
    select: (character) => say(detail, describe(character)),
    picked: (characters) => say(detail, `${several(characters, "character")} selected. Ctrl+C copies them.`),
    scrolled: () => markRegion(),
  });

  function take(title, bytes) {
    if (bytes.length > MAX_BYTES) {
      say(status, `${title} has ${size(bytes.length)}; this page takes at most ${size(MAX_BYTES)}.`, true);
      return;
    }
    say(status, bytes.length > 0 ? "" : `${title} is empty.`, bytes.length === 0);
    source.take(title, bytes);
  }

  async function takeFile(file) {
    try {
      take(file.name, await bytesOfFile(file));
    } catch (error) {
      say(status, `${file.name} cannot be read: ${error.message}`, true);
    }
  }

  async function score() {
    const model = selected();
    if (model === null) return say(status, "The server has no language model that takes text.", true);
    const { bytes } = source;
    if (bytes.length === 0) return say(status, "There is no text yet: type one, or drop a file.", true);
    if (bytes.length > MAX_BYTES) return say(status, `The text has ${size(bytes.length)}; this page takes at most ${size(MAX_BYTES)}.`, true);
    text = new ScoredText(bytes, model.tokenizer === "fairseq_characters");
    ({ name } = source);
    used = { name: model.name, version: model.version };
    running = new AbortController();
    regions = new Regions(text);
    start.disabled = true;
    stop.disabled = false;
    byId("score-result").hidden = false;
    progress.hidden = false;
    progress.value = 0;
    say(status, "Scoring …");
    view.show(text);
    showTotals(text, 0);
    drawCurve();
    const began = performance.now();
    const elapsed = () => (performance.now() - began) / 1000;
    session = newSessionId();
    let complete = false;
    try {
      await readAll(elapsed);
      complete = true;
      say(status, `Scored ${size(bytes.length)} in ${seconds(elapsed())}.`);
    } catch (error) {
      if (error.name === "AbortError") say(status, `Stopped after ${size(text.scoredBytes)}.`);
      else say(status, error.message, true);
    }
    showTotals(text, elapsed());
    progress.hidden = true;
    left.textContent = "";
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

  async function readAll(elapsed) {
    const topAlternatives = text.tokens <= ALTERNATIVES_UP_TO ? 4 : 0;
    const timeLeft = new TimeLeft(text.tokens);
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
      regions.add(from, end);
      view.update(text.character(from), text.character(end - 1) + 1);
      progress.value = end / text.tokens;
      left.textContent = timeLeft.after(end, elapsed());
      showTotals(text, elapsed());
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

  const drawCurve = oncePerFrame(() => {
    const values = regions.values();
    const top = values.reduce((most, value) => (value > most ? value : most), 0);
    curve.draw([values], Math.max(2, Math.ceil((top * 1.1) / 2) * 2));
    markRegion();
  });

  // The part of the curve whose text is in sight.
  function markRegion() {
    if (text === null || regions === null) return;
    const [first, end] = view.range().map((character) => text.token(character));
    curve.mark(first / text.tokens, end / text.tokens);
    const value = regions.valueAt(first);
    const place = percent(first / text.tokens);
    curveElement.setAttribute("aria-valuenow", Math.round((first / text.tokens) * 100));
    const words = Number.isNaN(value) ? `${place} of the text, not scored yet` : `${short(value)} bits per byte at ${place} of the text`;
    curveElement.setAttribute("aria-valuetext", words);
    byId("score-region").textContent = words;
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

  function goTo(ratio) {
    if (text === null) return;
    const bounded = Math.max(0, Math.min(1, ratio));
    view.scrollToLine(view.lineOf(text.character(Math.min(text.tokens - 1, Math.floor(bounded * text.tokens)))));
    view.drawSoon();
  }

  byId("score-legend").replaceChildren(...legend());
  byId("score-example").addEventListener("click", () => take("Example", encode(SCORED)));
  byId("score-file").addEventListener("change", (event) => {
    if (event.target.files.length > 0) takeFile(event.target.files[0]);
    event.target.value = "";
  });
  acceptDrops(form, (files) => takeFile(files[0]));
  sendByKey(form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running === null) score();
  });
  stop.addEventListener("click", () => running?.abort());
  byId("score-download").addEventListener("click", () => download(text, regions, used, name));
  copies(byId("score-copy"), "The text", () => decodeExactly(text.bytes) ?? new TextDecoder().decode(text.bytes));
  closeWhenLeaving(() => running && { model: used, id: session, running });
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

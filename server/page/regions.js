// What is known of a text while it is scored: the bits of its regions, its totals, the time that is left, and the file
// with all of it.

import { byId, count, make, several, short, size } from "./dom.js";
import { bitsOf } from "./surprise.js";

const REGIONS = 300;
const SMALLEST = 16; // tokens
const FIRST_AFTER = 3; // seconds; before that an estimate is wrong, and a short text is done
const REMEMBERED = 5; // places, so that the estimate follows a server that has become slower
const ALIKE = 1.5; // how many times longer than another one a piece may be

export class Regions {
  constructor(text) {
    this.text = text;
    this.tokens = Math.max(SMALLEST, Math.ceil(text.tokens / REGIONS));
    this.bits = new Float64Array(Math.ceil(text.tokens / this.tokens)).fill(NaN);
    this.bytes = [];
  }

  // The tokens from `from` to `end` have scores now.
  add(from, end) {
    const { text } = this;
    for (let token = Math.max(1, from); token < end; ++token) {
      const region = Math.floor(token / this.tokens);
      this.bits[region] = (this.bits[region] || 0) + bitsOf(text.logProbabilities[token]);
      const bytes = text.byCharacter ? text.starts[token + 1] - text.starts[token] : 1;
      this.bytes[region] = (this.bytes[region] ?? 0) + bytes;
    }
  }

  // Bits per byte of each region; NaN where nothing is scored.
  values() {
    return Array.from(this.bits, (bits, region) => bits / (this.bytes[region] ?? NaN));
  }

  // Bits per byte where a token is.
  valueAt(token) {
    const region = Math.min(this.bits.length - 1, Math.floor(token / this.tokens));
    return this.bits[region] / this.bytes[region];
  }
}

function asCompressor(packed, bytes) {
  const ratio = bytes / packed;
  return `${size(packed)}, ${ratio >= 1 ? `${short(ratio, 2)} times smaller` : `${short(1 / ratio, 2)} times larger`}`;
}

// `elapsed`: seconds since the first call. The server needs less, so its own rate is higher.
export function showTotals(text, elapsed) {
  const { bits } = text;
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

export function download(text, regions, model, name) {
  const content = {
    model,
    name,
    bytes: text.bytes.length,
    scored_bytes: text.scoredBytes,
    tokens: text.read,
    scored_tokens: text.scored,
    log_likelihood: text.logLikelihood,
    bits_per_byte: text.scoredBytes ? text.bits / text.scoredBytes : null,
    token: text.byCharacter ? "character" : "byte",
    regions: regions.values().map((value, region) => ({
      first_token: region * regions.tokens,
      bits_per_byte: Number.isNaN(value) ? null : value,
    })),
    log_probabilities: Array.from(text.logProbabilities.subarray(0, text.read), (value) => (Number.isNaN(value) ? null : value)),
  };
  const url = URL.createObjectURL(new Blob([JSON.stringify(content)], { type: "application/json" }));
  make("a", { href: url, download: "scores.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// "about 40 seconds left". Rounded, so that it does not flicker.
export function inWords(seconds) {
  if (seconds < 10) return "a few seconds left";
  if (seconds < 100) return `about ${count(Math.ceil(seconds / 10) * 10)} seconds left`;
  if (seconds < 5400) return `about ${several(Math.ceil(seconds / 60), "minute")} left`;
  return `about ${several(Math.round(seconds / 3600), "hour")} left`;
}

export class TimeLeft {
  // `all`: the tokens of the whole text.
  constructor(all) {
    this.all = all;
    this.places = [{ done: 0, at: 0 }]; // the last ones, oldest first
    this.words = "";
  }

  // What to show after `done` tokens and `elapsed` seconds; "" while it is too early, and at the end. Short pieces say
  // little about the rate of long ones: as long as pieces grow or shrink, the words stay.
  after(done, elapsed) {
    this.places.push({ done, at: elapsed });
    if (this.places.length > REMEMBERED) this.places.shift();
    if (done >= this.all) return "";
    const sizes = this.places.slice(1).map((place, index) => place.done - this.places[index].done);
    const [last, before = 0] = sizes.slice(-2).reverse();
    if (elapsed < FIRST_AFTER || Math.max(last, before) > ALIKE * Math.min(last, before)) return this.words;
    const [first] = this.places;
    this.words = inWords(((this.all - done) * (elapsed - first.at)) / (done - first.done));
    return this.words;
  }
}

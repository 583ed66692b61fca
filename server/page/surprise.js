// A text with the surprise of each of its characters, and how both are shown.

import { make, percent, short } from "./dom.js";

// Bits from which a character has the next colour: the classes s1, s2, ... of page.css.
const STEPS = [0.5, 1, 2, 3, 4.5, 6, 8];
const NATS_PER_BIT = Math.LN2;
const decoder = new TextDecoder("utf-8", { fatal: true });

export const bitsOf = (logProbability) => -logProbability / NATS_PER_BIT;

export function colourOf(bits) {
  if (Number.isNaN(bits)) return "unscored";
  let step = 0;
  while (step < STEPS.length && bits >= STEPS[step]) ++step;
  return `s${step}`;
}

export function legend() {
  const scale = ["0", ...STEPS].map((from, step) =>
    make("span", { className: `swatch s${step}`, textContent: step === STEPS.length ? `${from}+` : `${from}` }));
  return [make("span", { textContent: "Bits:" }), ...scale];
}

// The number of bytes of the UTF-8 character at `at`; 1 for a byte that is not UTF-8.
export function characterLength(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return 1;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
  if (length === 1 || first > 0xf4 || at + length > bytes.length) return 1;
  for (let next = 1; next < length; ++next) if ((bytes[at + next] & 0xc0) !== 0x80) return 1;
  try {
    decoder.decode(bytes.subarray(at, at + length));
  } catch {
    return 1; // a surrogate, or longer than it must be
  }
  return length;
}

// A character or byte as people read it. Whitespace has signs: it may be surprising, too.
export function visible(bytes) {
  if (bytes.length === 1) {
    const code = bytes[0];
    if (code === 0x0a) return "↵";
    if (code === 0x09) return "⇥";
    if (code < 0x20 || code >= 0x7f) return `0x${code.toString(16).padStart(2, "0")}`;
  }
  return new TextDecoder().decode(bytes);
}

const named = (bytes) => (bytes.length === 1 && bytes[0] === 0x20 ? "space" : `“${visible(bytes)}”`);

// One token in words: what it is, how probable it was, what was more probable. Alternatives: [{raw, logProbability}].
export function describeToken(bytes, logProbability, alternatives = []) {
  const probability = Math.exp(logProbability);
  const chance = `${short(bitsOf(logProbability), 2)} bits, probability ${percent(probability)}`;
  if (alternatives.length === 0) return `${named(bytes)}: ${chance}`;
  const expected = alternatives.map((one) => `${named(one.raw)} ${percent(Math.exp(one.logProbability))}`);
  return `${named(bytes)}: ${chance}; expected ${expected.join(", ")}`;
}

// Columns that a character takes in a font of equal widths: two for East Asian characters and emoji, and four for a byte
// that is shown by its number.
function columnsOf(bytes, at, length) {
  if (length < 3) return length > 1 ? 1 : visible(bytes.subarray(at, at + 1)).length;
  const code = new TextDecoder().decode(bytes.subarray(at, at + length)).codePointAt(0);
  const wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) || (code >= 0x1f300 && code <= 0x1faff) || code >= 0x20000;
  return wide ? 2 : 1;
}

// A text, its characters, and the log-probabilities of its tokens as they arrive. A token is a byte, or a character if
// `byCharacter`.
export class ScoredText {
  constructor(bytes, byCharacter) {
    this.bytes = bytes;
    this.byCharacter = byCharacter;
    const starts = new Uint32Array(bytes.length + 1);
    let characters = 0;
    for (let at = 0; at < bytes.length; at += characterLength(bytes, at)) starts[characters++] = at;
    starts[characters] = bytes.length;
    this.starts = starts.slice(0, characters + 1);
    this.characters = characters;
    this.tokens = byCharacter ? characters : bytes.length;
    this.logProbabilities = new Float32Array(this.tokens).fill(NaN);
    this.alternatives = [];
    this.read = 0; // tokens that the model has read
    this.scored = 0;
    this.logLikelihood = 0;
  }

  // The first token of a character.
  token(character) {
    return this.byCharacter ? character : this.starts[character];
  }

  // The character that has a token.
  character(token) {
    if (this.byCharacter) return token;
    let low = 0;
    let high = this.characters - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= token) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // The end of a piece of about `tokens` tokens that starts with the token `from`: the end of a character.
  pieceEnd(from, tokens) {
    const end = Math.min(this.tokens, from + tokens);
    return end === this.tokens ? end : Math.max(this.token(this.character(end)), this.token(this.character(from) + 1));
  }

  bytesOf(from, end) {
    if (!this.byCharacter) return this.bytes.subarray(from, end);
    return this.bytes.subarray(this.starts[from], this.starts[end]);
  }

  // Takes the scores of the tokens from `read` to `end`. Of the very first token there is none.
  add(end, score) {
    const found = score.tokens ?? [];
    const first = this.read === 0 ? 1 : this.read;
    if (first + found.length !== end) {
      throw new Error(`The model read ${found.length} tokens where the page expected ${end - first}.`);
    }
    found.forEach((token, index) => {
      this.logProbabilities[first + index] = token.logProbability ?? 0;
      if (token.alternatives) this.alternatives[first + index] = token.alternatives;
    });
    this.read = end;
    this.scored += found.length;
    this.logLikelihood += score.logLikelihood ?? 0;
  }

  get bits() {
    return bitsOf(this.logLikelihood);
  }

  // Bytes of the scored tokens.
  get scoredBytes() {
    if (this.read === 0) return 0;
    return this.byCharacter ? this.starts[this.read] - this.starts[1] : this.read - 1;
  }

  // The surprise of a character: the sum of its tokens'. NaN if one of them has no score.
  bitsAt(character) {
    let sum = 0;
    const end = this.token(character + 1);
    for (let token = this.token(character); token < end; ++token) sum += this.logProbabilities[token];
    return bitsOf(sum);
  }

  bytesAt(character) {
    return this.bytes.subarray(this.starts[character], this.starts[character + 1]);
  }

  // The first characters of the lines of at most `columns` columns, and the end of the text.
  lines(columns) {
    const starts = [0];
    let used = 0;
    let space = -1; // the last one of the line
    let usedAtSpace = 0; // with the space
    for (let character = 0; character < this.characters; ++character) {
      const at = this.starts[character];
      const width = columnsOf(this.bytes, at, this.starts[character + 1] - at);
      if (used + width > columns) {
        starts.push(space >= 0 ? space + 1 : character);
        used = space >= 0 ? used - usedAtSpace : 0;
        space = -1;
      }
      used += width;
      if (this.bytes[at] === 0x0a) {
        if (character + 1 < this.characters) starts.push(character + 1);
        used = 0;
        space = -1;
      } else if (this.bytes[at] === 0x20) {
        space = character;
        usedAtSpace = used;
      }
    }
    return Uint32Array.from([...starts, this.characters]);
  }
}

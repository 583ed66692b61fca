// The text of a conversation: prompts, and generated characters with their tokens.

import { fromBase64 } from "./api.js";
import { foreign, make } from "./dom.js";
import { encode, joined } from "./source.js";
import { bitsOf, characterLength, colourOf } from "./surprise.js";

// The part of the time in which a long text that grows is laid out, at most.
const LAYOUT_PART = 0.25;

export class Transcript {
  // Each line is an element, so that what is added lays out only its own line.
  constructor(element) {
    this.element = element;
    this.clear();
  }

  clear() {
    clearTimeout(this.timer);
    this.timer = null;
    this.element.replaceChildren();
    this.line = null;
    this.tokens = []; // received, and not shown yet
    this.said = [];
    this.parts = []; // the bytes of all prompts and tokens
    this.cost = 0; // of the last time that tokens were shown; milliseconds
  }

  // Begins a turn with a prompt.
  say(words) {
    this.parts.push(encode(words));
    this.said = words.split(/(?<=\n)/).map((part) => {
      const span = make("span", { className: "said", textContent: part });
      this.append(span, part.endsWith("\n"));
      return span;
    });
  }

  // Removes the prompt again.
  takeBack() {
    this.parts.pop();
    for (const span of this.said) span.remove();
  }

  add(tokens) {
    for (const token of tokens) {
      const bytes = fromBase64(token.raw);
      this.tokens.push({ ...token, bytes });
      this.parts.push(bytes);
    }
    if (this.tokens.length > 0) this.timer ??= setTimeout(() => this.show(false), Math.max(16, this.cost / LAYOUT_PART));
  }

  // The whole text, as the session on the server has it.
  get bytes() {
    return joined(this.parts);
  }

  get words() {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes);
  }

  // Shows all that is left.
  finish() {
    clearTimeout(this.timer);
    this.show(true);
  }

  append(span, endsLine) {
    if (this.line === null) {
      this.line = foreign("div");
      this.element.append(this.line);
    }
    this.line.append(span);
    if (endsLine) this.line = null;
  }

  // Shows the characters that are complete; with `end` also what is left.
  show(end) {
    this.timer = null;
    const began = performance.now();
    const { element } = this;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    let from = 0;
    for (;;) {
      const used = this.characterAt(from, end);
      if (used === 0) break;
      const tokens = this.tokens.slice(from, from + used);
      const bytes = Uint8Array.from(tokens.flatMap((token) => [...token.bytes]));
      this.append(makeToken(tokens, bytes), bytes.at(-1) === 0x0a);
      from += used;
    }
    this.tokens.splice(0, from);
    if (atEnd) element.scrollTop = element.scrollHeight;
    this.cost = performance.now() - began;
  }

  // The number of tokens, from `from` on, that make the next character; 0 if it is not complete.
  characterAt(from, end) {
    if (from >= this.tokens.length) return 0;
    const next = this.tokens.slice(from, from + 4);
    const bytes = Uint8Array.from(next.flatMap((token) => [...token.bytes]));
    const lead = bytes[0] ?? 0;
    const wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    const broken = bytes.subarray(1, wanted).some((byte) => (byte & 0xc0) !== 0x80);
    if (bytes.length < wanted && !broken && !end) return 0;
    const length = bytes.length === 0 ? 0 : characterLength(bytes, 0);
    let used = 0;
    let have = 0;
    do have += next[used++].bytes.length;
    while (have < length && used < next.length);
    return used;
  }
}

function makeToken(tokens, bytes) {
  const bits = tokens.reduce((sum, token) => sum + bitsOf(token.logProbability ?? 0), 0);
  const span = make("span", {
    className: `token ${colourOf(bits)}`,
    textContent: new TextDecoder().decode(bytes),
    tabIndex: -1,
  });
  span.tokens = tokens;
  return span;
}

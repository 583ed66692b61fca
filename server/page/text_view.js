// Shows a ScoredText of any length: only the lines that are in sight, and a few around them, are in the document.

import { make, oncePerFrame } from "./dom.js";
import { colourOf, visible } from "./surprise.js";
import { TextSelection } from "./text_selection.js";

const MARGIN = 12; // lines above and below those in sight
// Browsers bound the height of an element. Of a longer text the scroll bar moves by more than a pixel for each pixel.
const MAX_HEIGHT = 8e6;
const PARAGRAPH = 1000; // characters of a paragraph in which its first letter is looked for
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

export class TextView {
  // `select(character)` is called for the character below the pointer or cursor; `picked(count)` when that many
  // characters have been selected to be copied; `scrolled()` after each scroll.
  constructor(element, { select, picked, scrolled }) {
    this.element = element;
    this.select = select;
    this.scrolled = scrolled;
    this.space = make("div", { className: "text-space" });
    this.rows = new Map();
    this.cursor = -1;
    this.text = null;
    this.selection = new TextSelection(this, () => {
      this.redraw();
      if (this.selection.range !== null) picked(this.selection.range[1] - this.selection.range[0]);
    });
    this.drawSoon = oncePerFrame(() => this.draw());
    element.addEventListener("scroll", this.drawSoon, { passive: true });
    // Not pointerover, which also follows when the text moves below a pointer that rests.
    element.addEventListener("pointermove", (event) => {
      const at = event.target.dataset?.at;
      if (at !== undefined && at !== this.pointed && this.selection.range === null) select(Number(at));
      this.pointed = at;
    });
    element.addEventListener("click", (event) => {
      const at = event.target.dataset?.at;
      if (at !== undefined && this.selection.range === null) this.moveTo(Number(at));
    });
    element.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.wrap()).observe(element);
  }

  show(text) {
    this.text = text;
    this.cursor = -1;
    this.selection.clear();
    this.columns = 0;
    this.element.replaceChildren(this.space);
    this.element.scrollTop = 0;
    this.wrap();
  }

  // Finds the lines again if the width has changed.
  wrap() {
    if (this.text === null || this.element.clientWidth === 0) return;
    const probe = make("span", { className: "probe", textContent: "0".repeat(100) });
    this.element.append(probe);
    const { width, height } = probe.getBoundingClientRect();
    probe.remove();
    const columns = Math.max(10, Math.floor((this.space.clientWidth - 1) / (width / 100)));
    if (columns === this.columns) return;
    const first = this.columns === 0 ? 0 : this.lineStarts[this.firstLine()];
    this.columns = columns;
    this.lineHeight = Math.ceil(height) + 6;
    this.lineStarts = this.text.lines(columns);
    this.lineCount = this.lineStarts.length - 1;
    this.height = Math.min(this.lineCount * this.lineHeight, MAX_HEIGHT);
    this.space.style.height = `${this.height}px`;
    this.scrollToLine(this.lineOf(first));
    this.redraw();
  }

  // Makes all rows again.
  redraw() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  }

  // Lines for each pixel of scrolling beyond the first screen.
  get inSight() {
    return Math.ceil(this.element.clientHeight / this.lineHeight);
  }

  firstLine() {
    const room = this.height - this.element.clientHeight;
    if (room <= 0) return 0;
    const last = Math.max(0, this.lineCount - this.element.clientHeight / this.lineHeight);
    return Math.floor((Math.min(this.element.scrollTop, room) / room) * last);
  }

  scrollToLine(line) {
    const room = this.height - this.element.clientHeight;
    const last = this.lineCount - this.element.clientHeight / this.lineHeight;
    this.element.scrollTop = last <= 0 ? 0 : Math.ceil((Math.max(0, line) / last) * room);
  }

  lineOf(character) {
    let low = 0;
    let high = this.lineCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lineStarts[middle] <= character) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // The characters in sight, as [first, end).
  range() {
    if (this.text === null || !this.columns) return [0, 0];
    const first = this.firstLine();
    return [this.lineStarts[first], this.lineStarts[Math.min(this.lineCount, first + this.inSight)]];
  }

  draw() {
    if (this.text === null || !this.columns) return;
    const first = this.firstLine();
    const from = Math.max(0, first - MARGIN);
    const end = Math.min(this.lineCount, first + this.inSight + MARGIN);
    // Where the first line in sight stands; exact positions, unless the height is bounded.
    const exact = this.lineCount * this.lineHeight <= MAX_HEIGHT;
    const origin = exact ? 0 : this.element.scrollTop - first * this.lineHeight;
    for (const [line, row] of this.rows) {
      if (line < from || line >= end) {
        row.remove();
        this.rows.delete(line);
      }
    }
    for (let line = from; line < end; ++line) {
      let row = this.rows.get(line);
      if (row === undefined) {
        row = this.makeRow(line);
        this.rows.set(line, row);
        this.space.append(row);
      }
      row.style.height = `${this.lineHeight}px`; // without gaps, in which the pointer would find no line
      row.style.transform = `translateY(${origin + line * this.lineHeight}px)`;
    }
    this.scrolled();
  }

  makeRow(line) {
    const row = make("div", { className: "text-row", dir: this.directionOf(line) });
    for (let character = this.lineStarts[line]; character < this.lineStarts[line + 1]; ++character) {
      const mark = (character === this.cursor ? " cursor" : "") + (this.selection.holds(character) ? " picked" : "");
      row.append(make("span", {
        className: colourOf(this.text.bitsAt(character)) + mark,
        textContent: visible(this.text.bytesAt(character)),
        "data-at": character,
      }));
    }
    return row;
  }

  // "rtl" or "ltr": by the first letter of the line's paragraph, of which a part is enough.
  directionOf(line) {
    let first = this.lineStarts[line];
    for (let looked = 0; first > 0 && looked < PARAGRAPH && !this.endsLine(first - 1); ++looked) --first;
    const { bytes, starts, characters } = this.text;
    const words = new TextDecoder().decode(bytes.subarray(starts[first], starts[Math.min(characters, first + PARAGRAPH)]));
    const [letter = ""] = /\p{L}/u.exec(words.split("\n", 1)[0]) ?? [];
    return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
  }

  endsLine(character) {
    return this.text.bytes[this.text.starts[character]] === 0x0a;
  }

  // The characters from `from` to `end` have scores now, or the cursor has moved there.
  update(from, end) {
    if (!this.columns) return;
    const [first, last] = [this.lineOf(from), this.lineOf(Math.max(from, end - 1))];
    for (const [line, row] of this.rows) {
      if (line < first || line > last) continue;
      row.remove();
      this.rows.delete(line);
    }
    this.drawSoon();
  }

  // Brings a character into sight.
  reveal(character) {
    const line = this.lineOf(character);
    const first = this.firstLine();
    if (line < first + 1 || line > first + this.inSight - 3) this.scrollToLine(line - Math.floor(this.inSight / 3));
    this.drawSoon();
  }

  moveTo(character) {
    const before = this.cursor;
    this.cursor = Math.max(0, Math.min(this.text.characters - 1, character));
    if (before >= 0) this.update(before, before + 1);
    this.update(this.cursor, this.cursor + 1);
    this.reveal(this.cursor);
    this.pointed = undefined;
    this.select(this.cursor);
  }

  onKey(event) {
    if (this.text === null || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && this.selection.range !== null) return this.selection.set(null, null);
    const line = this.lineOf(Math.max(0, this.cursor));
    const column = this.cursor - this.lineStarts[line];
    const inLine = (other) => {
      const bounded = Math.max(0, Math.min(this.lineCount - 1, other));
      return Math.min(this.lineStarts[bounded] + Math.max(0, column), this.lineStarts[bounded + 1] - 1);
    };
    const forward = this.directionOf(line) === "rtl" ? -1 : 1;
    const moves = {
      ArrowLeft: () => this.cursor - forward,
      ArrowRight: () => this.cursor + forward,
      ArrowUp: () => inLine(line - 1),
      ArrowDown: () => inLine(line + 1),
      PageUp: () => inLine(line - this.inSight + 1),
      PageDown: () => inLine(line + this.inSight - 1),
      Home: () => (event.ctrlKey ? 0 : this.lineStarts[line]),
      End: () => (event.ctrlKey ? this.text.characters - 1 : this.lineStarts[line + 1] - 1),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const before = Math.max(0, this.cursor);
    this.moveTo(move());
    if (event.shiftKey) this.selection.set(this.selection.anchor ?? before, this.cursor);
    else this.selection.set(null, null);
  }
}

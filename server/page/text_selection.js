// What is selected of a TextView: a range of characters of the whole text. The browser's own selection would end with the
// lines that are in the document.

import { copyText } from "./copy.js";

const EDGE = 24; // pixels at the upper and lower edge where a drag scrolls
const SCROLL_MS = 40;

export class TextSelection {
  // `changed()` is called after each change.
  constructor(view, changed) {
    this.view = view;
    this.changed = changed;
    this.clear();
    const { element } = view;
    element.addEventListener("pointerdown", (event) => this.onDown(event));
    // On the document: a drag may leave the text.
    document.addEventListener("pointermove", (event) => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => this.onUp());
    element.addEventListener("keydown", (event) => this.onKey(event), { capture: true });
    document.addEventListener("copy", (event) => this.onCopy(event));
  }

  clear() {
    this.anchor = null; // the character at which the selection began
    this.extent = null; // the character up to which it goes; both belong to it
    this.dragging = false;
    clearInterval(this.scrolling);
  }

  // [first, end) of the selected characters; null if there are none.
  get range() {
    if (this.anchor === null) return null;
    return [Math.min(this.anchor, this.extent), Math.max(this.anchor, this.extent) + 1];
  }

  holds(character) {
    const { range } = this;
    return range !== null && character >= range[0] && character < range[1];
  }

  // The selected text as it is in the file, without the signs for whitespace.
  get words() {
    const { text } = this.view;
    const [first, end] = this.range;
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(text.bytes.subarray(text.starts[first], text.starts[end]));
  }

  set(anchor, extent) {
    if (anchor === this.anchor && extent === this.extent) return;
    this.anchor = anchor;
    this.extent = extent;
    this.changed();
  }

  characterAt(x, y) {
    const box = this.view.element.getBoundingClientRect();
    const inside = Math.max(box.top + 2, Math.min(box.bottom - 2, y));
    const found = document.elementFromPoint(Math.max(box.left + 4, Math.min(box.right - 4, x)), inside);
    if (found?.dataset?.at !== undefined) return Number(found.dataset.at);
    // Beside a line: its last character.
    return found?.classList?.contains("text-row") ? Number(found.lastElementChild.dataset.at) : null;
  }

  onDown(event) {
    // A finger scrolls; the button "Copy" is for it.
    if (this.view.text === null || event.button !== 0 || event.pointerType === "touch") return;
    const at = this.characterAt(event.clientX, event.clientY);
    if (at === null) return;
    if (event.shiftKey && this.view.cursor >= 0) return this.set(this.anchor ?? this.view.cursor, at);
    this.set(null, null);
    this.from = at;
    this.dragging = true;
  }

  onMove(event) {
    if (!this.dragging) return;
    this.place = [event.clientX, event.clientY];
    this.extend();
    const box = this.view.element.getBoundingClientRect();
    const step = event.clientY < box.top + EDGE ? -1 : event.clientY > box.bottom - EDGE ? 1 : 0;
    clearInterval(this.scrolling);
    if (step === 0) return;
    this.scrolling = setInterval(() => {
      this.view.element.scrollTop += step * this.view.lineHeight;
      this.extend();
    }, SCROLL_MS);
  }

  extend() {
    const at = this.characterAt(...this.place);
    if (at !== null && (at !== this.from || this.anchor !== null)) this.set(this.from, at);
  }

  onUp() {
    clearInterval(this.scrolling);
    // Its own click: the line may have been made again since the button went down, and then gets none.
    if (this.dragging && this.anchor === null) this.view.moveTo(this.from);
    this.dragging = false;
  }

  onKey(event) {
    const { view } = this;
    if (view.text === null || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    if (event.key.toLowerCase() === "a") {
      event.preventDefault();
      event.stopImmediatePropagation();
      this.set(0, view.text.characters - 1);
    } else if (event.key.toLowerCase() === "c" && this.range !== null) {
      event.preventDefault();
      event.stopImmediatePropagation();
      copyText(this.words);
    }
  }

  // The menu of the browser copies, too.
  onCopy(event) {
    if (this.range === null || document.activeElement !== this.view.element) return;
    event.preventDefault();
    event.clipboardData.setData("text/plain", this.words);
  }
}

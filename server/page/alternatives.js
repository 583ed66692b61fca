// The popup with the most probable tokens where one was generated.

import { fromBase64 } from "./api.js";
import { bar, make, percent, short } from "./dom.js";
import { bitsOf, visible } from "./surprise.js";

// Shows it below the pointer or the focus.
export class Alternatives {
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

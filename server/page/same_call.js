// The part of a view that shows its call as a program: for curl, for Python, and for the package openai.

import { copyButton } from "./copy.js";
import { byId, make, oncePerFrame } from "./dom.js";

const KINDS = [["curl", "curl"], ["python", "Python"], ["openai", "openai"]];
const LONGEST = 20_000; // characters that are shown of a long text's call; the button copies all of it

// Fills the element PREFIX-call. `calls()` returns {curl, python, openai}, or null if no model is chosen.
export function makeSameCall(prefix, calls) {
  let kind = "curl";
  const code = make("code");
  const shown = make("pre", { tabIndex: 0, role: "group", "aria-label": "The call as a program" }, code);
  const choices = KINDS.map(([value, words]) => {
    const input = make("input", { type: "radio", name: `${prefix}-call-kind`, value, checked: value === kind });
    input.addEventListener("change", () => {
      kind = value;
      draw();
    });
    return make("label", { className: "check" }, input, words);
  });
  const text = () => calls()?.[kind] ?? "";
  const details = make(
    "details",
    { className: "card call" },
    make("summary", { textContent: "The same call as a program" }),
    make("div", { className: "row spread" },
      make("fieldset", { className: "row" }, make("legend", { className: "unseen", textContent: "Program" }), choices),
      copyButton("Copy", "The call", text)),
    shown,
    make("p", { className: "note" }, "All calls of the server: ", make("a", { href: "docs", textContent: "docs" }), "."),
  );
  byId(`${prefix}-call`).append(details);

  function draw() {
    if (!details.open) return;
    const all = text();
    code.textContent = all.length <= LONGEST ? all : `${all.slice(0, LONGEST)} …`;
    if (all === "") code.textContent = "# The server has no model for this view.";
  }

  details.addEventListener("toggle", draw);
  // To be called when the call has changed.
  return { update: oncePerFrame(draw) };
}

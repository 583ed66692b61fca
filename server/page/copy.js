// Buttons that copy a text to the clipboard.

import { byId, make, say } from "./dom.js";

const SHOWN_MS = 2000; // how long a button says what happened

// Copies by a hidden field, where the browser gives no clipboard: a page by plain HTTP from another machine has none.
function copyByField(text) {
  const before = document.activeElement;
  const field = make("textarea", { value: text, className: "unseen", "aria-hidden": "true" });
  // A modal dialog makes all else inert, but no dialog has a button that copies.
  document.body.append(field);
  field.select();
  // A field changes line ends, so the event sets the text itself.
  const exactly = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    event.clipboardData.setData("text/plain", text);
  };
  document.addEventListener("copy", exactly, { capture: true, once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", exactly, { capture: true });
  field.remove();
  before?.focus({ preventScroll: true });
  if (!done) throw new Error("The browser does not allow it.");
}

export async function copyText(text) {
  if (navigator.clipboard === undefined) return copyByField(text);
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByField(text);
  }
}

// Says a sentence to people who do not see the button change.
const announce = (sentence) => say(byId("announcement"), sentence);

// Makes a button copy what `textOf()` returns. `what` names it in a sentence: "The text".
export function copies(button, what, textOf) {
  const words = button.textContent;
  let timer = null;
  button.addEventListener("click", async () => {
    try {
      await copyText(textOf());
      button.textContent = "Copied";
      announce(`${what} was copied.`);
    } catch (error) {
      button.textContent = "Not copied";
      announce(`${what} was not copied. ${error.message}`);
    }
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.textContent = words;
      announce("");
    }, SHOWN_MS);
  });
  return button;
}

export const copyButton = (words, what, textOf) =>
  copies(make("button", { type: "button", className: "quiet", textContent: words }), what, textOf);

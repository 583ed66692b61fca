// The settings of Generate: how the next token is chosen, and where a text ends.

import { byId } from "./dom.js";

// Fields of numbers: the id, the name in the contract, and the value that changes nothing.
const NUMBERS = [
  ["top-k", "topK", 0],
  ["top-p", "topP", 1],
  ["min-p", "minP", 0],
  ["repetition-penalty", "repetitionPenalty", 1],
  ["frequency-penalty", "frequencyPenalty", 0],
  ["presence-penalty", "presencePenalty", 0],
];
const FIELDS = ["max-tokens", "seed", ...NUMBERS.map(([id]) => id)];

// What a line of the field of stop strings means: \n is a line end, \t a tab, \\ a backslash.
export function readStops(value) {
  const signs = { n: "\n", t: "\t", r: "\r", "\\": "\\" };
  return value.split("\n").filter((line) => line !== "")
    .map((line) => line.replace(/\\([ntr\\])/g, (_, sign) => signs[sign]));
}

export class Sampling {
  // `changed()` is called when a setting has changed.
  constructor(changed) {
    const temperature = byId("temperature");
    temperature.addEventListener("input", () => {
      byId("temperature-value").textContent = temperature.value;
    });
    byId("generate-settings").addEventListener("input", changed);
    byId("generate-reset").addEventListener("click", () => {
      for (const [id, , neutral] of NUMBERS) byId(id).value = neutral;
      byId("stop-strings").value = "";
      changed();
    });
  }

  // Shows the first wrong field, and its reason. Returns whether all are right.
  check() {
    for (const id of FIELDS) {
      const field = byId(id);
      if (field.validity.valid) continue;
      const hidden = field.closest("details");
      if (hidden !== null) hidden.open = true;
      field.reportValidity();
      return false;
    }
    return true;
  }

  get maxTokens() {
    return byId("max-tokens").valueAsNumber || 1;
  }

  get stop() {
    return readStops(byId("stop-strings").value);
  }

  // A message Sampling of the contract, without the fields that change nothing.
  get message() {
    const seed = byId("seed").value;
    const numbers = NUMBERS.map(([id, name, neutral]) => [name, byId(id).valueAsNumber, neutral])
      .filter(([, value, neutral]) => Number.isFinite(value) && value !== neutral)
      .map(([name, value]) => [name, value]);
    return { temperature: byId("temperature").valueAsNumber, ...Object.fromEntries(numbers), ...(seed === "" ? {} : { seed }) };
  }
}

// The view Embed: the vectors of two texts side by side, and the cosine of their angle.

import { call } from "./api.js";
import { copyButton } from "./copy.js";
import { byId, count, foreign, make, say, seconds, sendByKey, short } from "./dom.js";
import { nextExample, textsFor } from "./examples.js";
import { isImageModel } from "./models.js";
import { makeSameCall } from "./same_call.js";
import { embedCall } from "./snippets.js";
import { encode, inputOf } from "./source.js";

const SHOWN = 8; // numbers of a vector
const QUOTED = 200; // characters of its text
const POOLINGS = {
  POOLING_UNSPECIFIED: "what the model's head reads",
  POOLING_CLS: "the CLS token",
  POOLING_MEAN: "the mean of all tokens",
};

const dot = (one, two) => one.reduce((sum, value, index) => sum + value * two[index], 0);
const lengthOf = (vector) => Math.sqrt(dot(vector, vector));

// NaN if one of them has no direction.
export const cosine = (one, two) => dot(one, two) / (lengthOf(one) * lengthOf(two));

export function makeEmbed(models) {
  const form = byId("embed-form");
  const status = byId("embed-status");
  const fields = [byId("embed-text-1"), byId("embed-text-2")];
  const select = byId("embed-model");
  const pooling = byId("embed-pooling");
  const start = byId("embed-start");
  const result = byId("embed-result");
  const selected = models.choice(select, (model) => model.classifier && !isImageModel(model) && model.tokenizer !== "none");
  const texts = () => fields.map((field) => field.value);
  const sameCall = makeSameCall("embed", () => embedCall(selected(), texts(), pooling.value));

  function adapt() {
    const names = ["POOLING_UNSPECIFIED", ...(selected()?.classifier.poolings ?? [])];
    const wanted = pooling.value;
    pooling.replaceChildren(...names.map((name) => make("option", { value: name, textContent: POOLINGS[name] ?? name })));
    if (names.includes(wanted)) pooling.value = wanted;
    sameCall.update();
  }

  async function embed() {
    const model = selected();
    if (model === null) return say(status, "The server has no text model that embeds.", true);
    if (texts().includes("")) return say(status, "Two texts are compared: type both.", true);
    start.disabled = true;
    say(status, "Embedding …");
    try {
      const { name, version } = model;
      const both = texts();
      const answer = await call("Inference/Embed", {
        model: { name, version }, inputs: both.map((text) => inputOf(encode(text))), truncate: true, pooling: pooling.value,
      });
      show(both, answer.results.map((one) => one.embedding));
      say(status, "The texts are embedded.");
    } catch (error) {
      say(status, error.message, true);
    } finally {
      start.disabled = false;
    }
  }

  function show(both, embeddings) {
    const vectors = embeddings.map((one) => one.values.map(Number));
    const value = cosine(...vectors);
    const tile = (name, words, kind = "") =>
      make("div", { className: `tile ${kind}` }, make("dt", { textContent: name }), make("dd", { textContent: words }));
    byId("embed-totals").replaceChildren(
      tile("Cosine", Number.isNaN(value) ? "–" : value.toFixed(4), "main"),
      tile("Angle", Number.isNaN(value) ? "–" : `${short((Math.acos(Math.max(-1, Math.min(1, value))) * 180) / Math.PI)}°`),
      tile("Numbers in a vector", count(vectors[0].length)),
    );
    byId("embed-vectors").replaceChildren(...vectors.map((vector, index) => cardOf(both[index], embeddings[index], vector, index)));
    result.hidden = false;
  }

  function cardOf(text, { documents = [], timings = {} }, vector, index) {
    const { queueSeconds = 0, runSeconds = 0, preparationSeconds = 0 } = timings;
    const [reading] = documents;
    const cut = reading?.truncated ? `only the first ${count(Number(reading.tokenCount))} tokens were read` : `${count(Number(reading?.tokenCount ?? 0))} tokens`;
    const which = index === 0 ? "first" : "second";
    return make("li", { className: "card" },
      foreign("p", { className: "quote", textContent: text.length > QUOTED ? `${text.slice(0, QUOTED)} …` : text }),
      make("p", { className: "note", textContent: `Length ${short(lengthOf(vector), 4)}; ${cut}; ${seconds(queueSeconds + runSeconds + preparationSeconds)} on the server` }),
      make("code", { textContent: `[${vector.slice(0, SHOWN).map((one) => short(one, 3)).join(", ")}${vector.length > SHOWN ? ", …" : ""}]` }),
      copyButton("Copy the vector", `The vector of the ${which} text`, () => JSON.stringify(vector)));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!start.disabled) embed();
  });
  sendByKey(form);
  for (const field of [...fields, pooling]) field.addEventListener("input", sameCall.update);
  select.addEventListener("change", adapt);
  byId("embed-example").addEventListener("click", () => {
    const examples = textsFor(selected()?.tokenizer ?? "");
    fields[0].value = nextExample(examples, fields[0].value);
    fields[1].value = nextExample(examples, fields[0].value);
    say(status, "");
    sameCall.update();
    fields[0].focus();
  });
  adapt();
}

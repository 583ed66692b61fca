// The models of the server: the list that all views share, and the view Models.

import { call, post, sentence } from "./api.js";
import { whatItGives } from "./classes.js";
import { copyButton } from "./copy.js";
import { byId, count, large, make, say, several, size } from "./dom.js";

const KINDS = {
  language_model: "Language model",
  text_classifier: "Text classifier",
  vil: "Image classifier",
  cvt: "Image classifier",
};
const TOKENIZERS = {
  fairseq_bytes: "bytes",
  fairseq_characters: "characters",
  bytes_plus_one: "bytes",
  listops_2020: "ListOps expressions",
  listops_2021: "ListOps expressions",
  byte_level_bpe: "parts of words",
  none: "token ids only",
};

export const isImageModel = (model) =>
  ["CLASSIFIER_INPUT_IMAGE", "CLASSIFIER_INPUT_PIXEL_SEQUENCE"].includes(model.classifier?.input);

// The value of a model in a select element.
export const keyOf = (model) => `${model.name}/${model.version}`;

export class Models {
  constructor() {
    this.list = [];
    this.choices = [];
  }

  async load(options) {
    this.list = (await call("Models/ListModels", {}, options)).models ?? [];
    for (const refresh of this.choices) refresh();
  }

  // Keeps the models that `suits` accepts in a select element. The result returns the selected one, or null.
  choice(select, suits) {
    const refresh = () => {
      const wanted = select.value;
      const options = this.list.filter(suits);
      select.replaceChildren(...options.map((model) => {
        const alone = this.list.filter((other) => other.name === model.name).length === 1;
        return make("option", { value: keyOf(model), textContent: alone ? model.name : `${model.name}, version ${model.version}` });
      }));
      if (options.length === 0) select.append(make("option", { value: "", textContent: "none is loaded" }));
      if (options.some((model) => keyOf(model) === wanted)) select.value = wanted;
      else if (wanted !== select.value) select.dispatchEvent(new Event("change"));
    };
    this.choices.push(refresh);
    return () => this.list.find((model) => keyOf(model) === select.value) ?? null;
  }
}

// What a model takes, as one sentence.
function takes(model) {
  const { limits = {}, classifier } = model;
  if (model.languageModel) {
    const unit = TOKENIZERS[model.tokenizer] ?? "tokens";
    if (model.tokenizer === "none") return "Token ids, by gRPC or HTTP; this page has no words for them.";
    return `Text: up to ${count(Number(limits.promptTokens))} ${unit} in a prompt or document.`;
  }
  if (isImageModel(model)) {
    const grey = Number(classifier.channels) === 1 ? ", read as grey values" : "";
    return `Images${grey}: JPEG, PNG or WebP of up to ${size(Number(limits.imageBytes))}; this page also sends what else the browser draws.`;
  }
  const one = classifier.trainedOnPairs ? "Two texts, compared, or one" : "Text";
  const what = Number(classifier.documents) === 2 ? "Two texts, compared" : one;
  return `${what}, read as ${TOKENIZERS[model.tokenizer] ?? model.tokenizer}: up to ${count(Number(classifier.maxDocumentTokens))} tokens.`;
}

// The views that suit a model, and their names.
function actionsOf(model) {
  if (model.tokenizer === "none") return [];
  if (model.languageModel) return [["score", "Score"], ["generate", "Generate"]];
  const actions = Number(model.classifier.classes ?? 0) > 0 ? [["classify", "Classify"]] : [];
  return isImageModel(model) ? actions : [...actions, ["embed", "Embed"]];
}

function card(model, open) {
  const facts = [
    ["Size", `${large(Number(model.parameters))} parameters, ${model.precision}`],
    ["Takes", takes(model)],
  ];
  if (model.languageModel) {
    const { layers, modelWidth, memoryLength } = model.languageModel;
    facts.push(["Shape", `${several(Number(layers), "layer")} of width ${count(Number(modelWidth))}; memory of ${count(Number(memoryLength))} tokens`]);
  }
  if (model.classifier) {
    facts.push(["Gives", whatItGives(model)]);
  }
  facts.push(["Fingerprint", [
    make("code", { textContent: model.fingerprint.slice(0, 16), title: model.fingerprint }),
    copyButton("Copy", "The fingerprint", () => model.fingerprint),
  ]]);
  const actions = actionsOf(model)
    .map(([view, words]) => make("button", {
      textContent: words,
      onclick: () => open(view, model),
      "aria-label": `${words} with ${model.name}, version ${model.version}`,
    }));
  return make(
    "li",
    { className: "card model" },
    make("div", { className: "row spread" },
      make("h3", {}, model.name, make("span", { className: "note", textContent: ` version ${model.version}` })),
      make("span", { className: "badge", textContent: "ready" })),
    make("p", { className: "kind", textContent: KINDS[model.architecture] ?? model.architecture }),
    make("dl", {}, facts.map(([name, value]) => [make("dt", { textContent: name }), make("dd", {}, value)])),
    make("div", { className: "row" }, actions),
  );
}

// Of a version in the server's repository that is not served.
function cardOfOther({ name, version, state, reason }) {
  return make(
    "li",
    { className: "card model" },
    make("div", { className: "row spread" },
      make("h3", {}, name, make("span", { className: "note", textContent: ` version ${version}` })),
      make("span", { className: "badge off", textContent: state.toLowerCase() })),
    make("p", { className: "kind", textContent: sentence(reason) }),
  );
}

// `open(view, model)` shows another view with a model chosen.
export function makeModels(models, open) {
  const status = byId("models-status");
  let shown = "";
  let index = []; // of the repository
  let indexing = false;

  async function refresh(options) {
    try {
      await models.load(options);
      await addLabels();
      say(status, models.list.length === 0 ? "The server has no model loaded." : "");
      draw();
      readIndex();
    } catch (error) {
      say(status, error.message, true);
    }
  }

  function draw() {
    const served = new Set(models.list.map(keyOf));
    const others = index.filter((one) => !served.has(keyOf(one)) && one.state !== "READY");
    const now = JSON.stringify([models.list, others]);
    if (now === shown) return;
    shown = now;
    byId("models-list").replaceChildren(...models.list.map((model) => card(model, open)), ...others.map(cardOfOther));
  }

  // The server answers once it has read its repository, which waits while it loads a model.
  async function readIndex() {
    if (indexing) return;
    indexing = true;
    try {
      index = await post("v2/repository/index", {}, { quiet: true });
      draw();
    } catch (error) {
      say(status, error.message, true);
    } finally {
      indexing = false;
    }
  }

  // Only GetModel returns the names of classes.
  const labels = new Map();
  async function addLabels() {
    for (const model of models.list.filter((one) => one.classifier)) {
      if (!labels.has(model.fingerprint)) {
        const { name, version } = model;
        const found = await call("Models/GetModel", { model: { name, version } }, { quiet: true });
        labels.set(model.fingerprint, found.classifier?.labels ?? []);
      }
      model.labels = labels.get(model.fingerprint);
    }
  }

  return { refresh };
}

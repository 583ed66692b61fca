// The view Classify: images and texts, each with the probabilities of its classes.

import { call, sentence, toBase64 } from "./api.js";
import { acceptDrops, bar, byId, count, make, say, seconds, several, size } from "./dom.js";
import { isImageModel } from "./models.js";

const TOP_K = 5;
// One call has at most so many images and bytes, so that the first results come soon.
const IMAGES = 8;
const BYTES = 3e6;
const EXAMPLES = {
  listops_2020: "( ( ( [MAX 2 ) 9 ) ] )",
  listops_2021: "[MAX 2 9 [MIN 4 7 ] 0 ]",
};

export function makeClassify(models) {
  const form = byId("classify-form");
  const status = byId("classify-status");
  const results = byId("classify-results");
  const area = byId("classify-text");
  const second = byId("classify-text-2");
  const select = byId("classify-model");
  const clear = byId("classify-clear");
  const selected = models.choice(select, (model) => model.classifier);
  let queue = Promise.resolve();
  let waiting = 0;

  const isPair = (model) => Number(model.classifier.documents) === 2;

  function adapt() {
    const model = selected();
    const images = model === null || isImageModel(model);
    byId("classify-images").hidden = !images;
    byId("classify-texts").hidden = images;
    byId("classify-open").textContent = images ? "Open images" : "Open files";
    byId("classify-file").accept = images ? "image/jpeg,image/png,image/webp" : "";
    byId("classify-second").hidden = images || !isPair(model);
    area.placeholder = images ? "" : (EXAMPLES[model.tokenizer] ?? "");
  }

  // Shows items that wait for their results, in their order, before older ones. Returns the places of their results.
  function addCards(items) {
    const places = items.map(() =>
      make("div", { className: "result" }, make("p", { className: "note", textContent: "waiting …" })));
    results.prepend(...items.map((content, index) => make("li", { className: "card" }, content, places[index])));
    clear.hidden = false;
    return places;
  }

  function showClasses(element, classification, note = "") {
    const bars = (classification.classes ?? []).map((one) => {
      const index = one.index ?? 0;
      return bar(one.label || `class ${index}`, one.probability ?? 0, one === classification.classes[0]);
    });
    const { preparationSeconds = 0, queueSeconds = 0, runSeconds = 0 } = classification.timings ?? {};
    const times = `${seconds(preparationSeconds + queueSeconds + runSeconds)} on the server${note}`;
    element.replaceChildren(make("ul", { className: "bars" }, bars), make("p", { className: "note", textContent: times }));
  }

  const showError = (element, message) =>
    element.replaceChildren(make("p", { className: "error", textContent: message }));

  // Work is done in turn: a person who drops a hundred images is one client.
  function enqueue(items, work) {
    waiting += items;
    queue = queue.then(work).finally(() => {
      waiting -= items;
      say(status, waiting === 0 ? "All are classified." : `${several(waiting, "item")} to go …`);
    });
    say(status, `${several(waiting, "item")} to go …`);
  }

  async function takeImages(model, files) {
    const { name, version } = model;
    const most = Number(model.limits.imageBytes);
    let batch = [];
    let bytes = 0;
    const flush = () => {
      if (batch.length === 0) return;
      const items = batch;
      enqueue(items.length, () => classifyImages({ name, version }, items));
      batch = [];
      bytes = 0;
    };
    const places = addCards(files.map((file) => {
      const picture = make("img", { src: URL.createObjectURL(file), alt: "", className: "picture" });
      picture.onerror = () => picture.remove(); // not an image: the server says so below
      return [picture, make("p", { className: "name", textContent: file.name, title: file.name })];
    }));
    for (const [index, file] of files.entries()) {
      const result = places[index];
      if (file.size > most) {
        showError(result, `It has ${size(file.size)}; the server takes at most ${size(most)}.`);
        continue;
      }
      if (batch.length === Math.min(IMAGES, model.limits.images) || bytes + file.size > BYTES) flush();
      batch.push({ file, result });
      bytes += file.size;
    }
    flush();
  }

  async function classifyImages(model, items) {
    try {
      const images = await Promise.all(items.map(async ({ file }) =>
        ({ encoded: toBase64(new Uint8Array(await file.arrayBuffer())) })));
      const answer = await call("Inference/ClassifyImage", { model, images, topK: TOP_K });
      items.forEach(({ result }, index) => {
        const one = answer.results[index];
        if (one.error) showError(result, sentence(one.error.message.replace(/^images\[\d+\]: /, "")));
        else showClasses(result, one.classification);
      });
    } catch (error) {
      for (const { result } of items) showError(result, error.message);
    }
  }

  function takeText(model, text, other = null, title = null) {
    const shown = text.length > 600 ? `${text.slice(0, 600)} …` : text;
    const more = other === null ? [] : [make("p", { className: "quote", textContent: other.slice(0, 600) })];
    const name = title === null ? [] : [make("p", { className: "name", textContent: title })];
    const [result] = addCards([[name, make("p", { className: "quote", textContent: shown }), more]]);
    enqueue(1, () => classifyText({ name: model.name, version: model.version }, text, other, result));
  }

  async function classifyText(model, text, other, result) {
    try {
      const answer = await call("Inference/ScoreText", {
        model,
        inputs: [{ text }],
        secondInputs: other === null ? [] : [{ text: other }],
        truncate: true,
        topK: TOP_K,
      });
      const { classification, documents = [] } = answer.classifications[0];
      const cut = documents.find((one) => one.truncated);
      const note = cut ? `; only the first ${count(Number(cut.tokenCount))} tokens were read` : "";
      showClasses(result, classification, note);
    } catch (error) {
      showError(result, error.message);
    }
  }

  async function takeFiles(files) {
    const model = selected();
    if (model === null) return say(status, "The server has no classifier.", true);
    if (isImageModel(model)) return takeImages(model, files);
    if (isPair(model)) {
      if (files.length !== 2) return say(status, "This model compares two texts: drop two files.", true);
      const [one, two] = await Promise.all(files.map((file) => file.text()));
      return takeText(model, one, two, files.map((file) => file.name).join(", "));
    }
    for (const file of [...files].reverse()) takeText(model, await file.text(), null, file.name);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const model = selected();
    if (model === null || isImageModel(model)) return;
    if (area.value === "" || (isPair(model) && second.value === "")) {
      return say(status, "There is no text yet: type one, or drop a file.", true);
    }
    takeText(model, area.value, isPair(model) ? second.value : null);
  });
  byId("classify-file").addEventListener("change", (event) => {
    const files = [...event.target.files];
    event.target.value = "";
    takeFiles(files);
  });
  acceptDrops(form, takeFiles);
  select.addEventListener("change", adapt);
  clear.addEventListener("click", () => {
    for (const picture of results.querySelectorAll("img")) URL.revokeObjectURL(picture.src);
    results.replaceChildren();
    clear.hidden = true;
    say(status, "");
    select.focus();
  });
  // Pictures from the clipboard.
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (byId("panel-classify").hidden || files.length === 0) return;
    event.preventDefault();
    takeFiles(files);
  });
  adapt();
}

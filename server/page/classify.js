// The view Classify: images and texts, each with the probabilities of its classes.

import { call, sentence, toBase64 } from "./api.js";
import { classCards } from "./classes.js";
import { acceptDrops, byId, count, foreign, make, say, sendByKey, several, size } from "./dom.js";
import { drawDaisy, nextExample, pairsFor, textsFor } from "./examples.js";
import { isImageModel } from "./models.js";
import { pictureOf } from "./pictures.js";
import { makeSameCall } from "./same_call.js";
import { classifyCall } from "./snippets.js";
import { bytesOfFile, decodeExactly, encode, inputOf } from "./source.js";

// One call has at most so many images and bytes, so that the first results come soon.
const IMAGES = 8;
const BYTES = 3e6;
const SHOWN = 600; // characters of a text on its card

export function makeClassify(models) {
  const form = byId("classify-form");
  const status = byId("classify-status");
  const results = byId("classify-results");
  const area = byId("classify-text");
  const second = byId("classify-text-2");
  const select = byId("classify-model");
  const clear = byId("classify-clear");
  const selected = models.choice(select, (model) => Number(model.classifier?.classes ?? 0) > 0);
  const sameCall = makeSameCall("classify", () => classifyCall(selected(), textsOf(selected())));
  let queue = Promise.resolve();
  let items = { all: 0, right: 0, wrong: 0 }; // since the last time that none was waiting

  const isPair = (model) => Boolean(model.classifier.trainedOnPairs);
  const needsPair = (model) => Number(model.classifier.documents) === 2;
  const textsOf = (model) => (model !== null && isPair(model) && (needsPair(model) || second.value !== "")
    ? [area.value, second.value] : [area.value]);

  function adapt() {
    const model = selected();
    const images = model === null || isImageModel(model);
    byId("classify-images").hidden = !images;
    byId("classify-texts").hidden = images;
    byId("classify-open").textContent = images ? "Open images" : "Open files";
    byId("classify-file").accept = images ? "image/*" : "";
    byId("classify-second").hidden = images || !isPair(model);
    byId("classify-length").hidden = model?.name !== "languages"; // the demo model: its card has the figures
    area.placeholder = images || !model.tokenizer.startsWith("listops") ? "" : textsFor(model.tokenizer)[0];
    sameCall.update();
  }

  // Shows items that wait for their results, in their order, before older ones. Returns the places of their results.
  function addCards(contents) {
    const places = contents.map(() =>
      make("div", { className: "result" }, make("p", { className: "note", textContent: "waiting …" })));
    results.prepend(...contents.map((content, index) => make("li", { className: "card" }, content, places[index])));
    clear.hidden = false;
    return places;
  }

  // Each item ends with one of these two.
  function showClasses(element, model, classification, note) {
    element.replaceChildren(...classCards(model, classification, note));
    items.right += 1;
    showProgress();
  }

  function showError(element, message) {
    element.replaceChildren(make("p", { className: "error", textContent: message }));
    items.wrong += 1;
    showProgress();
  }

  function showProgress() {
    const { all, right, wrong } = items;
    if (right + wrong < all) say(status, `${several(all - right - wrong, "item")} to go …`);
    else if (wrong === 0) say(status, "All are classified.");
    else say(status, `${count(right)} of ${count(all)} ${right === 1 ? "is" : "are"} classified.`, right === 0);
  }

  // Work is done in turn: a person who drops a hundred images is one client.
  function enqueue(number, work) {
    if (items.right + items.wrong === items.all) items = { all: 0, right: 0, wrong: 0 };
    items.all += number;
    queue = queue.then(work);
    showProgress();
  }

  function takeImages(model, files) {
    const places = addCards(files.map((file) => {
      const picture = make("img", { src: URL.createObjectURL(file), alt: "", className: "picture" });
      picture.onerror = () => picture.remove(); // not an image: the server says so below
      return [picture, foreign("p", { className: "name", textContent: file.name, title: file.name })];
    }));
    enqueue(files.length, () => classifyFiles(model, files.map((file, index) => ({ file, result: places[index] }))));
  }

  // Reads the files one by one, and sends some in a call.
  async function classifyFiles(model, pictures) {
    const most = Number(model.limits.imageBytes);
    let batch = [];
    let bytes = 0;
    const flush = async () => {
      const ready = batch;
      batch = [];
      bytes = 0;
      if (ready.length > 0) await classifyImages(model, ready);
    };
    for (const item of pictures) {
      let picture;
      try {
        picture = await pictureOf(item.file, model.limits);
      } catch (error) {
        showError(item.result, `It cannot be read: ${error.message}`);
        continue;
      }
      if (picture.bytes.length > most) {
        showError(item.result, `It has ${size(picture.bytes.length)}; the server takes at most ${size(most)}.`);
        continue;
      }
      if (batch.length === Math.min(IMAGES, model.limits.images) || bytes + picture.bytes.length > BYTES) await flush();
      batch.push({ ...item, ...picture });
      bytes += picture.bytes.length;
    }
    await flush();
  }

  async function classifyImages(model, pictures) {
    try {
      const images = pictures.map(({ bytes }) => ({ encoded: toBase64(bytes) }));
      const { name, version } = model;
      const answer = await call("Inference/ClassifyImage", { model: { name, version }, images, topK: Number(model.classifier.classes) });
      pictures.forEach(({ result, drawn }, index) => {
        const one = answer.results[index];
        if (one.error) showError(result, sentence(one.error.message.replace(/^images\[\d+\]: /, "")));
        else showClasses(result, model, one.classification, drawn ? "; drawn by the browser" : "");
      });
    } catch (error) {
      for (const { result } of pictures) showError(result, error.message);
    }
  }

  // `texts`: the bytes of one text, or of the two of a pair.
  function takeTexts(model, texts, title = null) {
    const quotes = texts.map((bytes) => {
      const beginning = new TextDecoder().decode(bytes.subarray(0, 4 * SHOWN)).slice(0, SHOWN);
      const more = bytes.length > encode(beginning).length ? " …" : "";
      return foreign("p", { className: "quote", textContent: beginning + more });
    });
    const name = title === null ? [] : [foreign("p", { className: "name", textContent: title })];
    const [result] = addCards([[name, quotes]]);
    enqueue(1, () => classifyTexts(model, texts, result));
  }

  async function classifyTexts(model, [first, other], result) {
    if (first.length === 0 || other?.length === 0) return showError(result, "It is empty.");
    try {
      const answer = await call("Inference/ScoreText", {
        model: { name: model.name, version: model.version },
        inputs: [inputOf(first)],
        secondInputs: other === undefined ? [] : [inputOf(other)],
        truncate: true,
        topK: Number(model.classifier.classes),
      });
      const { classification, documents = [] } = answer.classifications[0];
      const cut = documents.find((one) => one.truncated);
      const read = cut ? `; only the first ${count(Number(cut.tokenCount))} tokens were read` : "";
      const odd = [first, other].some((bytes) => bytes && decodeExactly(bytes) === null) ? "; the bytes are not UTF-8" : "";
      showClasses(result, model, classification, read + odd);
    } catch (error) {
      showError(result, error.message);
    }
  }

  async function takeFiles(files) {
    const model = selected();
    if (model === null) return say(status, "The server has no classifier.", true);
    if (isImageModel(model)) return takeImages(model, files);
    if (needsPair(model) || (isPair(model) && files.length === 2)) {
      if (files.length !== 2) return say(status, "This model compares two texts: drop two files.", true);
      return takeTexts(model, await Promise.all(files.map(bytesOfFile)), files.map((file) => file.name).join(", "));
    }
    for (const file of [...files].reverse()) takeTexts(model, [await bytesOfFile(file)], file.name);
  }

  async function takeExample() {
    const model = selected();
    if (model === null) return say(status, "The server has no classifier.", true);
    if (isImageModel(model)) return takeImages(model, [await drawDaisy()]);
    if (isPair(model)) {
      const pairs = pairsFor(model.tokenizer);
      const next = (pairs.findIndex(([first]) => first === area.value) + 1) % pairs.length;
      [area.value, second.value] = pairs[next];
    } else {
      area.value = nextExample(textsFor(model.tokenizer), area.value);
    }
    say(status, "");
    sameCall.update();
    area.focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const model = selected();
    if (model === null || isImageModel(model)) return;
    if (textsOf(model).includes("")) {
      return say(status, "There is no text yet: type one, or drop a file.", true);
    }
    takeTexts(model, textsOf(model).map(encode));
  });
  sendByKey(form);
  for (const field of [area, second]) field.addEventListener("input", sameCall.update);
  byId("classify-example").addEventListener("click", takeExample);
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

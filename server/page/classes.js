// The classes of a model: their names, and their probabilities in an answer.

import { copyButton } from "./copy.js";
import { bar, count, foreign, make, seconds, short } from "./dom.js";

const FIRST = 5; // classes that are shown at once
const NAMED = 12; // a model with more classes shows their names only when asked

const isRegression = (model) => model.classifier.problemType === "PROBLEM_TYPE_REGRESSION";

const nameOf = (one) => one.label || `class ${one.index ?? 0}`;

// What a model gives, for its card.
export function whatItGives(model) {
  const { classifier } = model;
  const number = Number(classifier.classes ?? 0);
  if (number === 0) return `Embeddings of ${count(Number(classifier.embeddingWidth))} numbers; it has no classes`;
  const what = `${count(number)} ${isRegression(model) ? `number${number === 1 ? "" : "s"}` : number === 1 ? "class" : "classes"}`;
  const labels = (model.labels ?? []).filter((label) => label);
  if (labels.length === 0) return what;
  if (labels.length <= NAMED) return `${what}: ${labels.join(", ")}`;
  const list = make("ol", { className: "names" }, labels.map((label) => foreign("li", { textContent: label })));
  return make("details", {}, make("summary", { textContent: `${what}: show their names` }), list);
}

// A regression has numbers instead of probabilities, which have no bars.
function row(model, one, chosen) {
  if (!isRegression(model)) return bar(nameOf(one), one.probability ?? 0, chosen);
  return make("li", { className: "row spread" },
    foreign("span", { textContent: nameOf(one) }), make("span", { textContent: short(one.probability ?? 0, 4) }));
}

// The elements of a card's result: the likeliest classes, all others when asked, and the time.
export function classCards(model, classification, note = "") {
  const classes = classification.classes ?? [];
  const rows = (some) => some.map((one) => row(model, one, one === classes[0]));
  const elements = [make("ul", { className: "bars" }, rows(classes.slice(0, FIRST)))];
  if (classes.length > FIRST) {
    const rest = make("ul", { className: "bars" });
    const more = make("details", { className: "more" },
      make("summary", { textContent: `All ${count(classes.length)} classes` }), rest);
    // Only then: many results of a model with a thousand classes would be slow.
    more.addEventListener("toggle", () => {
      if (more.open && rest.children.length === 0) rest.append(...rows(classes.slice(FIRST)));
    });
    elements.push(more);
  }
  const { preparationSeconds = 0, queueSeconds = 0, runSeconds = 0 } = classification.timings ?? {};
  const times = `${seconds(preparationSeconds + queueSeconds + runSeconds)} on the server${note}`;
  const lines = () => classes.map((one) => `${nameOf(one)}\t${one.probability ?? 0}\n`).join("");
  elements.push(make("div", { className: "row spread" },
    make("p", { className: "note", textContent: times }), copyButton("Copy", "The list of classes", lines)));
  return elements;
}

// Elements, numbers in words, and what several views share.

// Makes an element. `properties` are DOM properties; names with a dash are attributes, and `style` has properties of CSS.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") Object.assign(element.style, value);
    else if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);

// 1234567 as "1,234,567".
export const count = (number) => Math.round(number).toLocaleString("en");

// "1 image", "3 images".
export const several = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

// With at most `digits` digits that matter: 0.00123, 1.23, 123.
export function short(number, digits = 3) {
  if (!Number.isFinite(number)) return "–";
  return Number(number.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
}

function scaled(number, units, base) {
  let unit = 0;
  while (number >= base && unit < units.length - 1) {
    number /= base;
    ++unit;
  }
  return `${short(number)} ${units[unit]}`.trim();
}

export const size = (bytes) => scaled(bytes, ["B", "kB", "MB", "GB", "TB"], 1000);
export const memory = (bytes) => scaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
export const large = (number) => scaled(number, ["", "thousand", "million", "billion"], 1000);

export function seconds(value) {
  if (!Number.isFinite(value)) return "–";
  if (value < 0.001) return `${short(value * 1e6, 2)} µs`;
  if (value < 1) return `${short(value * 1e3, 2)} ms`;
  if (value < 120) return `${short(value, 2)} s`;
  return `${count(value / 60)} min`;
}

export function percent(ratio) {
  const value = ratio * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

// Shows a sentence below a form or list; `error`: as an error.
export function say(element, text, error = false) {
  element.textContent = text;
  element.classList.toggle("error", error);
}

// A text that others wrote, in any language: its first letter decides the direction of the line.
export const foreign = (tag, properties = {}, ...children) => make(tag, { dir: "auto", ...properties }, ...children);

// A bar with a label and a probability; `chosen`: it stands out.
export function bar(label, probability, chosen) {
  const fill = make("span", { className: "bar-fill", style: { width: `${probability * 100}%` } });
  return make(
    "li",
    { className: chosen ? "bar chosen" : "bar" },
    foreign("span", { className: "bar-label", textContent: label, title: label }),
    make("span", { className: "bar-track", "aria-hidden": "true" }, fill),
    make("span", { className: "bar-value", textContent: percent(probability) }),
  );
}

// Calls `take` with the files that are dropped on the element.
export function acceptDrops(element, take) {
  let depth = 0;
  const mark = (change) => {
    depth = Math.max(0, depth + change);
    element.classList.toggle("over", depth > 0);
  };
  element.addEventListener("dragenter", () => mark(1));
  element.addEventListener("dragleave", () => mark(-1));
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", (event) => {
    depth = 0;
    mark(0);
    const files = [...event.dataTransfer.files];
    if (files.length === 0) return;
    event.preventDefault();
    take(files);
  });
}

// Sends a form by Ctrl+Enter (on a Mac also by Command+Enter) from each field of `parts`.
export function sendByKey(form, parts = [form]) {
  for (const part of parts) {
    for (const field of part.querySelectorAll("textarea, input")) field.setAttribute("aria-keyshortcuts", "Control+Enter");
    part.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      form.requestSubmit();
    });
  }
}

// Shows a note above an element as long as a part of it is hidden at its right.
export function hintScrolling(element, note) {
  const update = () => {
    const rest = element.scrollWidth - element.clientWidth - element.scrollLeft;
    note.hidden = element.scrollWidth <= element.clientWidth + 1;
    element.classList.toggle("more-right", rest > 1);
  };
  element.addEventListener("scroll", update, { passive: true });
  const observer = new ResizeObserver(update);
  observer.observe(element);
  for (const child of element.children) observer.observe(child);
}

// Runs `draw` once before the next frame, however often it is called until then.
export function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

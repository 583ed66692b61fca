// Curves in SVG. Their texts are HTML beside them: SVG would stretch them.

import { make, makeSvg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 100;

// Path through values; a gap where a value is NaN.
function pathOf(values, top, { area = false } = {}) {
  const step = WIDTH / Math.max(1, values.length - 1);
  let path = "";
  let open = false;
  const at = (index) => `${(index * step).toFixed(2)} ${(HEIGHT * (1 - Math.min(1, values[index] / top))).toFixed(2)}`;
  values.forEach((value, index) => {
    if (Number.isNaN(value)) {
      if (open && area) path += `V${HEIGHT}Z`;
      open = false;
      return;
    }
    if (open) path += `L${at(index)}`;
    else path += area ? `M${(index * step).toFixed(2)} ${HEIGHT}L${at(index)}` : `M${at(index)}`;
    open = true;
  });
  return open && area ? `${path}V${HEIGHT}Z` : path;
}

// The smallest of 1, 2, 5, 10, 20, ... that is at least `value`.
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((bound) => bound >= value * 0.999);
}

export class Curve {
  // `lines`: the number of lines; the first also has a filled area. `label`: of the top of the axis.
  constructor(container, { lines = 1, label = String } = {}) {
    this.label = label;
    this.top = make("span", { className: "curve-top", "aria-hidden": "true" });
    this.area = makeSvg("path", { class: "curve-area" });
    this.paths = Array.from({ length: lines }, (_, index) => makeSvg("path", { class: `curve-line line-${index}` }));
    this.window = makeSvg("rect", { class: "curve-window", y: 0, height: HEIGHT, width: 0 });
    const svg = makeSvg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      ...[0, 50, 100].map((y) => makeSvg("path", { class: "curve-grid", d: `M0 ${y}H${WIDTH}` })),
      this.area,
      ...this.paths,
      this.window,
    );
    container.replaceChildren(svg, this.top);
  }

  // `series`: a list of values for each line. The axis ends at `top`.
  draw(series, top) {
    this.area.setAttribute("d", pathOf(series[0], top, { area: true }));
    series.forEach((values, index) => this.paths[index].setAttribute("d", pathOf(values, top)));
    this.top.textContent = this.label(top);
  }

  // Marks a part of the width, from 0 to 1; all of it needs no mark.
  mark(from, end) {
    this.window.setAttribute("visibility", end - from > 0.95 ? "hidden" : "visible");
    this.window.setAttribute("x", from * WIDTH);
    this.window.setAttribute("width", Math.max(2, (end - from) * WIDTH));
  }
}

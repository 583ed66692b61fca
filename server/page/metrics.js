// Prometheus' text form, and what is computed from two readings of it.

// Reads samples: name to a list of {labels, value}.
export function parse(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (found === null) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[name] = value.replace(/\\(.)/g, (_, one) => (one === "n" ? "\n" : one));
    }
    if (!samples.has(found[1])) samples.set(found[1], []);
    samples.get(found[1]).push({ labels, value: found[3] === "+Inf" ? Infinity : Number(found[3]) });
  }
  return samples;
}

const holds = (labels, wanted) => Object.entries(wanted).every(([name, value]) => labels[name] === value);

// The sum of a metric's samples that have these labels.
export function sum(samples, name, wanted = {}) {
  let total = 0;
  for (const { labels, value } of samples.get(name) ?? []) if (holds(labels, wanted)) total += value;
  return total;
}

// Cumulative counts of a histogram by upper bound, over all series that have these labels.
function buckets(samples, name, wanted) {
  const counts = new Map();
  for (const { labels, value } of samples.get(`${name}_bucket`) ?? []) {
    if (!holds(labels, wanted)) continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return counts;
}

// The value below which the part `quantile` of the observations between two readings lies, as histogram_quantile of
// Prometheus. NaN if there were none.
export function quantileBetween(before, after, name, quantile, wanted = {}) {
  const old = buckets(before, name, wanted);
  const bounds = [...buckets(after, name, wanted)]
    .map(([bound, value]) => [bound, value - (old.get(bound) ?? 0)])
    .sort(([one], [two]) => one - two);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return NaN;
  const rank = quantile * total;
  let [lower, below] = [0, 0];
  for (const [bound, value] of bounds) {
    if (value >= rank) {
      if (bound === Infinity) return lower;
      return lower + (bound - lower) * (value > below ? (rank - below) / (value - below) : 1);
    }
    [lower, below] = [bound, value];
  }
  return NaN;
}

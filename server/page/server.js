// The view Server: the last minute of /metrics as figures and small curves.

import { CallError, get, hasToken } from "./api.js";
import { Curve, roundUp } from "./curve.js";
import { byId, count, make, memory, percent, say, seconds, short } from "./dom.js";
import { parse, quantileBetween, sum } from "./metrics.js";

const SECONDS = 60;
const INTERVAL_MS = 1000;
const WINDOW = 10; // readings over which latencies are taken
const DURATION = "longshort_request_duration_seconds";
const FIRST_TOKEN = "longshort_time_to_first_token_seconds";

// Each card: its lines as functions of (now, before, windowStart, seconds since before), and how values are written.
const CARDS = [
  {
    title: "Requests", unit: "per second", names: ["all", "failed"], write: short,
    lines: [
      ({ rate }) => rate("longshort_requests_total"),
      ({ rate }) => rate("longshort_requests_total") - rate("longshort_requests_total", { code: "OK" }),
    ],
  },
  { title: "Queue", unit: "waiting", names: ["requests and items"], write: count, lines: [({ now }) => sum(now, "longshort_queue_length")] },
  {
    title: "Tokens", unit: "per second", names: ["read", "generated"], write: short,
    lines: [({ rate }) => rate("longshort_prompt_tokens_total"), ({ rate }) => rate("longshort_generated_tokens_total")],
  },
  {
    title: "Latency of calls", unit: `last ${WINDOW} s`, names: ["p50", "p99"], write: seconds,
    lines: [({ quantile }) => quantile(DURATION, 0.5), ({ quantile }) => quantile(DURATION, 0.99)],
  },
  {
    title: "First token", unit: `last ${WINDOW} s`, names: ["p50", "p99"], write: seconds,
    lines: [({ quantile }) => quantile(FIRST_TOKEN, 0.5), ({ quantile }) => quantile(FIRST_TOKEN, 0.99)],
  },
  {
    title: "Cache", unit: "of its bytes", names: ["in use", "kept for reuse"], write: percent, top: 1,
    lines: [({ now }) => cachePart(now, "used"), ({ now }) => cachePart(now, "used") + cachePart(now, "idle")],
  },
  {
    title: "Images and documents", unit: "per second", names: ["classified", "failed"], write: short,
    lines: [
      ({ rate }) => rate("longshort_items_total", { code: "OK" }),
      ({ rate }) => rate("longshort_items_total") - rate("longshort_items_total", { code: "OK" }),
    ],
  },
  { title: "Processors", unit: "in use", names: ["CPUs"], write: (value) => short(Math.round(value * 100) / 100), lines: [({ rate }) => rate("process_cpu_seconds_total")] },
  { title: "Memory", unit: "resident", names: ["bytes"], write: memory, round: (most) => 2 ** Math.ceil(Math.log2(most)), lines: [({ now }) => sum(now, "process_resident_memory_bytes")] },
];

function cachePart(now, state) {
  const all = sum(now, "longshort_cache_bytes");
  return all > 0 ? sum(now, "longshort_cache_bytes", { state }) / all : 0;
}

class Card {
  constructor(list, card) {
    this.card = card;
    this.history = card.lines.map(() => new Array(SECONDS).fill(NaN));
    this.values = card.names.map(() => make("dd"));
    const several = card.names.length > 1;
    const names = card.names.map((name, index) =>
      make("div", {}, make("dt", {}, several ? make("span", { className: `dot line-${index}`, "aria-hidden": "true" }) : null, name), this.values[index]));
    const curve = make("div", { className: "curve small" });
    list.append(make(
      "li",
      { className: "card figure" },
      make("h3", {}, card.title, make("span", { className: "note", textContent: ` ${card.unit}` })),
      make("dl", { className: "figures" }, names),
      curve,
    ));
    this.curve = new Curve(curve, { lines: card.lines.length, label: card.write });
  }

  add(reading) {
    this.card.lines.forEach((line, index) => {
      const value = line(reading);
      this.history[index].push(value);
      this.history[index].shift();
      this.values[index].textContent = this.card.write(value);
    });
    const most = Math.max(0, ...this.history.flat().filter((value) => !Number.isNaN(value)));
    this.curve.draw(this.history, this.card.top ?? (this.card.round ?? roundUp)(most));
  }
}

export function makeServer() {
  const status = byId("server-status");
  const cards = CARDS.map((card) => new Card(byId("server-cards"), card));
  const readings = []; // {time, samples}, oldest first
  const again = byId("server-again");
  let timer = null;
  // Whether the token may read the metrics; null: not known. A browser reports each refusal as an error of the page, so
  // the page asks before it reads.
  let allowed = null;

  async function read(quiet) {
    if (allowed === false) return;
    try {
      if (hasToken()) allowed ??= JSON.parse(await get("info", { quiet })).may_read_metrics;
      if (allowed === false) throw new CallError("permission_denied");
      const samples = parse(await get("metrics", { quiet }));
      const time = performance.now() / 1000;
      const last = readings.at(-1);
      // After a pause, or a restart of the server, differences would mislead.
      if (last && (time - last.time > 5 || started(samples) !== started(last.samples))) readings.length = 0;
      readings.push({ time, samples });
      if (readings.length > SECONDS + 1) readings.shift();
      if (readings.length > 1) {
        const reading = compare();
        for (const card of cards) card.add(reading);
      }
      showCalls();
      const info = samples.get("longshort_build_info")?.[0]?.labels ?? {};
      const up = Date.now() / 1000 - started(samples);
      say(status, `Version ${info.version ?? "unknown"}, running for ${describeUptime(up)}.`);
    } catch (error) {
      if (error.code === "permission_denied") allowed = false;
      again.hidden = allowed !== false;
      const scope = allowed === false ? " This view needs a token with the scope observe." : "";
      say(status, `${error.message}${scope}`, true);
    }
  }

  // After another token was given, or when the person asks.
  function askAgain() {
    allowed = null;
    again.hidden = true;
    if (timer !== null) read(false);
  }

  const started = (samples) => sum(samples, "process_start_time_seconds");

  function describeUptime(up) {
    if (up < 3600) return seconds(Math.max(1, up));
    return up < 2 * 86400 ? `${count(up / 3600)} hours` : `${count(up / 86400)} days`;
  }

  function compare() {
    const { time, samples: now } = readings.at(-1);
    const before = readings.at(-2);
    const window = readings.at(-Math.min(readings.length, WINDOW + 1)).samples;
    return {
      now,
      rate: (name, labels) => Math.max(0, sum(now, name, labels) - sum(before.samples, name, labels)) / (time - before.time),
      quantile: (name, part) => quantileBetween(window, now, name, part),
    };
  }

  function showCalls() {
    const now = readings.at(-1).samples;
    const first = readings[0].samples;
    const rows = new Map();
    for (const { labels } of now.get("longshort_requests_total") ?? []) {
      rows.set(JSON.stringify([labels.rpc, labels.model]), { rpc: labels.rpc, model: labels.model });
    }
    byId("server-calls").replaceChildren(...[...rows.keys()].sort().map((key) => {
      const labels = rows.get(key);
      const all = sum(now, "longshort_requests_total", labels);
      const failed = all - sum(now, "longshort_requests_total", { ...labels, code: "OK" });
      const cells = [
        labels.model || "–",
        count(all),
        count(failed),
        count(all - sum(first, "longshort_requests_total", labels)),
        seconds(quantileBetween(first, now, DURATION, 0.5, labels)),
        seconds(quantileBetween(first, now, DURATION, 0.99, labels)),
      ];
      return make("tr", {}, make("th", { scope: "row", textContent: labels.rpc }), cells.map((textContent) => make("td", { textContent })));
    }));
  }

  // Reads while the view is shown.
  function watch(shown) {
    if (shown === (timer !== null)) return;
    if (!shown) {
      clearInterval(timer);
      timer = null;
      return;
    }
    read(false);
    let busy = false;
    timer = setInterval(async () => {
      if (busy || document.hidden) return;
      busy = true;
      await read(true);
      busy = false;
    }, INTERVAL_MS);
  }

  again.addEventListener("click", askAgain);
  return { watch, askAgain };
}

// "The same call" in other programs: each function makes {curl, python, openai} from what a view would send now.

import { hasToken } from "./api.js";
import { isImageModel } from "./models.js";
import { encode } from "./source.js";

const GRPC_PORT = 8500; // of --listen, unless the server was started with another

const address = (path) => new URL(path, document.baseURI).href;
const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
// JSON's strings are Python's, too.
const inPython = (value) => (Array.isArray(value) ? `[${value.map(inPython).join(", ")}]` : JSON.stringify(value));
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const modelOf = ({ name, version }) => ({ name, version: String(version) });
const nameOf = ({ name, version }) => `${name}/${version}`;

function curlHead(method) {
  const token = hasToken() ? ` \\\n  -H "authorization: Bearer $TOKEN"` : "";
  return `curl ${inShell(address(`longshort.v1.${method}`))} \\\n  -H 'content-type: application/json'${token} \\\n  `;
}

// A longer message does not fit into an argument, so the shell writes it to the program.
const IN_ARGUMENT = 100_000; // bytes; Linux takes 128 KiB

function curl(method, message) {
  const body = JSON.stringify(message);
  if (encode(body).length <= IN_ARGUMENT) return `${curlHead(method)}-d ${inShell(body)}\n`;
  return `${curlHead(method)}-d @- <<'END'\n${body}\nEND\n`;
}

// With a file in the message, in place of FILE: the shell writes it in base64.
function curlOfFile(method, message, name) {
  const format = JSON.stringify(message).replaceAll("%", "%%").replaceAll("\\", "\\\\").replace('"FILE"', '"%s"');
  return `printf ${inShell(format)} "$(base64 < ${inShell(name)} | tr -d '\\n')" | ${curlHead(method)}-d @-\n`;
}

// A call with one argument a line.
function pythonCall(call, args) {
  return `${call}(\n${args.map((one) => `    ${one},\n`).join("")})`;
}

const named = (options) => Object.entries(options).map(([name, value]) => `${snake(name)}=${inPython(value)}`);

function python(body, { imports = [] } = {}) {
  const token = hasToken() ? ', token=os.environ["TOKEN"]' : "";
  const tls = location.protocol === "https:" ? ", tls=True" : "";
  const all = [...(token ? ["import os"] : []), ...imports];
  return `${all.map((line) => `${line}\n`).join("")}${all.length > 0 ? "\n" : ""}import longshort

# The port is that of gRPC (--listen).
with longshort.Client("${location.hostname}:${GRPC_PORT}"${token}${tls}) as client:
${body.split("\n").map((line) => (line === "" ? "" : `    ${line}`)).join("\n")}
`;
}

function openai(body, { imports = [] } = {}) {
  const all = [...(hasToken() ? ["import os"] : []), ...imports];
  const key = hasToken() ? 'os.environ["TOKEN"]' : '"none"';
  return `${all.map((line) => `${line}\n`).join("")}${all.length > 0 ? "\n" : ""}import openai

client = openai.OpenAI(base_url="${address("v1")}", api_key=${key})
${body}
`;
}

const NOT_TEXT = "# The API of OpenAI takes only text, and this file is not UTF-8.\n";
const LISTED = 131072; // tokens whose probabilities an answer has
const TOO_LONG = "# The API of OpenAI lists the probability of each token; the server lists at most 131,072.\n";

// `source`: a Source. A file is read by the program, so that its bytes stay as they are.
export function scoreCall(model, source) {
  if (model === null) return null;
  const { name } = source;
  const isFile = name !== undefined;
  const text = isFile ? "" : source.text;
  const message = { model: modelOf(model), inputs: [isFile ? { raw: "FILE" } : { text }] };
  const path = isFile ? { imports: ["from pathlib import Path"] } : {};
  const bytes = isFile ? `Path(${inPython(name)}).read_bytes()` : inPython(text);
  const refused = source.text === null ? NOT_TEXT : source.bytes.length > LISTED ? TOO_LONG : null;
  const unit = model.tokenizer === "fairseq_characters" ? "bits_per_character" : "bits_per_byte";
  return {
    curl: isFile ? curlOfFile("Inference/ScoreText", message, name) : curl("Inference/ScoreText", message),
    python: python(`[score] = ${pythonCall("client.score", [`[${bytes}]`, `model=${inPython(nameOf(model))}`])}
print(score.log_likelihood, score.${unit})`, path),
    openai: refused ?? openai(`answer = ${pythonCall("client.completions.create", [
      `model=${inPython(model.name)}`, `prompt=${bytes}${isFile ? ".decode()" : ""}`, "max_tokens=0", "echo=True", "logprobs=0"])}
print(sum(answer.choices[0].logprobs.token_logprobs[1:]))  # the first token has none`, path),
  };
}

// `text`: of the conversation and its prompt. `sampling`: a Sampling.
export function generateCall(model, text, sampling) {
  if (model === null) return null;
  const { message, maxTokens, stop } = sampling;
  const stops = stop.length > 0 ? { stop } : {};
  const { seed, ...numbers } = message;
  // A seed may be greater than JavaScript's numbers.
  const seeds = seed === undefined ? [] : [`seed=${seed.replace(/^0+(?=\d)/, "")}`];
  const { topK, minP, repetitionPenalty, ...known } = numbers;
  const more = Object.entries({ topK, minP, repetitionPenalty }).filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${inPython(snake(name))}: ${inPython(value)}`);
  const extra = more.length > 0 ? [`extra_body={${more.join(", ")}}`] : [];  // the package has no names for them
  return {
    curl: curl("Inference/Generate", { model: modelOf(model), prompt: { text }, maxTokens: String(maxTokens), sampling: message, ...stops }),
    python: python(`stream = ${pythonCall("client.generate", [
      inPython(text), `model=${inPython(nameOf(model))}`, ...named({ maxTokens, ...stops, ...numbers }), ...seeds])}
for part in stream:
    print(part, end="", flush=True)`),
    openai: openai(`stream = ${pythonCall("client.completions.create", [
      `model=${inPython(nameOf(model))}`, `prompt=${inPython(text)}`, ...named({ maxTokens, ...stops, ...known }), ...seeds, ...extra, "stream=True"])}
for part in stream:
    print(part.choices[0].text, end="", flush=True)`),
  };
}

const NOT_OF_OPENAI = "# The API of OpenAI has no call that classifies.\n";

// `texts`: one, or the two of a pair; of an image model no text counts.
export function classifyCall(model, texts) {
  if (model === null) return null;
  const topK = Number(model.classifier.classes);
  const options = [`model=${inPython(nameOf(model))}`, `top_k=${topK}`];
  const body = (items, more = []) => `[answer] = ${pythonCall("client.classify", [items, ...options, ...more])}
for one in answer.classes:
    print(one.label, one.probability)`;
  if (isImageModel(model)) {
    const file = "photo.jpg";
    return {
      curl: curlOfFile("Inference/ClassifyImage", { model: modelOf(model), images: [{ encoded: "FILE" }], topK }, file),
      python: python(body(`[${inPython(file)}]`)),
      openai: NOT_OF_OPENAI,
    };
  }
  const [first, second] = texts;
  const seconds = second === undefined ? {} : { secondInputs: [{ text: second }] };
  const items = second === undefined ? `[${inPython(first)}]` : `[(${inPython(first)}, ${inPython(second)})]`;
  return {
    curl: curl("Inference/ScoreText", { model: modelOf(model), inputs: [{ text: first }], ...seconds, truncate: true, topK }),
    python: python(body(items, ["truncate=True"])),
    openai: NOT_OF_OPENAI,
  };
}

// `pooling`: "POOLING_UNSPECIFIED", "POOLING_CLS" or "POOLING_MEAN".
export function embedCall(model, texts, pooling) {
  if (model === null) return null;
  const pool = pooling === "POOLING_UNSPECIFIED" ? [] : [`pooling="${pooling.slice("POOLING_".length).toLowerCase()}"`];
  const note = pool.length > 0 ? "# The API of OpenAI has no other pooling than that of the model's head.\n" : "";
  const message = { model: modelOf(model), inputs: texts.map((text) => ({ text })), truncate: true, pooling, normalize: true };
  return {
    curl: curl("Inference/Embed", message),
    python: python(`one, two = ${pythonCall("client.embed", [
      inPython(texts), `model=${inPython(nameOf(model))}`, ...pool, "truncate=True", "normalize=True"])}
print(sum(a * b for a, b in zip(one.values, two.values)))  # the cosine`),
    openai: openai(`${note}answer = ${pythonCall("client.embeddings.create", [`model=${inPython(model.name)}`, `input=${inPython(texts)}`])}
one, two = (item.embedding for item in answer.data)
print(sum(a * b for a, b in zip(one, two)))  # the cosine`),
  };
}

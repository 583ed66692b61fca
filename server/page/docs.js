// The page /docs: what /openapi.json says, for people.

import { get } from "./api.js";
import { byId, make, say } from "./dom.js";

const METHODS = ["get", "post"];
const JSON_TYPE = "application/json";
const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const nameOf = (reference) => reference.split("/").pop();

let document_ = {};

// An object or a response of `components`, for a reference to it.
function resolve(value) {
  if (!value?.$ref) return value;
  const [, , kind, name] = value.$ref.split("/");
  return document_.components[kind][name];
}

// A schema's type in words; objects with a name are links.
function typeOf(schema) {
  if (schema.$ref) return [make("a", { href: `#object-${nameOf(schema.$ref)}`, textContent: nameOf(schema.$ref) })];
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return either.flatMap((one, index) => (index > 0 ? [" or ", ...typeOf(one)] : typeOf(one)));
  if (schema.enum) return [schema.enum.map((word) => JSON.stringify(word)).join(", ")];
  if (schema.type === "array") return ["list of ", ...typeOf(schema.items)];
  if (schema.type === "object" && schema.additionalProperties) return ["object of ", ...typeOf(schema.additionalProperties)];
  if (schema.format === "binary") return ["bytes"];
  if (schema.contentEncoding) return [`string in ${schema.contentEncoding}`];
  if (Array.isArray(schema.type)) return [schema.type.join(" or ")];
  return [schema.type ?? "any value"];
}

function limitsOf(schema) {
  const limits = [];
  if (schema.default !== undefined) limits.push(`default ${JSON.stringify(schema.default)}`);
  if (schema.minimum !== undefined) limits.push(`at least ${schema.minimum}`);
  return limits.join(", ");
}

function table(caption, rows) {
  if (rows.length === 0) return null;
  const head = ["Name", "Type", "Meaning"].map((text) => make("th", { scope: "col", textContent: text }));
  const lines = rows.map(({ name, schema, help, required }) =>
    make("tr", {},
      make("th", { scope: "row" }, make("code", { textContent: name }), required ? " (required)" : ""),
      make("td", {}, typeOf(schema), limitsOf(schema) ? `; ${limitsOf(schema)}` : ""),
      make("td", { className: "prose", textContent: help ?? "" })));
  return make("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": caption },
    make("table", {}, make("caption", { textContent: caption }), make("thead", {}, make("tr", {}, head)), make("tbody", {}, lines)));
}

const fieldsOf = (schema) =>
  Object.entries(schema.properties ?? {}).map(([name, field]) => ({
    name, schema: field, help: field.description, required: schema.required?.includes(name),
  }));

// The types of a body, and the fields of the first one that has some.
function body(words, content) {
  const kinds = Object.entries(content);
  const line = make("p", {}, `${words}: `, kinds.flatMap(([type, { schema }], index) => [
    index > 0 ? "; " : "", make("code", { textContent: type }), ", ", ...typeOf(schema),
  ]));
  const [first] = kinds.map(([, { schema }]) => resolve(schema)).filter((schema) => schema.properties);
  return [line, first ? table(words, fieldsOf(first)) : null];
}

// A value that the schema allows, with its required fields only.
function exampleOf(schema) {
  const found = resolve(schema.anyOf?.[0] ?? schema);
  if (found.default !== undefined) return found.default;
  if (found.enum) return found.enum[0];
  if (found.type === "array") return [exampleOf(found.items)];
  if (found.type === "object") return Object.fromEntries((found.required ?? []).map((name) => [name, exampleOf(found.properties[name])]));
  return { integer: 1, number: 1, boolean: true }[found.type] ?? "text";
}

function curlOf(path, method, operation) {
  const address = new URL(`.${path}`, document.baseURI).href.replaceAll("%7B", "{").replaceAll("%7D", "}");
  const query = (operation.parameters ?? []).filter((one) => one.in === "query" && one.required);
  const lines = [`curl ${query.length > 0 ? "-G " : ""}${inShell(address)}`];
  for (const one of query) lines.push(`--data-urlencode ${inShell(`${one.name}=${exampleOf(one.schema)}`)}`);
  if (operation.security) lines.push(`-H "authorization: Bearer $TOKEN"`);
  const [type, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  if (type) lines.push(`-H ${inShell(`content-type: ${type}`)}`);
  if (type === JSON_TYPE) lines.push(`-d ${inShell(JSON.stringify(exampleOf(content.schema)))}`);
  else if (type) lines.push("--data-binary @FILE");
  return lines.join(" \\\n  ");
}

// What a click opens. Its content is made when it is opened: there are hundreds of them.
function folded(id, summary, content) {
  const details = make("details", { className: "card call", id }, make("summary", {}, summary));
  details.addEventListener("toggle", () => details.append(...content().flat(Infinity).filter((one) => one !== null)), { once: true });
  return details;
}

function contentOf(path, method, operation) {
  const parameters = (operation.parameters ?? []).map((one) => ({
    name: one.name, schema: one.schema, help: one.description, required: one.required,
  }));
  const answers = Object.entries(operation.responses).flatMap(([status, response]) => {
    const found = resolve(response);
    const words = status === "200" ? "Answer" : status === "default" ? "Errors" : `Answer with status ${status}`;
    return [body(words, found.content)];
  });
  return [
    operation.description ? make("p", { textContent: operation.description }) : null,
    table("Parameters", parameters),
    operation.requestBody ? body("Request", operation.requestBody.content) : null,
    answers,
    make("p", { textContent: "Example:" }),
    make("pre", { tabIndex: 0, role: "group", "aria-label": "The call by curl" }, make("code", { textContent: curlOf(path, method, operation) })),
  ];
}

function show() {
  const groups = new Map();
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const method of METHODS.filter((one) => methods[one])) {
      const operation = methods[method];
      const [tag] = operation.tags;
      const name = make("code", { textContent: `${method.toUpperCase()} ${path}` });
      const call = folded(operation.operationId, [name, ` ${operation.summary}`], () => contentOf(path, method, operation));
      groups.set(tag, [...(groups.get(tag) ?? []), call]);
    }
  }
  byId("docs-calls").append(...[...groups].map(([tag, calls]) => make("section", {}, make("h3", { textContent: tag }), calls)));
  const objects = Object.entries(document_.components.schemas).map(([name, schema]) =>
    folded(`object-${name}`, make("code", { textContent: name }), () => [
      schema.description ? make("p", { textContent: schema.description }) : null,
      table(name, fieldsOf(schema)) ?? make("p", { textContent: "It has no fields." }),
    ]));
  byId("docs-objects").append(make("h3", { textContent: "Objects" }), ...objects);
}

// A link to a call or an object opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
  target?.scrollIntoView();
}

try {
  document_ = JSON.parse(await get("openapi.json"));
  show();
  say(byId("docs-status"), "");
  addEventListener("hashchange", openTarget);
  openTarget();
} catch (error) {
  say(byId("docs-status"), error.message, true);
}

"use strict";
// The page at /docs: every operation of /openapi.json with its fields, and a form that sends it.
// Never builds HTML from text: what the document says is always text, never markup.

const METHODS = ["get", "post", "put", "delete"];

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Sentences with `code` in them.
function prose(text) {
  return text.split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part));
}

function resolve(spec, schema) {
  const name = schema.$ref && schema.$ref.split("/").pop();
  return name ? { ...spec.components.schemas[name], ...schema, named: name } : schema;
}

function typeOf(spec, schema) {
  if (schema.anyOf || schema.oneOf) return (schema.anyOf || schema.oneOf).map((each) => typeOf(spec, each)).join(" | ");
  const full = resolve(spec, schema);
  if (full.enum) return full.enum.map((each) => JSON.stringify(each)).join(" | ");
  if ("const" in full) return JSON.stringify(full.const);
  if (full.type === "array") return `array of ${typeOf(spec, full.items || {})}`;
  return full.named || (full.format ? `${full.type} (${full.format})` : full.type || "any");
}

// The fields of a schema as a table; those of objects within, one level deeper, when opened.
function fields(spec, schema, seen = []) {
  const full = resolve(spec, schema);
  const one = (full.oneOf || full.anyOf || []).find((each) => each.type !== "null");
  if (one) return fields(spec, one, seen);
  if (full.type === "array") return fields(spec, full.items || {}, seen);
  if (!full.properties || seen.includes(full.named)) return [];
  const rows = Object.entries(full.properties).map(([name, field]) => {
    const required = (full.required || []).includes(name) ? " (required)" : "";
    const inner = fields(spec, field, [...seen, full.named]);
    const about = make("td", {}, ...prose(field.description || ""));
    if ("default" in field && field.default !== null) about.append(" Default: ", make("code", {}, JSON.stringify(field.default)), ".");
    if (inner.length) about.append(make("details", {}, make("summary", {}, "its fields"), ...inner));
    return make("tr", {}, make("td", {}, make("code", {}, name), required), make("td", { class: "type" }, typeOf(spec, field)), about);
  });
  return [make("table", {}, ...rows)];
}

function parameterRow(parameter, inputs) {
  const example = parameter.example ?? parameter.content?.["application/json"]?.example;
  const shown = typeof example === "object" ? JSON.stringify(example) : String(example);
  const input = make("input", { placeholder: shown, "aria-label": parameter.name, class: "mono" });
  inputs.push({ parameter, input });
  const where = parameter.in === "header" ? " (header)" : parameter.required ? " (required)" : "";
  return make("tr", {}, make("td", {}, make("code", {}, parameter.name), where), make("td", {}, input), make("td", {}, ...prose(parameter.description)));
}

function bodyForm(spec, operation) {
  const content = operation.requestBody?.content["application/json"];
  if (!content) return { parts: [], body: null };
  const examples = Object.entries(content.examples || {});
  const body = make("textarea", { "aria-label": "body", spellcheck: "false" });
  const write = (value) => { body.value = JSON.stringify(value, null, 2); };
  if (examples.length) write(examples[0][1].value);
  const choice = make("select", { "aria-label": "example" }, ...examples.map(([name]) => make("option", {}, name)));
  choice.addEventListener("change", () => write(content.examples[choice.value].value));
  const about = make("details", {}, make("summary", {}, "Fields of the body"), ...fields(spec, content.schema));
  return { parts: [make("h4", {}, "Body, for example "), choice, body, about], body };
}

// What `signal` ends was sent again: its place belongs to the new answer.
async function send(method, path, inputs, body, result, signal) {
  const query = new URLSearchParams();
  const headers = {};
  for (const { parameter, input } of inputs) {
    if (input.value === "") continue;
    if (parameter.in === "header") headers[parameter.name] = input.value;
    else query.append(parameter.name, input.value);
  }
  if (body) headers["Content-Type"] = "application/json";
  const target = query.size ? `${path}?${query}` : path;
  const said = make("pre");
  result.replaceChildren(make("p", {}, make("code", {}, `${method} ${target}`), " …"), said);
  try {
    const response = await fetch(target, { method, headers, body: body ? body.value : undefined, signal });
    const shown = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    const line = make("p", { class: response.ok ? "ok" : "bad" }, make("code", {}, `${method} ${target}`), ` → ${response.status}`);
    result.replaceChildren(line, make("details", {}, make("summary", {}, "headers"), make("pre", {}, shown)), said);
    await read(response, said);
  } catch (error) {
    if (!signal.aborted) said.append(`${said.textContent ? "\nThe answer broke off" : "No answer"}: ${error.message}`);
  }
}

// JSON whole and indented; anything else as it comes.
async function read(response, said) {
  if ((response.headers.get("content-type") || "").startsWith("application/json")) {
    said.textContent = JSON.stringify(await response.json(), null, 2);
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) said.append(piece.value);
}

function answers(spec, operation) {
  const rows = Object.entries(operation.responses).map(([status, answer]) => {
    const schema = Object.values(answer.content || {})[0]?.schema;
    const inner = schema && status < 300 ? fields(spec, schema) : [];
    const about = make("td", {}, ...prose(answer.description));
    if (inner.length) about.append(make("details", {}, make("summary", {}, "its fields"), ...inner));
    return make("tr", {}, make("td", { class: status < 300 ? "ok" : "bad" }, status), about);
  });
  return make("details", {}, make("summary", {}, "Answers"), make("table", {}, ...rows));
}

function show(spec, path, method, operation) {
  const verb = method.toUpperCase();
  const inputs = [];
  const rows = operation.parameters.map((each) => parameterRow(each, inputs));
  const { parts, body } = bodyForm(spec, operation);
  const result = make("div", { "aria-live": "polite" });
  const form = make("form", {}, ...(rows.length ? [make("table", {}, ...rows)] : []), ...parts, make("p", {}, make("button", {}, `Send ${verb}`)), result);
  let sent = new AbortController();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sent.abort(); // a stream would go on for ever, and a browser has six connections to a service
    sent = new AbortController();
    send(verb, path, inputs, body, result, sent.signal);
  });
  const head = make("summary", {}, make("span", { class: `method ${verb}` }, verb), " ", make("code", {}, path), " ", operation.summary);
  const inside = make("div", { class: "inside" }, make("p", {}, ...prose(operation.description)), form, answers(spec, operation));
  return make("section", { id: operation.operationId }, make("details", {}, head, inside));
}

function open() {
  const section = document.getElementById(location.hash.slice(1));
  if (!section) return;
  section.querySelector("details").open = true;
  section.scrollIntoView();
}

async function main() {
  const spec = await (await fetch("/openapi.json")).json();
  const about = document.getElementById("about");
  about.replaceChildren(`${spec.info.description} Version ${spec.info.version}. `, make("a", { href: "/openapi.json" }, "openapi.json"));
  const found = [];
  for (const [path, operations] of Object.entries(spec.paths)) {
    for (const method of METHODS.filter((each) => operations[each])) {
      const operation = operations[method];
      const section = show(spec, path, method, operation);
      const verb = method.toUpperCase();
      const link = make("a", { href: `#${operation.operationId}` }, make("span", { class: `method ${verb}` }, verb), " ", operation.tags[0]);
      found.push({ section, link, text: section.textContent.toLowerCase() });
    }
  }
  document.getElementById("contents").append(...found.map((each) => each.link));
  document.getElementById("operations").append(...found.map((each) => each.section));
  document.getElementById("find").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const { section, link, text } of found) section.hidden = link.hidden = !text.includes(wanted);
  });
  window.addEventListener("hashchange", open);
  open();
}

main().catch((error) => { document.getElementById("about").textContent = `The page cannot be shown: ${error.message}`; });

"use strict";
// The what-if page: a form in raw columns, and what the model decides about all counterparts.

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const MISSING = "(missing)";
let schema = null, answer = null, record = {}, fixed = [], across = 0, down = -1, cursor = null, turn = 0, timer = 0, asked = 0;

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, ""); else if (value !== false && value !== null) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function shape(name, attributes, parent, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

const words = (value) => value === null ? MISSING : String(value);
const title = (name) => name.replaceAll("_", " ");

async function ask(address, body) {
  const headers = {}, key = byId("key").value;
  if (key) headers["X-API-Key"] = key;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(address, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body)});
  const content = await response.json();
  byId("key-form").hidden = response.status !== 401 && !key;
  if (!response.ok) throw Object.assign(new Error(content.error), {column: content.column});
  return content;
}

// The form.

function options(column) {
  if (column.kind === "category" && !column.other) return [...column.values, ...(column.missing ? [null] : [])];
  if (column.values && column.values.length <= 40) return [...column.values, ...(column.missing ? [null] : [])];
  return null;
}

function start(column) {
  const choices = options(column);
  if (choices) return choices[0];
  if (column.kind === "category") return column.values[0];
  const middle = (column.low + column.high) / 2;
  if (column.values) return column.values[Math.floor(column.values.length / 2)];
  return column.kind === "integer" ? Math.round(middle) : Number(middle.toPrecision(3));
}

function field(column) {
  const id = `column-${schema.columns.indexOf(column)}`, help = `${id}-help`, choices = options(column);
  let input;
  if (choices) {
    input = element("select", {id, "aria-describedby": help});
    choices.forEach((value, index) => input.append(element("option", {value: index}, words(value))));
    input.value = Math.max(0, choices.indexOf(record[column.name]));
  } else {
    const number = column.kind !== "category";
    input = element("input", {id, "aria-describedby": help, type: number ? "number" : "text", step: column.kind === "integer" ? 1 : "any", autocomplete: "off"});
    input.value = record[column.name] ?? "";
  }
  const hint = choices ? "" : column.kind === "category" ? "any text" : `${column.low} to ${column.high}${column.missing ? ", or empty" : ""}`;
  input.addEventListener(choices ? "change" : "input", () => { record[column.name] = read(column, input, choices); later(); });
  return element("div", {class: "field", id: `${id}-field`}, element("label", {for: id}, title(column.name)), input, element("small", {id: help, "data-hint": hint}, hint));
}

function read(column, input, choices) {
  if (choices) return choices[Number(input.value)];
  if (column.kind === "category") return input.value;
  return input.value === "" ? null : Number(input.value);
}

function mark(column, text) {
  for (const small of document.querySelectorAll(".field small")) small.textContent = small.dataset.hint;
  for (const node of document.querySelectorAll(".field.bad")) { node.classList.remove("bad"); node.querySelector("input, select").removeAttribute("aria-invalid"); }
  const index = schema.columns.findIndex((one) => one.name === column);
  if (index < 0) return;
  const node = byId(`column-${index}-field`);
  node.classList.add("bad");
  node.querySelector("input, select").setAttribute("aria-invalid", "true");
  node.querySelector("small").textContent = text;
}

function busy(state) { document.querySelector("main").setAttribute("aria-busy", state); }

function later() { busy(true); clearTimeout(timer); timer = setTimeout(update, 120); }

async function update() {
  const mine = ++turn;
  forgetReason();
  try {
    const result = await ask("/v1/whatif", record);
    if (mine !== turn) return;
    answer = result;
    byId("problem").hidden = true;
    mark(null, "");
    fixed = [...answer.own];
    show();
  } catch (error) {
    if (mine !== turn) return;
    answer = null;
    byId("problem").hidden = false;
    byId("problem").textContent = error.message;
    mark(error.column, error.message);
    byId("headline").textContent = "No decision for this person";
    byId("explanation").textContent = "The page shows nothing about a person whom the model cannot decide.";
    for (const id of ["tiles", "axes"]) byId(id).hidden = true;
    for (const id of ["map", "sliders", "pair", "legend", "cell", "map-words"]) byId(id).replaceChildren();
    byId("answer").className = "";
  }
  byId("download").disabled = answer === null;
  busy(false);
}

// The answer.

function show() {
  const {counts, all, decision} = answer, votes = counts[decision] ?? 0;
  byId("answer").className = answer.fair === true ? "proved" : answer.fair === false ? "unfair" : "";
  const proved = answer.provenance === "proved";
  byId("headline").textContent = answer.fair === true
    ? `${proved ? "Proved: the" : "The"} decision does not depend on the sensitive attributes${proved ? "" : `, as far as ${answer.provenance}`}.`
    : answer.fair === false ? "The model's decision depends on the sensitive attributes." : "Not decided within the time limit.";
  byId("explanation").textContent = answer.fair === true
    ? `All ${all.toLocaleString("en")} combinations of ${list(answer.axes.map((axis) => title(axis.name)))} get the decision ${decision}.`
    : answer.fair === false ? "Somebody who is equal in every other column gets a different decision. The fair decision is the same for all of them."
    : answer.why;
  byId("tiles").hidden = false;
  byId("own").textContent = words(answer.own_decision);
  byId("fair").textContent = words(decision);
  byId("share").textContent = `${votes.toLocaleString("en")} of ${all.toLocaleString("en")}`;
  byId("share-words").textContent = `counterparts get ${decision} from the model` + (answer.weighted || answer.vote !== "majority" ? "; the fair decision uses the stored votes" : "");
  byId("footer").textContent = `Model ${schema.name}, sha256 ${answer.model}. Provenance: ${answer.provenance}. Vote: ${answer.vote.replaceAll("_", " ")}${answer.weighted ? " with stored weights" : ""}.`;
  showPair();
  showAxes();
  showMap();
}

function list(names) { return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`; }

function showPair() {
  const pair = answer.pair;
  if (!pair) {
    byId("pair").replaceChildren(element("p", {}, answer.fair === true ? `There is none: every combination ${answer.provenance === "proved" ? "was proved to get" : "gets"} the same decision.` : words(answer.why)));
    return;
  }
  const rows = pair.changed.map(({column, values}) => element("tr", {}, element("td", {}, title(column)), element("td", {}, element("b", {}, words(values[0]))), element("td", {}, element("b", {}, words(values[1])))));
  rows.push(element("tr", {class: "decision"}, element("td", {}, "decision"), element("td", {}, words(pair.decisions[0])), element("td", {}, words(pair.decisions[1]))));
  const head = element("tr", {}, element("td", {}, ""), element("th", {scope: "col"}, "this person"), element("th", {scope: "col"}, "a counterpart"));
  const sentence = `With ${list(pair.changed.map(({column, values}) => `${title(column)} ${words(values[1])} instead of ${words(values[0])}`))}, the decision would be ${pair.decisions[1]} instead of ${pair.decisions[0]}.`;
  byId("pair").replaceChildren(element("article", {}, element("p", {}, sentence), element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)),
    element("p", {class: "small"}, `All other columns are equal. The scores differ by ${pair.gap.toPrecision(4)}. ` + (answer.runtime === "safe" ? "Rounding in the model's own arithmetic cannot change this." : "Rounding in the model's own arithmetic could change this."))));
}

// The map: two axes are drawn, sliders fix the others.

function showAxes() {
  const axes = answer.axes;
  if (across >= axes.length) across = 0;
  if (down >= axes.length || (down === -1 && axes.length > 1) || down === across) {
    const byLength = axes.map((_, index) => index).sort((a, b) => axes[b].values.length - axes[a].values.length);
    [across, down] = [byLength[0], byLength[1] ?? -1];
  }
  byId("axes").hidden = axes.length < 2;
  for (const [id, chosen] of [["across", across], ["down", down]]) {
    byId(id).replaceChildren(...axes.map((axis, index) => element("option", {value: index, selected: index === chosen}, title(axis.name))));
  }
  const rest = axes.map((axis, index) => [axis, index]).filter(([, index]) => index !== across && index !== down);
  byId("sliders").replaceChildren(...rest.map(([axis, index]) => {
    const output = element("output", {}, words(axis.values[fixed[index]]));
    const input = element("input", {type: "range", min: 0, max: axis.values.length - 1, value: fixed[index], "aria-label": title(axis.name), "aria-valuetext": words(axis.values[fixed[index]])});
    input.addEventListener("input", () => {
      fixed[index] = Number(input.value);
      output.textContent = words(axis.values[fixed[index]]);
      input.setAttribute("aria-valuetext", output.textContent);
      showMap();
    });
    return element("label", {}, element("span", {}, title(axis.name)), input, output);
  }));
  byId("map-words").textContent = rest.length ? "Choose two attributes to draw; the sliders set the others. Arrow keys move over the map." : "One cell per combination. Arrow keys move over the map.";
}

function place(column, row) {
  const where = [...fixed];
  where[across] = column;
  if (down >= 0) where[down] = row;
  return where;
}

function decisionAt(where) {
  let index = 0;
  answer.axes.forEach((axis, number) => { index = index * axis.values.length + where[number]; });
  const digit = answer.decisions[index];
  return digit === "?" ? -1 : parseInt(digit, 36);
}

function shade(decision) { return decision < 0 || decision > 4 ? "d5" : `d${decision}`; }

function drawn(where) { return where.every((value, index) => index === across || index === down || value === fixed[index]); }

function dot(where, kind, box, parent) {
  if (!drawn(where)) return;
  const y = down < 0 ? 0 : where[down];
  shape("circle", {class: kind, cx: box.left + (where[across] + 0.5) * box.width, cy: box.top + (y + 0.5) * box.height, r: Math.min(6, Math.max(3, box.width / 2.5))}, parent);
}

function showMap() {
  const columns = answer.axes[across].values, rows = down < 0 ? [null] : answer.axes[down].values;
  const longest = down < 0 ? 0 : Math.max(...rows.map((value) => words(value).length));
  const narrow = byId("map").clientWidth < 480, total = narrow ? 360 : 640;
  const left = down < 0 ? 4 : Math.min(narrow ? 110 : 190, 14 + longest * 6), height = rows.length > 20 ? 9 : rows.length > 6 ? 22 : 32, top = 4;
  const box = {left, top, width: (total - left - 8) / columns.length, height};
  const depth = top + rows.length * height, svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${total} ${depth + 36}`);
  rows.forEach((value, row) => {
    const most = Math.floor((left - 8) / 6), text = words(value);
    if (down >= 0 && (rows.length <= 20 || row % Math.ceil(rows.length / 15) === 0)) {
      const label = shape("text", {x: left - 6, y: top + (row + 0.5) * height + 4, "text-anchor": "end"}, svg, text.length > most ? `${text.slice(0, most - 1)}…` : text);
      shape("title", {}, label, text);
    }
    columns.forEach((_, column) => {
      const decision = decisionAt(place(column, row));
      const cell = shape("rect", {class: shade(decision), x: left + column * box.width + 0.5, y: top + row * height + 0.5, width: Math.max(0.5, box.width - 1), height: height - 1, rx: 1.5, "data-column": column, "data-row": row, "data-decision": decision}, svg);
      cell.addEventListener("pointerenter", () => describe(column, row));
    });
  });
  const step = Math.ceil(columns.length / (narrow ? 5 : 10));
  columns.forEach((value, column) => {
    if (column % step) return;
    const text = words(value), most = Math.max(3, Math.floor(box.width * step / 6.5));
    const label = shape("text", {x: left + (column + 0.5) * box.width, y: depth + 14, "text-anchor": "middle"}, svg, text.length > most ? `${text.slice(0, most - 1)}…` : text);
    shape("title", {}, label, text);
  });
  shape("text", {x: left + (total - left) / 2, y: depth + 31, "text-anchor": "middle"}, svg, title(answer.axes[across].name));
  if (answer.pair) dot(positionOf(answer.pair.people[1]), "other", box, svg);
  dot(answer.own, "here", box, svg);
  if (cursor) shape("rect", {class: "cursor", x: left + cursor[0] * box.width, y: top + cursor[1] * height, width: box.width, height}, svg);
  byId("map").replaceChildren(svg);
  byId("map").setAttribute("aria-label", mapWords(columns, rows));
  const legend = answer.outcomes.slice(0, 6).flatMap((name, index) => [element("span", {class: `key ${shade(index)}`}), name]);
  legend.push(element("span", {class: "key here"}), "this person");
  if (answer.pair) legend.push(element("span", {class: "key other"}), drawn(positionOf(answer.pair.people[1])) ? "the farthest counterpart" : "the farthest counterpart (move the sliders)");
  byId("legend").replaceChildren(...legend);
}

function mapWords(columns, rows) {
  const counts = new Map();
  rows.forEach((_, row) => columns.forEach((__, column) => { const name = answer.outcomes[decisionAt(place(column, row))] ?? "undecided"; counts.set(name, (counts.get(name) ?? 0) + 1); }));
  return `Decisions of ${columns.length * rows.length} combinations: ${[...counts].map(([name, count]) => `${count} ${name}`).join(", ")}. Use the arrow keys to read single ones.`;
}

function positionOf(person) { return answer.axes.map((axis) => axis.values.findIndex((value) => value === person[axis.name])); }

function describe(column, row) {
  const where = place(column, row), name = answer.outcomes[decisionAt(where)] ?? "undecided";
  byId("cell").textContent = `${answer.axes.map((axis, index) => `${title(axis.name)} ${words(axis.values[where[index]])}`).join(", ")}: ${name}`;
}

byId("map").addEventListener("keydown", (event) => {
  const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
  if (!move || !answer) return;
  event.preventDefault();
  const columns = answer.axes[across].values.length, rows = down < 0 ? 1 : answer.axes[down].values.length;
  const [x, y] = cursor ?? [answer.own[across] - move[0], down < 0 ? 0 : answer.own[down] - move[1]];
  cursor = [Math.min(columns - 1, Math.max(0, x + move[0])), Math.min(rows - 1, Math.max(0, y + move[1]))];
  showMap();
  describe(...cursor);
});
byId("map").addEventListener("blur", () => { cursor = null; if (answer) showMap(); });
for (const id of ["across", "down"]) {
  byId(id).addEventListener("change", () => {
    const chosen = Number(byId(id).value);
    if (id === "across") { if (chosen === down) down = across; across = chosen; } else { if (chosen === across) across = down; down = chosen; }
    cursor = null;
    showAxes();
    showMap();
    byId(id).focus();
  });
}
window.addEventListener("resize", () => { if (answer) showMap(); });
window.addEventListener("hashchange", () => { fromLink(); build(); update(); });

// Reasons: the smallest change of other columns that makes the fair decision favorable.

const MOVES = {any: "may change", up: "may only grow", down: "may only shrink"};

function buildReasons() {
  const columns = schema.columns.filter((column) => !column.sensitive && !/[:=,|]/.test(column.name));
  byId("reasons").hidden = columns.length === 0 || schema.outcomes.length < 2;
  byId("changeable").replaceChildren(...columns.map((column) => {
    const id = `change-${schema.columns.indexOf(column)}`, moves = column.kind === "category" ? ["any"] : ["any", "up", "down"];
    const select = element("select", {id, "data-column": column.name}, element("option", {value: ""}, "stays"), ...moves.map((move) => element("option", {value: move}, MOVES[move])));
    select.addEventListener("change", forgetReason);
    return element("div", {class: "field"}, element("label", {for: id}, `${title(column.name)} …`), select);
  }));
  byId("wanted").replaceChildren(...schema.outcomes.map((name) => element("option", {value: name}, name)));
  byId("wanted").value = schema.outcomes.at(-1);
  byId("wanted-label").hidden = schema.outcomes.length === 2;
}

function forgetReason() { asked += 1; byId("reason").textContent = ""; }

byId("reasons-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  forgetReason();
  const mine = asked, selects = [...document.querySelectorAll("#changeable select")].filter((select) => select.value);
  const change = selects.map((select) => select.value === "any" ? select.dataset.column : `${select.dataset.column}:${select.value}`);
  if (!change.length) { byId("reason").textContent = "Choose at least one column that may change."; return; }
  byId("reason").textContent = "Searching …";
  const body = {record, change};
  if (schema.outcomes.length > 2) body.favorable = byId("wanted").value;
  let text;
  try { text = (await ask("/v1/explain", body)).sentences.join(" "); } catch (error) { text = error.message; }
  if (mine === asked) byId("reason").textContent = text;
});
byId("wanted").addEventListener("change", forgetReason);

// Links and evidence. The fragment of an address is never sent to a server.

function fromLink() {
  record = Object.fromEntries(schema.columns.map((column) => [column.name, start(column)]));
  try {
    const stored = JSON.parse(decodeURIComponent(location.hash.slice(1)) || "{}");
    for (const column of schema.columns) if (Object.hasOwn(stored, column.name)) record[column.name] = stored[column.name];
  } catch { /* not a link of this page */ }
}

byId("link").addEventListener("click", async () => {
  const address = `${location.origin}/#${encodeURIComponent(JSON.stringify(record))}`;
  history.replaceState(null, "", address);
  try { await navigator.clipboard.writeText(address); byId("note").textContent = "Copied. The link contains this person."; }
  catch { byId("note").textContent = "The address of this page is the link now. It contains this person."; }
});

byId("download").addEventListener("click", () => {
  const content = JSON.stringify({person: record, ...answer}, null, 1);
  const url = URL.createObjectURL(new Blob([content], {type: "application/json"}));
  const anchor = element("a", {href: url, download: "what-if.json"});
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  byId("note").textContent = "Saved what-if.json.";
});

byId("key-form").addEventListener("submit", (event) => { event.preventDefault(); begin(); });
byId("person").addEventListener("submit", (event) => event.preventDefault());

function build() {
  for (const [id, sensitive] of [["sensitive", true], ["shared", false]]) {
    byId(id).replaceChildren(...schema.columns.filter((column) => column.sensitive === sensitive).map(field));
  }
}

async function begin() {
  try {
    schema = await ask("/v1/schema");
  } catch (error) {
    byId("headline").textContent = "This service needs an API key";
    byId("problem").hidden = false;
    byId("problem").textContent = error.message;
    return;
  }
  byId("model").textContent = `Model ${schema.name}`;
  byId("problem").hidden = true;
  fromLink();
  build();
  buildReasons();
  await update();
}

begin();

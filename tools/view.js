"use strict";
const byId = id => document.getElementById(id);
const svg = document.querySelector("svg.graph");
const whole = svg.getAttribute("viewBox").split(" ").map(Number);
const nodes = [...svg.querySelectorAll(".node")];
const edges = [...svg.querySelectorAll(".edge")];
const boxOf = new Map(nodes.map(n => {
  const r = n.querySelector("rect");
  const [x, y, width, height] = ["x", "y", "width", "height"].map(a => Number(r.getAttribute(a)));
  return [n, {x, y, width, height}];
}));
const byNumber = new Map(nodes.map(n => [n.dataset.n, n]));
const reads = new Map(nodes.map(n => [n, []])), readBy = new Map(nodes.map(n => [n, []]));
for (const edge of edges) {
  const [source, target] = [byNumber.get(edge.dataset.from), byNumber.get(edge.dataset.to)];
  reads.get(target).push(source);
  readBy.get(source).push(target);
}
const titleOf = n => n.querySelector(".title").textContent;
const factsOf = n => JSON.parse(n.dataset.facts);
const nameOf = n => n.dataset.name || titleOf(n);
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), {textContent: text, ...more});

// ---- what is seen
let box = [...whole];
const scale = () => Math.max(box[2] / svg.clientWidth, box[3] / svg.clientHeight);
function show() {
  svg.setAttribute("viewBox", box.join(" "));
  svg.classList.toggle("far", scale() > 2.6);  // smaller than this nobody reads the lines
  drawWindow();
}
function zoom(factor, x = box[0] + box[2] / 2, y = box[1] + box[3] / 2) {
  const next = scale() * factor;
  if (next < 0.15 || (factor > 1 && box[2] > 4 * whole[2] && box[3] > 4 * whole[3])) return;
  box = [x + (box[0] - x) * factor, y + (box[1] - y) * factor, box[2] * factor, box[3] * factor];
  show();
}
function pan(dx, dy) {
  box[0] += dx;
  box[1] += dy;
  show();
}
/** From the top, at a size that can be read: a deep graph is scrolled, not shrunk to a thread. */
function start() {
  const width = Math.max(svg.clientWidth, Math.min(whole[2], svg.clientWidth * 1.6));
  const height = width * svg.clientHeight / svg.clientWidth;
  const fitting = whole[2] <= width && whole[3] <= height;
  box = fitting ? [...whole] : [whole[0] + (whole[2] - width) / 2, whole[1], width, height];
  show();
}
function fit() {
  box = [...whole];
  show();
}
function center(node) {
  const at = boxOf.get(node);
  const size = Math.min(1.6, Math.max(0.6, scale()));  // so that it can be read
  box = [0, 0, svg.clientWidth * size, svg.clientHeight * size];
  box[0] = at.x + at.width / 2 - box[2] / 2;
  box[1] = at.y + at.height / 2 - box[3] / 2;
  show();
}

// ---- a small picture of it all, with what is seen
const map = byId("map"), window_ = byId("window");
function drawMap() {
  const ratio = Math.min(110 / whole[2], Math.min(260, svg.clientHeight * 0.46) / whole[3]);
  map.hidden = false;
  map.style.width = `${Math.max(26, whole[2] * ratio)}px`;
  map.style.height = `${whole[3] * ratio}px`;
  const dots = map.querySelector("canvas");
  const sharp = window.devicePixelRatio || 1;
  dots.width = map.clientWidth * sharp;
  dots.height = map.clientHeight * sharp;
  const paint = dots.getContext("2d");
  paint.scale(sharp, sharp);
  for (const [node, at] of boxOf) {
    paint.fillStyle = getComputedStyle(node.querySelector("rect")).stroke;
    paint.fillRect((at.x - whole[0]) * ratio, (at.y - whole[1]) * ratio, Math.max(1.5, at.width * ratio),
      Math.max(1, at.height * ratio));
  }
  map.dataset.ratio = ratio;
  drawWindow();
}
function drawWindow() {
  const ratio = Number(map.dataset.ratio || 0);
  if (!ratio) return;
  const width = svg.clientWidth * scale(), height = svg.clientHeight * scale();
  const x = box[0] - (width - box[2]) / 2, y = box[1] - (height - box[3]) / 2;
  const place = {left: (x - whole[0]) * ratio, top: (y - whole[1]) * ratio, width: width * ratio, height: height * ratio};
  for (const [name, value] of Object.entries(place)) window_.style[name] = `${value}px`;
  map.hidden = width >= whole[2] && height >= whole[3];
}
const mapTo = event => {
  const at = map.getBoundingClientRect(), ratio = Number(map.dataset.ratio);
  box[0] = whole[0] + (event.clientX - at.left) / ratio - box[2] / 2;
  box[1] = whole[1] + (event.clientY - at.top) / ratio - box[3] / 2;
  show();
};
map.addEventListener("pointerdown", event => {
  map.setPointerCapture(event.pointerId);
  mapTo(event);
});
map.addEventListener("pointermove", event => event.buttons && mapTo(event));

// ---- wheel, mouse and fingers
svg.addEventListener("wheel", event => {
  event.preventDefault();
  if (!event.ctrlKey && event.shiftKey) return pan(event.deltaY * scale(), 0);
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, at.x, at.y);
}, {passive: false});
const fingers = new Map();
let moved = 0;
svg.addEventListener("pointerdown", event => {
  fingers.set(event.pointerId, event);
  moved = 0;
});
svg.addEventListener("pointermove", event => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  if (fingers.size === 2) {
    const other = [...fingers.values()].find(f => f.pointerId !== event.pointerId);
    const distance = f => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY) || 1;
    zoom(distance(before) / distance(event));
  } else {
    const s = scale();
    moved += Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY);
    pan((before.clientX - event.clientX) * s, (before.clientY - event.clientY) * s);
  }
  fingers.set(event.pointerId, event);
});
for (const name of ["pointerup", "pointercancel", "pointerleave"])
  svg.addEventListener(name, event => fingers.delete(event.pointerId));

// ---- one node
const facts = byId("facts");
let chosen = null;
function choose(node, look = false) {
  chosen = node;
  svg.classList.toggle("choosing", node !== null);
  const near = new Set(node ? [node, ...reads.get(node), ...readBy.get(node)] : []);
  for (const n of nodes) {
    n.classList.toggle("chosen", n === node);
    n.classList.toggle("near", near.has(n));
  }
  for (const edge of edges)
    edge.classList.toggle("near", node !== null && [edge.dataset.from, edge.dataset.to].includes(node.dataset.n));
  for (const button of document.querySelectorAll("#outline button[aria-current]")) button.removeAttribute("aria-current");
  facts.hidden = !node;
  if (!node) return;
  const close = make("button", "×", {ariaLabel: "close", onclick: () => choose(null)});
  const list = document.createElement("dl");
  for (const [name, value] of Object.entries(factsOf(node))) list.append(make("dt", name), make("dd", value));
  const head = make("h2", node.dataset.name && node.dataset.name !== titleOf(node)
    ? `${titleOf(node)} · ${node.dataset.name}` : titleOf(node), {className: node.getAttribute("class").replace("node ", "")});
  facts.replaceChildren(close, head, list);
  for (const [words, others] of [["reads", reads.get(node)], ["read by", readBy.get(node)]]) {
    if (!others.length) continue;
    const row = make("p", `${words} `);
    for (const other of others.slice(0, 40)) row.append(make("button", nameOf(other), {onclick: () => choose(other, true)}));
    if (others.length > 40) row.append(`and ${others.length - 40} more`);
    facts.append(row);
  }
  facts.scrollTop = 0;
  entryOf.get(node)?.setAttribute("aria-current", "true");
  if (look) center(node);
}
svg.addEventListener("click", event => {
  if (moved < 5) choose(event.target.closest(".node"));
});

// ---- the outline: by the scopes in the nodes' names, else by what they do
const outline = byId("outline"), entryOf = new Map();
const scoped = nodes.filter(n => /[^/]\//.test(nameOf(n))).length > nodes.length / 4;
const narrow = matchMedia("(max-width: 700px)");
function fill(parent, entries, depth) {
  const groups = new Map();
  for (const [path, node] of entries) {
    const [key, rest] = path.length > 1 ? [path[0], path.slice(1)] : ["", path];
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([rest, node]);
  }
  for (const [key, found] of groups) {
    if (key && groups.size === 1 && depth === 0) return fill(parent, found, depth);
    if (!key) {
      for (const [path, node] of found) {
        const entry = make("button", path[0], {onclick: () => {
          if (narrow.matches) toggle.click();
          choose(node, true);
        }});
        if (scoped && titleOf(node) !== path[0]) entry.append(make("small", titleOf(node)));
        entryOf.set(node, entry);
        parent.append(entry);
      }
      continue;
    }
    const group = document.createElement("details");
    const head = make("summary", key);
    head.append(make("small", found.length));
    group.append(head);
    fill(group, found, depth + 1);
    parent.append(group);
  }
}
function makeOutline() {
  fill(outline, nodes.map(n => {
    const name = nameOf(n);
    const path = scoped ? name.split("/").filter(p => p) : [n.classList.contains("input") ? "inputs" : titleOf(n), name];
    return [path.length ? path : [name], n];
  }), 0);
}
const toggle = byId("toggle");
toggle.onclick = () => {
  outline.hidden = !outline.hidden;
  toggle.setAttribute("aria-expanded", String(!outline.hidden));
  start();
  drawMap();
};

// ---- search
let hits = [], at = -1;
const search = byId("search");
const said = n => `${n.textContent} ${n.dataset.facts}`.toLowerCase();
function step(by) {
  if (!hits.length) return;
  at = (at + by + hits.length) % hits.length;
  byId("found").textContent = `${at + 1} of ${hits.length}`;
  center(hits[at]);
}
search.addEventListener("input", () => {
  const word = search.value.trim().toLowerCase();
  hits = word ? nodes.filter(n => n.textContent.toLowerCase().includes(word)) : [];
  if (word && !hits.length) hits = nodes.filter(n => said(n).includes(word));
  for (const node of nodes) node.classList.toggle("found", hits.includes(node));
  byId("found").textContent = word ? "none" : "";
  at = -1;
  step(1);
});
search.addEventListener("keydown", event => {
  if (event.key === "Enter") {
    step(event.shiftKey ? -1 : 1);
    if (hits.length) choose(hits[at]);
  }
  if (event.key === "Escape") search.blur();
  event.stopPropagation();
});

// ---- keys
function neighbour(key) {
  if (key === "ArrowUp") return reads.get(chosen)[0];
  if (key === "ArrowDown") return readBy.get(chosen)[0];
  const here = boxOf.get(chosen), right = key === "ArrowRight";
  const row = nodes.filter(n => boxOf.get(n).y === here.y && (right ? boxOf.get(n).x > here.x : boxOf.get(n).x < here.x));
  return row.sort((a, b) => (boxOf.get(a).x - boxOf.get(b).x) * (right ? 1 : -1))[0];
}
const KEYS = {
  "+": () => zoom(1 / 1.3), "=": () => zoom(1 / 1.3), "-": () => zoom(1.3), "0": fit, "1": start,
  "/": () => search.focus(), "n": () => step(1), "N": () => step(-1), "o": () => toggle.click(),
  "Escape": () => choose(null),
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const arrow = {ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0]}[event.key];
  if (arrow) {
    if (event.target.closest?.("#outline, #facts")) return;
    if (chosen) choose(neighbour(event.key) ?? chosen, true);
    else pan(arrow[0] * box[2] / 8, arrow[1] * box[3] / 8);
  } else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});
byId("in").onclick = () => zoom(1 / 1.3);
byId("out").onclick = () => zoom(1.3);
byId("fit").onclick = fit;
window.addEventListener("resize", () => {
  start();
  drawMap();
});
makeOutline();
start();
drawMap();

"use strict";
const svg = document.querySelector("svg.graph");
const whole = svg.getAttribute("viewBox").split(" ").map(Number);
let box = [...whole];
const show = () => svg.setAttribute("viewBox", box.join(" "));
const scale = () => Math.max(box[2] / svg.clientWidth, box[3] / svg.clientHeight);
function zoom(factor, x = box[0] + box[2] / 2, y = box[1] + box[3] / 2) {
  box = [x + (box[0] - x) * factor, y + (box[1] - y) * factor, box[2] * factor, box[3] * factor];
  show();
}
function fit() {
  // From the top, at a size that can be read: a deep graph is scrolled, not shrunk to a thread.
  const width = Math.max(svg.clientWidth, Math.min(whole[2], svg.clientWidth * 1.6));
  const height = width * svg.clientHeight / svg.clientWidth;
  const fitting = whole[2] <= width && whole[3] <= height;
  box = fitting ? [...whole] : [whole[0] + (whole[2] - width) / 2, whole[1], width, height];
  show();
}
svg.addEventListener("wheel", event => {
  event.preventDefault();
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, at.x, at.y);
}, {passive: false});
const fingers = new Map();
svg.addEventListener("pointerdown", event => fingers.set(event.pointerId, event));
svg.addEventListener("pointermove", event => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  if (fingers.size === 2) {
    const other = [...fingers.values()].find(f => f.pointerId !== event.pointerId);
    const distance = f => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY) || 1;
    zoom(distance(before) / distance(event));
  } else {
    const s = scale();
    box[0] -= (event.clientX - before.clientX) * s;
    box[1] -= (event.clientY - before.clientY) * s;
    show();
  }
  fingers.set(event.pointerId, event);
});
for (const name of ["pointerup", "pointercancel", "pointerleave"])
  svg.addEventListener(name, event => fingers.delete(event.pointerId));
const facts = document.getElementById("facts");
svg.addEventListener("click", event => {
  const node = event.target.closest(".node");
  facts.hidden = !node;
  if (!node) return;
  const list = document.createElement("dl");
  for (const [name, value] of Object.entries(JSON.parse(node.dataset.facts))) {
    list.append(Object.assign(document.createElement("dt"), {textContent: name}));
    list.append(Object.assign(document.createElement("dd"), {textContent: value}));
  }
  facts.replaceChildren(list);
});
const nodes = [...svg.querySelectorAll(".node")];
let hits = [], at = -1;
function center(node) {
  const {x, y, width, height} = node.getBBox();
  box[0] = x + width / 2 - box[2] / 2;
  box[1] = y + height / 2 - box[3] / 2;
  show();
}
const search = document.getElementById("search");
search.addEventListener("input", () => {
  const word = search.value.trim().toLowerCase();
  hits = word ? nodes.filter(n => n.textContent.toLowerCase().includes(word)) : [];
  for (const node of nodes) node.classList.toggle("found", hits.includes(node));
  document.getElementById("found").textContent = word ? `${hits.length} found` : "";
  at = -1;
  if (hits.length) center(hits[at = 0]);
});
search.addEventListener("keydown", event => {
  if (event.key === "Enter" && hits.length) center(hits[at = (at + 1) % hits.length]);
});
document.getElementById("in").onclick = () => zoom(1 / 1.3);
document.getElementById("out").onclick = () => zoom(1.3);
document.getElementById("fit").onclick = fit;
window.addEventListener("resize", fit);
fit();

"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const make = (tag, text, name) => Object.assign(document.createElement(tag), {textContent: text ?? "", className: name ?? ""});
const total = ops => Object.values(ops).reduce((a, b) => a + b, 0);
const milliseconds = s => s >= 1 ? `${s.toFixed(2)} s` : `${(s * 1000).toFixed(s < 0.01 ? 2 : 1)} ms`;
const signed = n => n > 0 ? `+${n}` : n < 0 ? `−${-n}` : "±0";
const steps = data.steps;
steps.forEach((step, i) => {  // what a pass left alone is what stood before it
  const before = steps[i - 1];
  step.text = step.lines ?? before.text;
  step.who = step.lines ? step.origins : before.who;
  step.before = before;
  step.delta = before ? total(step.ops) - total(before.ops) : 0;
});
const TABS = {changes: showChanges, ir: showText, ops: showOps, counters: showCounters};
const NAMES = {changes: "Changes", ir: "IR", ops: "Ops", counters: "Counters"};
const CONTEXT = 3;
let at = 0, tab = "changes";

const longest = Math.max(...steps.map(s => s.seconds), 1e-9);
steps.forEach((step, i) => {
  const button = make("button", "", step.error ? "failed" : step.changed ? "" : "same");
  button.append(make("span", i ? `${i}. ${step.name}` : step.name), make("span", i ? signed(step.delta) : ""));
  const rewrites = step.statistics.rewrites;
  const what = step.error ? "failed" : !step.changed ? "no change" : rewrites ? `${rewrites} rewrites` : "changed";
  button.append(make("small", i ? `${milliseconds(step.seconds)}, ${what}` : `${total(step.ops)} ops`));
  if (i) {
    const bar = make("span", "", "bar");
    bar.style.width = `${100 * step.seconds / longest}%`;
    button.append(bar);
  }
  button.onclick = () => select(i);
  document.querySelector("nav").append(button);
});
for (const name of Object.keys(TABS)) {
  const button = make("button", NAMES[name]);
  button.setAttribute("role", "tab");
  button.onclick = () => { tab = name; render(); };
  $("tabs").append(button);
}
const last = steps[steps.length - 1];
$("summary").textContent = `${steps.length - 1} passes, ${milliseconds(steps.reduce((a, s) => a + s.seconds, 0))}, `
  + `${total(steps[0].ops)} → ${total(last.ops)} ops`;

function line(pre, step, number, name, sign) {
  const row = make("div", sign + data.texts[step.text[number]], name);
  const who = data.origins[step.who[number]];
  if (who) {
    row.title = who;
    row.append(make("i", `⟵ ${who}`));
  }
  const word = $("search").value.trim();
  if (word && row.textContent.includes(word)) row.classList.add("hit");
  pre.append(row);
}
function showText(step) {
  const pre = make("pre");
  for (let i = 0; i < step.text.length; i++) line(pre, step, i, "", " ");
  return pre;
}
function showChanges(step) {
  if (!step.before) return showText(step);
  if (!step.changed) return make("p", "This pass changed nothing.");
  const pre = make("pre");
  for (const [kind, i, j, k, m] of step.changes) {
    if (kind === "equal") {
      const head = k ? CONTEXT : 0, tail = m < step.text.length ? CONTEXT : 0;
      const hidden = m - k - head - tail;
      for (let n = k; n < (hidden > 1 ? k + head : m); n++) line(pre, step, n, "", "  ");
      if (hidden <= 1) continue;
      const skip = make("div", `⋯ ${hidden} lines`, "skip");
      skip.onclick = () => {
        const rest = make("pre");
        for (let n = k + head; n < m - tail; n++) line(rest, step, n, "", "  ");
        skip.replaceWith(...rest.childNodes);
      };
      pre.append(skip);
      for (let n = m - tail; n < m; n++) line(pre, step, n, "", "  ");
      continue;
    }
    for (let n = i; n < j; n++) line(pre, step.before, n, "del", "− ");
    for (let n = k; n < m; n++) line(pre, step, n, "add", "+ ");
  }
  return pre;
}
function table(head, rows) {
  const out = make("table");
  for (const [i, cells] of [head, ...rows].entries()) {
    const row = out.insertRow();
    for (const cell of cells) {
      const place = make(i ? "td" : "th", String(cell));
      if (/^\+\d/.test(cell)) place.className = "more";
      if (/^−\d/.test(cell)) place.className = "less";
      row.append(place);
    }
  }
  return out;
}
function showOps(step) {
  const before = step.before?.ops ?? step.ops, first = steps[0].ops;
  const names = [...new Set([...Object.keys(step.ops), ...Object.keys(before)])];
  const change = (n, old) => n === old ? "" : signed(n - old);
  const rows = names.map(n => [n, step.ops[n] ?? 0, change(step.ops[n] ?? 0, before[n] ?? 0),
    change(step.ops[n] ?? 0, first[n] ?? 0)]);
  rows.push(["all", total(step.ops), change(total(step.ops), total(before)), change(total(step.ops), total(first))]);
  return table(["op", "now", "this step", "since input"], rows);
}
function showCounters(step) {
  const rows = Object.entries(step.statistics);
  return rows.length ? table(["counter", "value"], rows) : make("p", "This step counted nothing.");
}
function render() {
  const step = steps[at];
  [...document.querySelectorAll("nav button")].forEach((b, i) => b.setAttribute("aria-current", i === at));
  [...$("tabs").children].forEach((b, i) => b.setAttribute("aria-selected", Object.keys(TABS)[i] === tab));
  const facts = $("facts");
  facts.replaceChildren();
  if (at) {
    facts.append(make("b", step.spec), ` ${milliseconds(step.seconds)}`);
    if (step.promise) facts.append(`, ${step.promise}`);
  }
  for (const remark of step.remarks) facts.append(make("div", remark));
  if (step.error) facts.append(make("div", step.error, "error"));
  $("content").replaceChildren(TABS[tab](step));
  $("previous").disabled = at === 0;
  $("next").disabled = at === steps.length - 1;
}
function select(number) {
  at = Math.max(0, Math.min(steps.length - 1, number));
  render();
  $("content").scrollTop = 0;
  document.querySelectorAll("nav button")[at].scrollIntoView({block: "nearest", inline: "nearest"});
}
$("previous").onclick = () => select(at - 1);
$("next").onclick = () => select(at + 1);
$("search").oninput = render;
const origins = $("origins");
origins.checked = window.innerWidth > 900;
origins.onchange = () => document.body.classList.toggle("no-origins", !origins.checked);
origins.onchange();
document.addEventListener("keydown", event => {
  if (event.target.tagName === "INPUT") return;
  const step = {ArrowDown: 1, ArrowRight: 1, j: 1, ArrowUp: -1, ArrowLeft: -1, k: -1}[event.key];
  if (step) { select(at + step); event.preventDefault(); }
});
select(Math.max(0, steps.findIndex((s, i) => i && s.changed)));

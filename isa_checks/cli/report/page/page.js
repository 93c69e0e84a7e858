// Draws the report from the two JSON documents in the page. No libraries; every text goes in as text, never as markup.
"use strict";
const CLASS_COLOURS = [
  ["vector", ["valu", "trans", "packed"], "--valu"], ["matrix", ["mfma", "dot"], "--matrix"], ["scalar", ["salu", "smem", "branch"], "--scalar"],
  ["loads", ["vmem_load"], "--load"], ["stores and atomics", ["vmem_store", "vmem_atomic"], "--store"], ["LDS", ["lds"], "--lds"],
  ["waits and barriers", ["wait", "barrier"], "--wait"], ["no-ops and other", ["nop", "other"], "--other"]];
const SEVERITIES = ["error", "warning", "info"];
const LIMIT_NAMES = {wave_slots: "the hardware's wave slots", vgprs: "vector registers", sgprs: "scalar registers", lds: "LDS"};
const MOST_ROWS = 20000;
let kernels = [], chosen = -1, sort = {column: 0, down: false}, query = "", severity = "";

// ---- building elements ----------------------------------------------------------------------------------------------------
function el(tag, attributes, ...children) {
  const node = tag === "svg" || el.svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {}))
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  node.append(...children.flat(Infinity).filter(child => child !== undefined && child !== null && child !== false));
  return node;
}
function svg(tag, attributes, ...children) {
  el.svg = true;
  const node = el(tag, attributes, ...children);
  el.svg = false;
  return node;
}
const hex = number => "0x" + number.toString(16);
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
function bytes(count) {
  if (count >= 1024 && count % 1024 === 0) return (count / 1024).toLocaleString("en") + " KiB";
  return count.toLocaleString("en") + " B";
}
const about = count => count >= 1024 ? (count / 1024).toLocaleString("en", {maximumFractionDigits: 1}) + " KiB" : bytes(count);
const sentence = text => (/^[a-z]+[ ,]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text) + (text.endsWith(".") ? "" : ".");
// The name without its parameters, which C++ writes out at length.
function short_name(name) {
  let depth = 0;
  for (let i = 0; i < name.length; ++i) {
    if (name[i] === "<") ++depth;
    else if (name[i] === ">") --depth;
    else if (name[i] === "(" && depth === 0 && i > 0 && !name.startsWith("(anonymous", i)) return name.slice(0, i).replace(/^void /, "");
  }
  return name;
}
const count_of = (kernel, severity) => kernel.findings.filter(f => f.severity === severity).length;

// ---- the table of kernels --------------------------------------------------------------------------------------------------
const COLUMNS = [
  {title: "Findings", value: k => SEVERITIES.reduce((sum, s) => sum * 1000 + count_of(k, s), 0), down: true, cell: k => finding_dots(k)},
  {title: "Kernel", value: k => short_name(k.name), cls: "name", cell: k => short_name(k.name)},
  {title: "Arch", value: k => k.arch, cell: k => k.arch},
  {title: "VGPRs", value: k => k.resources.vgprs, num: true},
  {title: "SGPRs", value: k => k.resources.sgprs, num: true},
  {title: "LDS", value: k => k.resources.lds_bytes, num: true, cell: k => k.resources.lds_bytes ? bytes(k.resources.lds_bytes) : "–"},
  {title: "Scratch", value: k => k.resources.scratch_bytes, num: true, cell: k => k.resources.scratch_bytes ? bytes(k.resources.scratch_bytes) : "–"},
  {title: "Waves per SIMD", value: k => k.occupancy.waves, cell: k => wave_boxes(k)},
  {title: "Instructions", value: k => k.instructions, num: true, cell: k => k.instructions.toLocaleString("en")}];

function finding_dots(k) {
  if (!k.findings.length) return el("span", {class: "dot good"}, "clean");
  return el("span", {class: "dots"}, SEVERITIES.map(s => count_of(k, s) > 0 && el("span", {class: "dot " + s, title: plural(count_of(k, s), s)}, String(count_of(k, s)))));
}
function wave_boxes(k) {
  const boxes = [];
  for (let i = 0; i < k.occupancy.max; ++i) boxes.push(el("i", {class: i < Math.floor(k.occupancy.waves) ? "on" : ""}));
  return [Number(k.occupancy.waves.toFixed(2)) + "", el("span", {class: "waves"}, boxes)];
}
function visible_kernels() {
  const column = COLUMNS[sort.column], words = query.toLowerCase().split(/\s+/).filter(w => w);
  const text = k => (k.name + " " + k.kernel + " " + k.object + " " + k.arch + " " + k.findings.map(f => f.rule).join(" ")).toLowerCase();
  return kernels.map((k, i) => i).filter(i => (!severity || count_of(kernels[i], severity) > 0) && words.every(w => text(kernels[i]).includes(w))).sort((a, b) => {
    const x = column.value(kernels[a]), y = column.value(kernels[b]);
    return (x < y ? -1 : x > y ? 1 : a - b) * (sort.down && x !== y ? -1 : 1);
  });
}
function draw_table() {
  const sort_by = index => () => {
    sort = sort.column === index ? {column: index, down: !sort.down} : {column: index, down: !!COLUMNS[index].down || !!COLUMNS[index].num};
    draw_table();
  };
  const heads = COLUMNS.map((c, i) => el("th", {class: (c.num ? "num " : "") + (sort.column === i ? "sorted" : ""), tabindex: 0, "aria-sort": sort.column !== i ? "none" : sort.down ? "descending" : "ascending",
    onclick: sort_by(i), onkeydown: e => e.key === "Enter" && sort_by(i)()}, c.title, sort.column === i && el("span", {class: "arrow"}, sort.down ? "↓" : "↑")));
  const shown = visible_kernels();
  const rows = shown.slice(0, 2000).map(i => el("tr", {class: i === chosen ? "chosen" : "", tabindex: 0, onclick: () => choose(i, true), onkeydown: e => e.key === "Enter" && choose(i, true)},
    COLUMNS.map(c => el("td", {class: (c.num ? "num " : "") + (c.cls || ""), title: c.cls ? kernels[i].name : undefined}, c.cell ? c.cell(kernels[i]) : String(c.value(kernels[i]))))));
  document.getElementById("table").replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)));
  document.getElementById("shown").textContent = shown.length === kernels.length ? plural(kernels.length, "kernel") : `${shown.length} of ${plural(kernels.length, "kernel")}`;
}

// How often each rule fired, severest first; a click shows its kernels.
function overview_card() {
  const rules = new Map();
  kernels.forEach((k, i) => k.findings.forEach(f => {
    const key = f.rule + " " + f.severity, entry = rules.get(key) || {rule: f.rule, severity: f.severity, findings: 0, kernels: new Set()};
    entry.findings += 1;
    entry.kernels.add(i);
    rules.set(key, entry);
  }));
  if (!rules.size || kernels.length < 2) return false;
  const list = [...rules.values()].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || b.kernels.size - a.kernels.size);
  const pick = entry => () => { query = entry.rule.toLowerCase(); document.getElementById("filter").value = query; set_severity(entry.severity); };
  return el("details", {class: "card", open: list.length <= 12, style: "margin-bottom:16px"}, el("summary", {}, "By rule"), el("table", {}, el("thead", {}, el("tr", {}, ["Rule", "Severity", "Findings", "Kernels"].map((t, i) => el("th", {class: i > 1 ? "num" : ""}, t)))),
    el("tbody", {}, list.map(entry => el("tr", {tabindex: 0, onclick: pick(entry), onkeydown: e => e.key === "Enter" && pick(entry)()}, el("td", {}, entry.rule), el("td", {class: "dot " + entry.severity}, entry.severity),
      el("td", {class: "num"}, entry.findings.toLocaleString("en")), el("td", {class: "num"}, entry.kernels.size.toLocaleString("en")))))));
}
function set_severity(value) {
  severity = value;
  document.querySelectorAll("#severities button").forEach(b => b.classList.toggle("chosen", b.dataset.severity === value));
  draw_table();
  if (chosen >= 0 && kernels[chosen].code) choose(chosen, false);
}
function severity_buttons() {
  return el("span", {class: "tabs", id: "severities", style: "margin:0"}, ["", ...SEVERITIES].map(s => el("button", {"data-severity": s, class: s === "" ? "chosen" : "", onclick: () => set_severity(s)}, s || "all")));
}

// ---- registers and flow ------------------------------------------------------------------------------------------------------
function live_card(k) {
  const width = 1160, height = 120, counts = k.code.map(row => row[9]), most = Math.max(...counts, 1), n = counts.length;
  const step = Math.max(1, Math.ceil(n / width)), points = [];
  for (let i = 0; i < n; i += step) points.push(`${(i / n * width).toFixed(1)},${(height - Math.max(...counts.slice(i, i + step)) / most * (height - 14)).toFixed(1)}`);
  const x = i => i / n * width;
  const at = e => jump(Math.min(n - 1, Math.floor((e.clientX - e.currentTarget.getBoundingClientRect().left) / e.currentTarget.getBoundingClientRect().width * n)));
  const mark = k.live.peak !== null && svg("line", {x1: x(k.live.peak), x2: x(k.live.peak), y1: 0, y2: height, stroke: "var(--error)", "stroke-dasharray": "3 3"});
  return el("section", {class: "card", style: "margin-bottom:16px"}, el("h2", {}, "Live vector registers"), el("p", {}, sentence(k.live.text)),
    el("div", {class: "timeline"}, svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "live vector registers along the code", style: "cursor:pointer", onclick: at},
      svg("polygon", {points: `0,${height} ${points.join(" ")} ${width},${height}`, fill: "var(--valu)", opacity: .5}), mark)),
    el("dl", {class: "facts"}, k.live.values.slice(0, 8).map(v => [el("dt", {}, `${v.registers} of ${v.writer || "the start"}`), el("dd", {class: "mono"}, v.names.length > 160 ? v.names.slice(0, 160) + " ..." : v.names)])),
    el("p", {class: "caption"}, "How many registers hold a value that is read later, from the first instruction to the last; a click shows the code."));
}
// Blocks in the order of their addresses; forward edges are drawn on the right, backward ones on the left.
function flow_card(k) {
  const most = 400, blocks = k.flow.slice(0, most), left = 300, row = 20, place = new Map(blocks.map((b, i) => [i, i * row + 14]));
  if (blocks.length < 2) return false;
  const parts = [];
  blocks.forEach(([begin, count, depth, to, reachable], i) => {
    const y = place.get(i);
    for (const target of to) {
      if (!place.has(target) || target === i + 1) continue;
      const down = target > i, reach = Math.min(260, 14 + Math.abs(target - i) * 5), from = down ? left + 250 : left, x = down ? from + reach : from - reach;
      parts.push(svg("path", {d: `M${from} ${y} C ${x} ${y}, ${x} ${place.get(target)}, ${from} ${place.get(target)}`, fill: "none", stroke: down ? "var(--faint)" : "var(--accent)", "stroke-width": 1.2}, svg("title", {}, `block_${i} to block_${target}`)));
    }
    parts.push(svg("rect", {x: left, y: y - 8, width: 250, height: 16, rx: 3, fill: "var(--accent)", opacity: reachable ? .08 + .14 * Math.min(depth, 4) : 0, stroke: "var(--line)", style: "cursor:pointer", onclick: () => jump(begin)}),
      svg("text", {x: left + 8, y: y + 4}, `block_${i}: ${plural(count, "instruction")}${depth ? ", depth " + depth : ""}${reachable ? "" : ", unreachable"}`));
  });
  const more = k.flow.length > most && el("p", {class: "caption"}, `${k.flow.length - most} more blocks are not drawn.`);
  return el("details", {class: "card", style: "margin-bottom:16px"}, el("summary", {}, `Flow graph: ${plural(k.flow.length, "block")}`), el("div", {class: "timeline", style: "max-height:70vh;overflow:auto"},
    svg("svg", {viewBox: `0 0 860 ${blocks.length * row + 8}`, style: "max-width:860px", role: "img", "aria-label": "flow graph"}, parts)), more);
}

// ---- occupancy and mixes ---------------------------------------------------------------------------------------------------
function occupancy_card(k) {
  const o = k.occupancy, r = k.resources;
  const limits = [["vgprs", "Vector registers", o.vgpr_waves, `${r.vgprs}, ${o.allocated_vgprs} allocated of ${o.vgprs_total}`],
    ["sgprs", "Scalar registers", o.sgpr_waves, String(r.sgprs)],
    ["lds", "LDS", o.lds_waves, r.lds_bytes ? `${bytes(r.lds_bytes)}, ${bytes(o.allocated_lds)} allocated of ${bytes(o.lds_total)}` : "none"],
    ["wave_slots", "Wave slots", o.max, String(o.max)]];
  const track = waves => el("span", {class: "track"}, Array.from({length: o.max}, (_, i) => {
    const share = Math.max(0, Math.min(1, waves - i));
    return el("i", {}, share > 0 && el("b", {style: `width:${share * 100}%`}));
  }));
  const rows = limits.map(([id, label, waves, text]) => el("div", {class: "limit" + (o.limit === id ? " binding" : "")}, el("span", {class: "label"}, label), track(waves), el("span", {class: "soft"}, text)));
  const steps = o.step.trim().split("\n").slice(1).map(line => line.trim() + ".").join(" ").replace(/VGPRs/g, "vector registers").replace(/SGPRs/g, "scalar registers");
  return el("section", {class: "card"}, el("h2", {}, "Occupancy"),
    el("p", {}, el("span", {class: "big"}, String(Number(o.waves.toFixed(2)))), el("span", {class: "soft"}, ` of ${o.max} waves per SIMD, limited by ${LIMIT_NAMES[o.limit]}`)),
    el("p", {class: "soft"}, `${plural(o.workgroups, "workgroup")} of ${r.workgroup_size} lanes per CU${r.workgroup_size_known ? "" : " (the size is not stated; the most is assumed)"}.`),
    el("div", {class: "limits"}, rows), el("p", {class: "caption"}, steps));
}
function mix_card(k) {
  const groups = CLASS_COLOURS.map(([name, classes, colour]) => ({name, colour, count: classes.reduce((sum, c) => sum + (k.mix.classes[c] || 0), 0)})).filter(g => g.count);
  const r = k.resources, memory = {};
  for (const m of k.mix.memory) {
    const key = `${m.space} ${m.direction}s${m.to_lds ? " to LDS" : ""}`;
    (memory[key] = memory[key] || []).push(m);
  }
  const spills = r.vgpr_spills + r.sgpr_spills;
  const facts = [["Registers", r.agprs ? `${r.arch_vgprs} architectural + ${r.agprs} accumulation, ${r.sgprs} scalar` : `${r.vgprs} vector, ${r.sgprs} scalar`],
    ["Scratch", `${bytes(r.scratch_bytes)} a lane` + (spills ? `, ${r.vgpr_spills} vector and ${r.sgpr_spills} scalar registers spilled` : "")],
    ["Code", `${plural(k.instructions, "instruction")}, ${bytes(k.code_bytes)}`],
    ...Object.entries(memory).map(([name, list]) => [name.startsWith("lds") ? "LDS" + name.slice(3) : name[0].toUpperCase() + name.slice(1), list.sort((a, b) => b.bytes - a.bytes).map(m => `${m.count} × ${m.bytes} B`).join(", ")])];
  return el("section", {class: "card"}, el("h2", {}, "Instructions and memory"),
    el("div", {class: "mix"}, groups.map(g => el("i", {style: `flex:${g.count} 0 0;background:var(${g.colour})`, title: `${g.name}: ${g.count}`}))),
    el("div", {class: "legend"}, groups.map(g => el("span", {style: `--c:var(${g.colour})`}, g.name + " ", el("b", {}, g.count.toLocaleString("en"))))),
    el("dl", {class: "facts"}, facts.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])));
}

// ---- findings ----------------------------------------------------------------------------------------------------------------
function finding_card(k) {
  if (!k.findings.length)
    return el("section", {class: "card", style: "margin-bottom:16px"}, el("h2", {}, "Findings"), el("p", {class: "dot good"}, "Nothing at or over the threshold" + (k.suppressed ? `; ${k.suppressed} suppressed` : "")));
  const rules = new Map(); // severest first; of a rule the reasons are said once
  for (const f of [...k.findings].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity))) if (!severity || f.severity === severity) rules.set(f.rule, [...(rules.get(f.rule) || []), f]);
  const place = f => [f.at !== null && [el("button", {class: "link mono", onclick: () => jump(f.at)}, hex(k.code[f.at] ? k.code[f.at][0] : 0)), " "], f.place && el("span", {title: f.place}, f.place.split("/").pop() + " "), f.loop];
  return el("section", {class: "card", style: "margin-bottom:16px"}, el("h2", {}, "Findings" + (k.suppressed ? ` (${k.suppressed} more suppressed)` : "")), [...rules.values()].map(list =>
    el("article", {class: "finding " + list[0].severity}, el("div", {class: "rule", title: list[0].severity}, list[0].rule),
      el("ul", {}, list.slice(0, 12).map(f => el("li", {}, el("span", {class: "message"}, f.message), el("span", {class: "detail"}, place(f)))), list.length > 12 && el("li", {class: "soft"}, `and ${list.length - 12} more, in the code below`)),
      el("p", {class: "detail"}, sentence(list[0].why) + " ", el("b", {}, "Try: "), sentence(list[0].advice)))));
}

// ---- timeline of a loop: loads, stores and LDS operations from their issue to the wait that retires them ---------------------
function loop_instructions(k, loop) {
  const list = [];
  for (const [begin, end] of loop.blocks) for (let i = begin; i < end && i < k.code.length; ++i) list.push(i);
  return list;
}
function kind_of(cls) {
  return {vmem_load: "load", vmem_store: "store", vmem_atomic: "store", lds: "lds", smem: "scalar"}[cls];
}
// Positions are instructions of the loop in order. A bar that wraps goes over the loop's end into its next trip.
function bars_of(k, loop) {
  const order = loop_instructions(k, loop), place = new Map(order.map((i, n) => [i, n]));
  const bars = [];
  for (const [n, i] of order.entries()) {
    const kind = kind_of(k.code[i][2]);
    if (!kind) continue;
    const waits = k.waits.filter(w => w.for.includes(i) && place.has(w.at)).map(w => ({at: place.get(w.at), wait: w}));
    const later = waits.filter(w => w.at > n).sort((a, b) => a.at - b.at)[0], wrapped = waits.filter(w => w.at <= n).sort((a, b) => a.at - b.at)[0];
    const end = later || wrapped;
    bars.push({i, begin: n, end: end ? end.at : order.length, wraps: !later && !!wrapped, open: !end, kind, wait: end && end.wait});
  }
  return {order, bars};
}
function timeline_card(k) {
  const loops = k.loops.filter(l => loop_instructions(k, l).some(i => kind_of(k.code[i][2])));
  if (!loops.length) return el("section", {class: "card", style: "margin-bottom:16px"}, el("h2", {}, "Hot loop"), el("p", {class: "soft"}, "No loop of this kernel touches memory."));
  const weight = l => (l.innermost ? 1e6 : 0) * l.depth + (l.loads > 0 ? 1e5 : 0) + loop_instructions(k, l).length;
  loops.sort((a, b) => weight(b) - weight(a));
  const picture = el("div"), tabs = el("div", {class: "tabs"});
  const show = index => {
    [...tabs.children].forEach((tab, n) => tab.classList.toggle("chosen", n === index));
    picture.replaceChildren(draw_timeline(k, loops[index]), timeline_caption(loops[index]), draw_pipes(loops[index]));
  };
  loops.slice(0, 12).forEach((l, n) => tabs.append(el("button", {onclick: () => show(n)}, l.name + (l.innermost ? "" : ", holds others"))));
  show(0);
  return el("section", {class: "card", style: "margin-bottom:16px"}, el("h2", {}, "Loads and waits of the hot loop"), loops.length > 1 && tabs, picture);
}
function timeline_caption(l) {
  const drains = l.drains ? `${plural(l.drains, "wait")} for everything (vmcnt 0)` : "no wait for everything";
  const flight = l.loads ? `A wave loads ${bytes(l.bytes_a_trip)} a trip in ${plural(l.loads, "instruction")}, keeps ${bytes(l.min_bytes)} to ${bytes(l.max_bytes)} in flight; ${drains}. ` : "";
  return el("p", {class: "caption"}, flight, "A bar begins where an operation is issued and ends at the wait that it is retired by; one that leaves on the right goes on in the next trip.");
}
// How long each pipe is busy with one repetition, for a wave on each SIMD of a CU; memory at its share of the bandwidth.
const PIPES = [["valu", "Vector", "--valu"], ["trans", "Transcendental", "--valu"], ["matrix", "Matrix", "--matrix"], ["salu", "Scalar", "--scalar"], ["lds", "LDS", "--lds"],
  ["vector_memory", "Vector memory issue", "--load"]];
function draw_pipes(l) {
  const list = PIPES.map(([id, name, colour]) => ({name, colour, clocks: l.issue.clocks[id]}));
  list.push({name: "Memory bandwidth", colour: "--store", clocks: l.issue.memory}, {name: "Wait states (s_nop)", colour: "--other", clocks: l.issue.nops});
  const shown = list.filter(p => p.clocks > 0).sort((a, b) => b.clocks - a.clocks), most = Math.max(...shown.map(p => p.clocks), 1);
  const format = number => number >= 100 ? Math.round(number).toLocaleString("en") : Number(number.toPrecision(2)).toLocaleString("en");
  const flight = l.cu && `All waves of a CU together keep ${bytes(l.cu.least)} to ${bytes(l.cu.most)} in flight; the chip's bandwidth needs about ${about(l.cu.needed)} (Little's law, with an assumed latency). `;
  const bound = shown.length > 0 && `${shown[0].name} bounds the loop` + (l.issue.intensity ? `, at ${format(l.issue.intensity)} operations a byte.` : ".");
  return el("div", {}, el("h2", {style: "margin-top:24px"}, "Clocks of one repetition, a wave on each SIMD (estimated)"),
    el("div", {class: "pipes"}, shown.map(p => [el("span", {class: "soft"}, p.name), el("span", {class: "pipe"}, el("i", {style: `width:${100 * p.clocks / most}%;background:var(${p.colour})`})), el("span", {class: "num"}, format(p.clocks))])),
    el("p", {class: "caption"}, flight, bound));
}
function draw_timeline(k, loop) {
  const {order, bars} = bars_of(k, loop);
  const max_bars = 160, shown = bars.slice(0, max_bars), left = 218, width = 1160, row = 15, top = 26, height = top + shown.length * row + 12;
  const x = n => left + n / order.length * (width - left - 12);
  const parts = [];
  const step = Math.max(1, Math.ceil(order.length / 12 / 5) * 5);
  for (let n = 0; n <= order.length; n += step)
    parts.push(svg("line", {x1: x(n), x2: x(n), y1: top - 6, y2: height - 8, stroke: "var(--line)"}), svg("text", {x: x(n), y: 12, class: "axis", "text-anchor": "middle"}, String(n)));
  for (const w of k.waits) {
    const n = order.indexOf(w.at);
    if (n >= 0 && w.for.length)
      parts.push(svg("line", {x1: x(n + .5), x2: x(n + .5), y1: top - 6, y2: height - 8, stroke: "var(--wait)", "stroke-width": w.value === 0 ? 1.6 : 1, "stroke-dasharray": w.value === 0 ? "none" : "3 3", opacity: .75}, svg("title", {}, hex(k.code[w.at][0]) + "  " + w.text)));
  }
  shown.forEach((bar, r) => {
    const y = top + r * row, text = k.code[bar.i][1].split(" ")[0];
    const title = () => svg("title", {}, `${hex(k.code[bar.i][0])}  ${k.code[bar.i][1]}\n${bar.wait ? bar.wait.text : "no wait in the loop retires it"}`);
    const piece = (from, to, open) => svg("rect", {x: x(from), y: y + 2, width: Math.max(3, x(to) - x(from)), height: row - 5, rx: 3, fill: `var(--${bar.kind})`, opacity: open ? .45 : .9, style: "cursor:pointer", onclick: () => jump(bar.i)}, title());
    parts.push(svg("text", {x: left - 12, y: y + 10.5, "text-anchor": "end"}, text));
    if (bar.wraps) parts.push(piece(bar.begin, order.length, false), piece(0, bar.end + .5, false));
    else parts.push(piece(bar.begin, bar.open ? order.length : bar.end + .5, bar.open));
  });
  const more = bars.length > max_bars && el("p", {class: "caption"}, `${bars.length - max_bars} more operations are not drawn.`);
  return el("div", {class: "timeline"}, svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "loads and waits of " + loop.name}, parts), more);
}

// ---- code --------------------------------------------------------------------------------------------------------------------
function code_card(k) {
  const waits = new Map(), findings = new Map();
  for (const w of k.waits) waits.set(w.at, [...(waits.get(w.at) || []), w]);
  for (const f of k.findings) if (f.at !== null) findings.set(f.at, [...(findings.get(f.at) || []), f]);
  const heads = new Map(k.loops.map(l => [l.blocks.length ? l.blocks[0][0] : -1, l]));
  const has_exp = k.code.some(row => row[7] !== ""); // hardly a kernel has anything that expcnt counts
  const rows = [el("div", {class: "row head"}, el("span", {}, "address"), el("span", {title: "vector memory operations outstanding before the instruction"}, "vm"), el("span", {title: "LDS and scalar memory operations outstanding"}, "lgkm"), has_exp && el("span", {title: "GDS operations that have yet to read their registers"}, "exp"), el("span", {}))];
  let source = "";
  k.code.slice(0, MOST_ROWS).forEach(([address, text, cls, depth, block, vm, lgkm, exp, line, live, target], i) => {
    const pad = "  ".repeat(depth);
    if (block >= 0) rows.push(el("div", {class: "row"}, el("span"), el("span"), el("span"), has_exp && el("span"), el("span", {class: "label"}, `${pad}block_${block}` + (heads.has(i) ? `   ${heads.get(i).name}, depth ${heads.get(i).depth}` : ""))));
    if (line && line !== source) rows.push(el("div", {class: "note", title: line}, pad + line.split("/").pop()));
    source = line;
    rows.push(el("div", {class: "row", id: "i" + i, title: `${live} vector registers are live`}, el("span", {}, address.toString(16)), el("span", {}, vm), el("span", {}, lgkm), has_exp && el("span", {}, exp), el("span", {class: "t " + cls}, pad + "  " + text, target !== undefined && el("button", {class: "link goto", onclick: () => jump(target)}, `→ block_${k.code[target] ? k.code[target][4] : "?"}`))));
    for (const w of waits.get(i) || []) rows.push(el("div", {class: "note"}, el("span", {class: "guide", style: `margin-left:${depth * 15}px`}, w.text)));
    for (const f of findings.get(i) || []) rows.push(el("div", {class: "note " + f.severity}, el("span", {class: "guide", style: `margin-left:${depth * 15}px;border-color:currentColor`}, `${f.rule}: ${f.message}`)));
  });
  if (k.instructions > k.code.length) rows.push(el("div", {class: "note"}, `${(k.instructions - k.code.length).toLocaleString("en")} more instructions are not shown.`));
  return el("section", {class: "card", style: "padding:0"}, el("h2", {style: "padding:20px 20px 0"}, "Code"), el("div", {class: "code" + (has_exp ? " exp" : ""), id: "code"}, rows));
}
function jump(index) {
  const row = document.getElementById("i" + index);
  if (!row) return;
  document.querySelectorAll(".row.target").forEach(old => old.classList.remove("target"));
  row.classList.add("target");
  row.scrollIntoView({block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
}

// ---- the page ----------------------------------------------------------------------------------------------------------------
function choose(index, scroll) {
  const k = kernels[index];
  if (k.page) return location.assign(k.page); // this is the index of a collection
  chosen = index;
  const place = document.getElementById("kernel");
  place.replaceChildren(el("div", {class: "heading"}, el("h3", {}, short_name(k.name)), short_name(k.name) !== k.name && el("p", {class: "soft signature", title: k.kernel}, k.name), el("p", {class: "soft"}, `${k.target}, ${k.object}` + (k.approximate ? "; calls or irreducible flow: waits after them are guesses" : ""))),
    el("div", {class: "grid"}, occupancy_card(k), mix_card(k)), finding_card(k), timeline_card(k), live_card(k), flow_card(k), code_card(k));
  if (location.hash !== "#" + index) history.replaceState(null, "", "#" + index);
  draw_table();
  if (scroll) place.scrollIntoView({block: "start", behavior: "smooth"});
}
function start() {
  const head = {summary: "", errors: 0, warnings: 0, infos: 0, suppressed: 0, skipped: {}, failures: [], ...JSON.parse(document.getElementById("head").textContent)};
  kernels = JSON.parse(document.getElementById("kernels").textContent);
  const pills = [["error", head.errors], ["warning", head.warnings], ["info", head.infos]].filter(([, n]) => n).map(([s, n]) => el("span", {class: "pill " + s}, s === "info" ? `${n} info` : plural(n, s)));
  if (head.index) return start_kernel(head);
  if (!pills.length) pills.push(el("span", {class: "pill good"}, "clean"));
  const skipped = Object.entries(head.skipped).map(([arch, n]) => `${n} ${arch}`).join(", ");
  document.getElementById("app").append(el("main", {}, el("div", {class: "top"}, el("h1", {}, "isa_lint"), el("span", {class: "soft"}, head.summary)),
    el("div", {class: "counts"}, pills, head.suppressed > 0 && el("span", {class: "pill"}, `${head.suppressed} suppressed`)),
    head.failures.map(text => el("p", {class: "notice"}, text)),
    head.left_out > 0 && el("p", {class: "notice"}, `${plural(head.left_out, "kernel")} more have pages, but no line here: too many for one index.`),
    overview_card(),
    el("div", {class: "bar"}, severity_buttons(), el("input", {type: "search", id: "filter", placeholder: "Filter by name, architecture or rule", "aria-label": "filter", oninput: e => { query = e.target.value; draw_table(); }}), el("span", {class: "soft", id: "shown"})),
    el("div", {class: "scroll", id: "table"}), el("div", {class: "kernel", id: "kernel"}),
    el("footer", {}, "Made by isa_lint from the machine code alone; nothing was measured.", skipped && ` Skipped, of other architectures: ${skipped}.`)));
  sort = {column: 0, down: true};
  const wanted = Number(location.hash.slice(1));
  if (kernels.length && !kernels[0].page) choose(location.hash && wanted < kernels.length ? wanted : visible_kernels()[0], false);
  else draw_table();
}
// One kernel of a collection, which the index leads to.
function start_kernel(head) {
  document.getElementById("app").append(el("main", {}, el("div", {class: "top"}, el("h1", {}, "isa_lint"), el("a", {class: "link", href: head.index}, "all kernels")),
    el("div", {class: "bar"}, severity_buttons(), el("span", {class: "soft", id: "shown"})), el("div", {id: "table", hidden: true}), el("div", {class: "kernel", id: "kernel"}),
    el("footer", {}, "Made by isa_lint from the machine code alone; nothing was measured.")));
  choose(0, false);
}

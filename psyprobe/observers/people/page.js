// What all steps share, the result, and the way through.
const TEXT = JSON.parse(document.getElementById("text").textContent);
const at = (id) => document.getElementById(id);
const fill = (text, values) => Object.entries(values).reduce((all, [name, value]) => all.replace(name, value), text);
// Of this page as it was loaded: a tab that is a copy of another has a name of its own.
const PAGE = crypto.randomUUID();
const STEPS = ["consent", "measure", "distance", "blind", "luminance", "gamma", "practice", "ready", "pause", "doubt", "stopped", "result", "stage", "how", "looking", "reading", "thanks"];
let period = 0, facts = null;

function show(step) {
  for (const each of STEPS) at(each).hidden = each !== step;
  document.body.dataset.step = step;
  // A pause keeps the grey to which the eyes are used.
  if (step !== "pause" && step !== "doubt" && step !== "stage") document.body.style.background = "";
  const first = [...at(step).querySelectorAll("input, button")].find((each) => each.offsetParent);
  scrollTo(0, 0);
  if (first && step !== "stage" && step !== "looking") first.focus({ preventScroll: true });
}
function complain(text) { at("error").textContent = text; at("error").hidden = !text; if (text) scrollTo(0, 0); }
async function send(path, values = {}) {
  const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page: PAGE, ...values }) });
  const told = await reply.json();
  if (!reply.ok || told.taken) throw Object.assign(new Error(told.error || `${reply.status}`), { taken: told.taken });
  return told;
}
const pressed = (id) => new Promise((go) => { at(id).onclick = () => { complain(""); go(); }; });
function frames(count) {
  return new Promise((go) => {
    const times = [], tick = (t) => { times.push(t); times.length > count ? go(times) : requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
  });
}
// By the clock of the frames, which stands still where nobody looks.
function wait(ms) {
  return new Promise((go) => {
    let begun = null;
    const tick = (t) => { begun ??= t; t - begun >= ms ? go() : requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
  });
}
async function refresh() {
  const times = await frames(60), gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
  period = gaps[gaps.length >> 1];
  if (period > 34) throw new Error(fill(TEXT.slow, { RATE: Math.round(1000 / period) }));
}
const screenNow = () => ({ device_pixel_ratio: devicePixelRatio, width: screen.width, height: screen.height });
const same = (then) => { const now = screenNow(); return Object.keys(now).every((name) => now[name] === then[name]); };
const changed = (then) => fill(TEXT.changed, { DPR: then.device_pixel_ratio, WIDTH: then.width, HEIGHT: then.height });

const signed = (value) => value.toFixed(2).replace("-", "−");
function acuityResult({ acuity, count, shift, smallest, inattentive }) {
  show("result");
  at("inattentive").hidden = !inattentive;
  at("acuity").textContent = TEXT.noAcuity;
  if (acuity) {
    const [value, low, high] = acuity.map(signed);
    at("acuity").textContent = fill(TEXT.acuity, { VALUE: value, LOW: low, HIGH: high, DECIMAL: (10 ** -acuity[0]).toFixed(2) });
    if (acuity[1] < smallest) at("acuity").textContent += fill(TEXT.atSmallest, { SMALLEST: signed(smallest) });
  }
  at("told").textContent = fill(TEXT.toldAcuity, { COUNT: count, SHIFT: shift });
}
function letterResult({ sensitivity, chart, count, offset, inattentive }) {
  show("result");
  at("inattentive").hidden = !inattentive;
  const [VALUE, LOW, HIGH] = sensitivity ? sensitivity.map(signed) : [];
  at("acuity").textContent = sensitivity ? fill(TEXT.sensitivity, { VALUE, LOW, HIGH }) : TEXT.noAcuity;
  if (chart !== null) at("acuity").textContent += fill(TEXT.chart, { SCORE: signed(chart) });
  at("told").textContent = fill(TEXT.toldFaint, { COUNT: count, OFFSET: offset });
}
function result({ curve, people, count, offset, shift, light, said_yes, inattentive }) {
  show("result");
  const NS = "http://www.w3.org/2000/svg", W = 600, H = 380, svg = document.createElementNS(NS, "svg");
  const x = (f) => 60 + (W - 80) * (Math.log10(f) - Math.log10(0.4)) / Math.log10(24 / 0.4), y = (s) => H - 45 - (H - 65) * Math.min(Math.max(s, 0), 3) / 3;
  const add = (name, values, text) => { const made = document.createElementNS(NS, name); for (const [k, v] of Object.entries(values)) made.setAttribute(k, v); if (text) made.textContent = text; svg.append(made); };
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`); svg.setAttribute("role", "img"); svg.setAttribute("aria-label", TEXT.y);
  const line = { stroke: "currentColor", fill: "none" };
  add("path", { ...line, d: `M60 20V${H - 45}H${W - 20}` });
  for (const f of [0.5, 1, 2, 4, 8, 16]) add("text", { x: x(f), y: H - 26, "text-anchor": "middle" }, f);
  for (const s of [0, 1, 2, 3]) add("text", { x: 52, y: y(s) + 4, "text-anchor": "end" }, 10 ** s);
  add("text", { x: W / 2, y: H - 6, "text-anchor": "middle" }, TEXT.x);
  add("text", { x: 62, y: 14 }, TEXT.y);
  add("path", { ...line, "stroke-dasharray": "6 4", d: people.map(([f, s], i) => `${i ? "L" : "M"}${x(f)} ${y(Math.log10(s))}`).join("") });
  for (const { frequency, mean, low, high } of curve) {
    add("path", { ...line, "stroke-width": 2, d: `M${x(frequency)} ${y(low)}V${y(high)}` });
    add("circle", { ...line, "stroke-width": 2, cx: x(frequency), cy: y(mean), r: 5 });
  }
  at("figure").replaceChildren(svg);
  const inNoise = curve.some((each) => "efficiency" in each), criterion = TEXT.tasks[facts.task].criterion;
  at("told").textContent = fill(TEXT.told, { COUNT: count, CRITERION: criterion, DASHED: people.length ? TEXT.dashed : "", OFFSET: offset, SHIFT: shift }) + (said_yes === null ? "" : fill(TEXT.catch, { RATE: said_yes })) + (light === "measured" || inNoise ? "" : TEXT.low);
  at("inattentive").hidden = !inattentive;
  const table = document.createElement("table"), cell = (kind, text) => Object.assign(document.createElement(kind), { textContent: text, ...(kind === "th" ? { scope: "col" } : {}) });
  const names = inNoise ? [...TEXT.columns, TEXT.efficiency, TEXT.columns[2]] : TEXT.columns;
  const share = (value) => value > 10 ? "…" : value.toPrecision(2);
  table.createTHead().insertRow().append(...names.map((name) => cell("th", name)));
  const rows = table.createTBody();
  for (const each of curve) rows.insertRow().append(...[each.frequency, (10 ** each.mean).toPrecision(3), `${(10 ** each.low).toPrecision(3)} – ${(10 ** each.high).toPrecision(3)}`, ...(inNoise ? [share(each.efficiency), `${share(each.efficiency_low)} – ${share(each.efficiency_high)}`] : [])].map((text) => cell("td", text)));
  at("numbers").replaceChildren(table);
}

// The first answer of the server; while another page holds the session, it is asked for again.
async function opened() {
  for (;;) {
    try { const told = await send("open"); complain(""); return told; } catch (error) {
      if (!error.taken) throw error;
      complain(error.message);
      document.body.dataset.step = "taken";
      for (const each of STEPS) at(each).hidden = true;
      await new Promise((go) => setTimeout(go, 1000));
    }
  }
}
async function main() {
  facts = await opened();
  setInterval(() => send("here").catch(() => {}), 3000);
  // The next page need not wait until this one has been silent.
  addEventListener("pagehide", () => { fetch("left", { method: "POST", keepalive: true, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page: PAGE }) }); });
  for (const each of document.querySelectorAll("[data-kind]")) each.hidden = each.dataset.kind !== facts.kind;
  const texts = { ...TEXT[facts.kind], ...TEXT.tasks[facts.task] };
  for (const each of document.querySelectorAll("[data-task]")) each.textContent = fill(texts[each.dataset.task] ?? "", { LEFT: facts.left, QUESTION: facts.question });
  at("title").textContent = facts.title; at("person").textContent = facts.person; at("store").textContent = facts.store;
  at("leaves").textContent = facts.judge ? fill(TEXT.leavesToJudge, { JUDGE: facts.judge }) : TEXT.leaves;
  const end = await (facts.kind === "pictures" ? seePictures(facts.state) : seePatterns(facts.state));
  // The command has ended, and its page with it.
  if (end.phase !== "done") { at("kept").textContent = TEXT.commandGoesOn; show("stopped"); if (end.error) complain(end.error); }
}
async function seePatterns(state) {
  at("millimetres").value = facts.distance;
  at("whichKeys").textContent = named() ? fill(TEXT.ownKeys, { WORDS: facts.words.join(", ") }) : facts.words.map((word, i) => fill(TEXT.key, { KEYS: facts.keys[i].map(nameOf).join(TEXT.or), WORD: word })).join(" ");
  if (!state) {
    const resumed = facts.resumed;
    if (resumed) goesOn(TEXT.resumed, { NUMBER: resumed.number, DISTANCE: Math.round(resumed.distance) });
    await consent();
    if (resumed && !same(resumed)) throw new Error(changed(resumed));
    const practice = resumed ? null : await practise(await calibrate());
    show("ready");
    await pressed("start");
    await refresh();
    state = await send("begin", { consent: true, practice, browser: browserName() });
  } else if (state.phase !== "done") { show("ready"); await pressed("start"); await refresh(); state = await send("state"); }
  const end = await trials(state);
  if (end.phase === "done") ("acuity" in end ? acuityResult : "sensitivity" in end ? letterResult : result)(end);
  return end;
}
function goesOn(text, values) { at("again").hidden = false; at("again").textContent = fill(text, values); }
function browserName() {
  const brand = (navigator.userAgentData?.brands || []).find((each) => !/Not/.test(each.brand));
  return brand ? `${brand.brand} ${brand.version}` : (navigator.userAgent.match(/(Firefox|Version)\/\d+/) || [""])[0];
}
main().catch((error) => complain(error.message));

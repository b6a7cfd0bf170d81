// The steps of a sitting, one after the other, and the clock of a trial.
const TEXT = JSON.parse(document.getElementById("text").textContent);
const at = (id) => document.getElementById(id);
const fill = (text, values) => Object.entries(values).reduce((all, [name, value]) => all.replace(name, value), text);
// Of this tab alone; a reload keeps it.
const PAGE = sessionStorage.page ||= crypto.randomUUID();
const FIXATION = 300, DURATION = 500, FLANK = 100, EVERY = 25, EARLY = 150, LATE = 8000;
const STEPS = ["consent", "measure", "distance", "luminance", "practice", "ready", "pause", "stopped", "result", "stage"];
let period = 0, painted = null, screenDraw = null, facts = null;

function show(step) {
  for (const each of STEPS) at(each).hidden = each !== step;
  document.body.dataset.step = step;
  // A pause keeps the grey to which the eyes are used.
  if (step !== "pause") document.body.style.background = "";
  const first = at(step).querySelector("input:not([hidden]), button");
  if (first && step !== "stage") first.focus();
}
function complain(text) { at("error").textContent = text; at("error").hidden = !text; }
async function send(path, values = {}) {
  const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page: PAGE, ...values }) });
  const told = await reply.json();
  if (!reply.ok) throw new Error(told.error || `${reply.status}`);
  return told;
}
const pressed = (id) => new Promise((go) => { at(id).onclick = () => { complain(""); go(); }; });

// ---- set-up ----
async function consent() {
  show("consent");
  for (;;) { await pressed("agreed"); if (at("agree").checked) return; complain(TEXT.agree); }
}
async function card(number, start) {
  show("measure");
  at("turn").textContent = fill(TEXT.turn, { NUMBER: number });
  const width = at("width"), fit = () => { at("card").style.width = `${width.value}px`; at("card").style.height = `${width.value * 53.98 / 85.6}px`; };
  width.value = start; width.oninput = fit; fit();
  await pressed("fitted");
  return Number(width.value);
}
async function distance() {
  show("distance");
  await pressed("measured");
  return Number(at("millimetres").value);
}
async function luminance() {
  show("luminance");
  at("known").hidden = !facts.display; at("light").hidden = facts.display;
  for (;;) { await pressed("lit"); if (at("off").checked) break; complain(TEXT.off); }
  const light = document.querySelector("[name=light]:checked").value;
  return { light, peak: Number(at("peak").value) };
}
function frames(count) {
  return new Promise((go) => {
    const times = [], tick = (t) => { times.push(t); times.length > count ? go(times) : requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
  });
}
async function refresh() {
  const times = await frames(60), gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
  period = gaps[gaps.length >> 1];
  if (period > 34) throw new Error(fill(TEXT.slow, { RATE: Math.round(1000 / period) }));
}
const screenNow = () => ({ device_pixel_ratio: devicePixelRatio, width: screen.width, height: screen.height });
async function calibrate() {
  let told = null;
  while (!told) {
    const cards = [await card(1, 230), await card(2, 470)];
    const mm = await distance(), light = await luminance();
    await refresh();
    try { told = await send("calibrate", { cards, distance: mm, ...light, ...screenNow(), period }); } catch (error) { complain(error.message); }
  }
  return told.practice;
}

// ---- one showing ----
function prepare(draw) {
  const canvas = at("canvas"), ratio = devicePixelRatio;
  if (draw.side > Math.min(innerWidth, innerHeight) * ratio) throw new Error(fill(TEXT.small, { SIDE: draw.side }));
  if (!painted || canvas.width !== draw.side) {
    canvas.width = canvas.height = draw.side;
    painted = painted || painter(canvas, SHADER);
  }
  if (draw.curve) painted.setCurve(draw.curve);
  // The buffer covers whole device pixels, else the compositor would average the dither away.
  canvas.style.width = canvas.style.height = `${draw.side / ratio}px`;
  canvas.style.left = `${Math.round((innerWidth * ratio - draw.side) / 2) / ratio}px`;
  canvas.style.top = `${Math.round((innerHeight * ratio - draw.side) / 2) / ratio}px`;
  painted.draw({ ...draw, contrast: 0 }, 0);
  const codes = painted.read(), grey = Math.round(codes.reduce((sum, each) => sum + each, 0) / codes.length);
  document.body.style.background = `rgb(${grey} ${grey} ${grey})`;
  screenDraw = screenNow();
}
function envelope(ms) {
  if (ms < 0 || ms >= DURATION) return 0;
  const edge = Math.min(ms, DURATION - ms);
  return edge >= FLANK ? 1 : 0.5 - 0.5 * Math.cos(Math.PI * edge / FLANK);
}
// Shows one pattern and waits for a key: what happened, or why it does not count.
function showing(draw, words) {
  prepare(draw);
  at("fixation").hidden = false;
  ["yes", "no"].forEach((id, i) => { at(id).textContent = `${words[i]} (${["F ↑", "J →"][i]})`; });
  return new Promise((go) => {
    let begun = null, last = null, first = null, shown = 0, dropped = 0, over = false;
    const told = (more) => ({ reaction_ms: 0, frames_shown: shown, frames_dropped: dropped, period_ms: period, ...more });
    function end(more) {
      if (over) return;
      over = true;
      removeEventListener("keydown", key); document.removeEventListener("visibilitychange", gone); removeEventListener("resize", turned); removeEventListener("blur", gone);
      go(told(more));
    }
    const gone = () => end({ why: "hidden" }), turned = () => end({ why: "resized" });
    function answer(choice, when, name) {
      const reaction = first === null ? -1 : when - first;
      if (reaction < EARLY) return end({ why: "too early" });
      end(reaction > LATE ? { why: "too late" } : { choice, key: name, reaction_ms: reaction });
    }
    function key(event) {
      if (event.repeat) return;
      const place = { f: 0, F: 0, ArrowUp: 0, j: 1, J: 1, ArrowRight: 1 }[event.key];
      if (place !== undefined) { event.preventDefault(); answer(words[place], event.timeStamp, event.key); }
      else if (event.key === "p" || event.key === "P") end({ why: "paused" });
      else if (event.key === "Escape") end({ why: "paused", stop: true });
    }
    addEventListener("keydown", key); document.addEventListener("visibilitychange", gone); addEventListener("resize", turned); addEventListener("blur", gone);
    ["yes", "no"].forEach((id, i) => { at(id).onclick = (event) => answer(words[i], event.timeStamp, "touch"); });
    function tick(t) {
      if (over) return;
      begun ??= t;
      const ms = t - begun - FIXATION, frame = Math.round((t - begun) / period);
      at("fixation").hidden = ms >= 0;
      const strength = envelope(ms);
      painted.draw({ ...draw, contrast: draw.contrast * strength }, frame);
      if (ms >= 0 && ms < DURATION) { first ??= t; shown += 1; }
      if (ms > 0 && ms - period < DURATION && last !== null && t - last > 1.5 * period) dropped += Math.round((t - last) / period) - 1;
      last = t;
      if (ms > LATE + 2000) return end({ why: "too late" });
      requestAnimationFrame(tick);
    }
    requestAnimationFrame(tick);
  });
}

// ---- practice and trials ----
async function rest(title) {
  show("pause");
  at("pauseTitle").textContent = title;
  await pressed("on");
  show("stage");
}
async function stop() { show("stopped"); await new Promise(() => {}); }
async function practise(patterns) {
  const all = [];
  for (let first = true; ; first = false) {
    show("practice");
    if (!first) complain(TEXT.repeat);
    await pressed("try");
    await refresh();
    show("stage");
    let right = 0, plain = 0;
    for (const { draw, words, correct, easy } of patterns) {
      let told = null;
      at("line").textContent = "";
      while (!told || !told.choice) {
        told = await showing(draw, words);
        if (told.stop) await stop();
        if (told.why === "paused") await rest(TEXT.paused);
      }
      const hit = told.choice === correct;
      at("said").textContent = hit ? TEXT.right : TEXT.wrong;
      all.push({ contrast: draw.contrast, hit });
      if (easy) { plain += 1; right += hit; }
      await new Promise((go) => setTimeout(go, 600));
      at("said").textContent = "";
    }
    if (right >= plain - 1) return all;
  }
}
async function trials(state) {
  let since = 0;
  show("stage");
  while (state.phase === "trial" || state.phase === "wait") {
    if (state.phase === "wait") { state = await send("state"); continue; }
    document.body.dataset.trial = `${state.number}.${state.attempt}`;
    at("line").textContent = fill(TEXT.trial, { NUMBER: state.number, TOTAL: state.total ?? "…" });
    const told = await showing(state.draw, state.words);
    const next = await patient("answer", { number: state.number, attempt: state.attempt, choice: null, ...told });
    if (told.stop) await stop();
    if (told.why && told.why !== "too early" && told.why !== "too late") { await rest(TEXT.paused); since = 0; if (!same(screenDraw)) throw new Error(changed(screenDraw)); }
    else if (next.number !== state.number && ++since >= EVERY && next.phase === "trial") { await rest(TEXT.break); since = 0; }
    state = next;
  }
  return state;
}
// A closed laptop or a server that is started again: an answer is sent until it was heard.
async function patient(path, values) {
  for (let n = 0; ; n++) {
    try { return await send(path, values); } catch (error) {
      if (!(error instanceof TypeError) || n > 60) throw error;
      complain("…"); await new Promise((go) => setTimeout(go, 1000)); complain("");
    }
  }
}
const same = (then) => { const now = screenNow(); return Object.keys(now).every((name) => now[name] === then[name]); };
const changed = (then) => fill(TEXT.changed, { DPR: then.device_pixel_ratio, WIDTH: then.width, HEIGHT: then.height });

// ---- result ----
function result({ curve, people, count, offset, light }) {
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
    add("circle", { ...line, fill: "var(--paper)", "stroke-width": 2, cx: x(frequency), cy: y(mean), r: 5 });
  }
  at("figure").replaceChildren(svg);
  at("told").textContent = fill(TEXT.told, { COUNT: count, OFFSET: offset }) + (light === "measured" ? "" : TEXT.low);
  const table = document.createElement("table");
  for (const cells of [["cpd", "1 / c", "95 %"], ...curve.map((each) => [each.frequency, (10 ** each.mean).toPrecision(3), `${(10 ** each.low).toPrecision(3)} – ${(10 ** each.high).toPrecision(3)}`])])
    table.insertRow().append(...cells.map((cell) => Object.assign(document.createElement("td"), { textContent: cell })));
  at("numbers").replaceChildren(table);
}

async function main() {
  facts = await send("open");
  setInterval(() => send("here").catch(() => {}), 3000);
  at("title").textContent = facts.title; at("person").textContent = facts.person; at("store").textContent = facts.store;
  at("millimetres").value = facts.distance;
  let state = facts.state;
  if (!state) {
    const resumed = facts.resumed;
    at("again").hidden = !resumed;
    if (resumed) at("again").textContent = fill(TEXT.resumed, { NUMBER: resumed.number, DISTANCE: Math.round(resumed.distance) });
    await consent();
    if (resumed && !same(resumed)) throw new Error(changed(resumed));
    const practice = resumed ? null : await practise(await calibrate());
    show("ready");
    await pressed("start");
    await refresh();
    state = await send("begin", { consent: true, practice, browser: browserName() });
  } else if (state.phase !== "done") { show("ready"); await pressed("start"); await refresh(); state = await send("state"); }
  const end = await trials(state);
  if (end.phase === "done") result(end);
  else { show("stopped"); if (end.error) complain(end.error); }
}
function browserName() {
  const brand = (navigator.userAgentData?.brands || []).find((each) => !/Not/.test(each.brand));
  return brand ? `${brand.brand} ${brand.version}` : (navigator.userAgent.match(/(Firefox|Version)\/\d+/) || [""])[0];
}
main().catch((error) => complain(error.message));

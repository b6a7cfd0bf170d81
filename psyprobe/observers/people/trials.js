// One showing after the other: the clock of a trial, practice, breaks.
const FIXATION = 300, DURATION = 500, GAP = 500, FLANK = 100, EVERY = 25, REST = 10_000, EARLY = 150, LATE = 8000;
const ARROWS = { arrowup: "↑", arrowright: "→", arrowdown: "↓", arrowleft: "←" };
const nameOf = (key) => ARROWS[key] ?? key.toUpperCase();
// Where a letter is an answer by itself, its key needs no naming.
const named = () => facts.words.every((word, i) => word.toUpperCase() === nameOf(facts.keys[i][0]));
let painted = null, screenDraw = null;

function prepare(draws) {
  const [draw] = draws, words = facts.words;
  const canvas = at("canvas"), ratio = devicePixelRatio;
  if (draw.side > Math.min(innerWidth, innerHeight) * ratio) throw new Error(fill(TEXT.small, { SIDE: draw.side }));
  if (!painted || canvas.width !== draw.side) {
    canvas.width = canvas.height = draw.side;
    painted = painted || painter(canvas, SHADER);
  }
  if (draw.curve) painted.setCurve(draw.curve);
  for (const each of draws) if (typeof each.pixels === "string") each.pixels = pixelsOf(each.pixels);
  // The buffer covers whole device pixels, else the compositor would average the dither away.
  canvas.style.width = canvas.style.height = `${draw.side / ratio}px`;
  canvas.style.left = `${Math.round((innerWidth * ratio - draw.side) / 2) / ratio}px`;
  canvas.style.top = `${Math.round((innerHeight * ratio - draw.side) / 2) / ratio}px`;
  painted.draw({ ...draw, contrast: 0, pixel_scale: 0 }, 0);
  const codes = painted.read(), grey = Math.round(codes.reduce((sum, each) => sum + each, 0) / codes.length);
  document.body.style.background = `rgb(${grey} ${grey} ${grey})`;
  // Words on it are black or white, whichever stands out more.
  const light = (grey / 255) ** 2.2, ink = (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000" : "#fff";
  document.body.style.setProperty("--on-grey", ink);
  at("fixation").style.background = ink;
  screenDraw = screenNow();
  const compass = facts.keys.some((keys) => keys.includes("arrowleft"));
  at("keys").replaceChildren(...words.map((word, i) => {
    const text = named() ? word : fill(TEXT.answer, { WORD: word, KEY: facts.keys[i].map(nameOf).join(" ") });
    const button = Object.assign(document.createElement("button"), { textContent: text }), digit = Number(facts.keys[i][0]) - 1;
    // Directions lie as on the number pad.
    if (compass) button.style.gridArea = `${3 - Math.floor(digit / 3)} / ${digit % 3 + 1}`;
    return button;
  }));
  at("keys").className = compass ? "compass" : words.length > 4 ? "many" : "";
}
function envelope(ms) {
  if (ms < 0 || ms >= DURATION) return 0;
  const edge = Math.min(ms, DURATION - ms);
  return edge >= FLANK ? 1 : 0.5 - 0.5 * Math.cos(Math.PI * edge / FLANK);
}
// Shows patterns one after the other and waits for a key: what happened, or why it does not count.
function showing(draws) {
  prepare(draws);
  const words = facts.words, lastOnset = (draws.length - 1) * (DURATION + GAP), ended = lastOnset + DURATION;
  at("fixation").hidden = false;
  return new Promise((go) => {
    let begun = null, last = null, first = null, interval = -1, shown = 0, dropped = 0, over = false;
    const told = (more) => ({ reaction_ms: 0, frames_shown: shown, frames_dropped: dropped, period_ms: period, ...more });
    const watched = [[window, "keydown", key], [window, "resize", () => end({ why: "resized" })], [window, "blur", () => end({ why: "hidden" })], [document, "visibilitychange", () => end({ why: "hidden" })]];
    function end(more) {
      if (over) return;
      over = true;
      for (const [on, what, act] of watched) on.removeEventListener(what, act);
      go(told(more));
    }
    function answer(place, when, name) {
      const reaction = first === null ? -1 : when - first;
      if (reaction < EARLY) return end({ why: "too early" });
      end(reaction > LATE ? { why: "too late" } : { choice: words[place], key: name, reaction_ms: reaction });
    }
    function key(event) {
      if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      const place = facts.keys.findIndex((keys) => keys.includes(event.key.toLowerCase()));
      if (place >= 0) { event.preventDefault(); answer(place, event.timeStamp, event.key); }
      else if (event.key.toLowerCase() === "p") end({ why: "paused" });
      else if (event.key === "Escape") end({ why: "paused", stop: true });
    }
    for (const [on, what, act] of watched) on.addEventListener(what, act);
    [...at("keys").children].forEach((button, place) => { button.onclick = (event) => answer(place, event.timeStamp, "touch"); });
    function tick(t) {
      if (over) return;
      begun ??= t;
      const ms = t - begun - FIXATION, frame = Math.round((t - begun) / period);
      const now = Math.min(Math.max(Math.floor(ms / (DURATION + GAP)), 0), draws.length - 1), draw = draws[now], since = ms - now * (DURATION + GAP), share = envelope(since);
      if (now !== interval && draw.pixels) painted.setPixels(draw.pixels, draw.side);
      interval = now;
      // The dot stands in the gap too.
      at("fixation").hidden = ms >= 0 && (since < DURATION || ms >= lastOnset);
      painted.draw({ ...draw, contrast: draw.contrast * share, pixel_scale: (draw.pixel_scale ?? 0) * share }, frame);
      if (ms >= lastOnset) first ??= t;
      if (since >= 0 && since < DURATION) shown += 1;
      if (ms > 0 && ms - period < ended && last !== null && t - last > 1.5 * period) dropped += Math.round((t - last) / period) - 1;
      last = t;
      if (ms > lastOnset + LATE + 2000) return end({ why: "too late" });
      requestAnimationFrame(tick);
    }
    requestAnimationFrame(tick);
  });
}

// Grey, and a button that can be pressed after so long.
async function rest(title, least) {
  show("pause");
  at("pauseTitle").textContent = title;
  const on = at("on");
  on.disabled = least > 0;
  for (let left = least; left > 0; left -= 1000) { on.textContent = fill(TEXT.soon, { SECONDS: left / 1000 }); await wait(1000); }
  on.disabled = false; on.textContent = TEXT.on; on.focus();
  await pressed("on");
  show("stage");
}
async function stop() { show("stopped"); await new Promise(() => {}); }
async function practise({ practice, curve }) {
  at("curve").hidden = !curve;
  if (curve) at("curve").textContent = fill(curve.used ? TEXT.curve : TEXT.curveUnused, { EXPONENT: curve.exponent, SCATTER: curve.scatter });
  const all = [];
  for (let first = true; ; first = false) {
    show("practice");
    if (!first) complain(TEXT.repeat);
    await pressed("try");
    await refresh();
    show("stage");
    let right = 0, plain = 0;
    for (const { draws, correct, level, easy } of practice) {
      let told = null;
      at("line").textContent = "";
      while (!told || !told.choice) {
        told = await showing(draws);
        if (told.stop) await stop();
        if (told.why === "paused") await rest(TEXT.paused, 0);
      }
      const hit = told.choice === correct;
      at("said").textContent = hit ? TEXT.right : TEXT.wrong;
      all.push({ level, hit });
      if (easy) { plain += 1; right += hit; }
      await wait(600);
      at("said").textContent = "";
    }
    if (right >= plain - 1) return all;
  }
}
async function trials(state) {
  let since = 0;
  show("stage");
  while (state.phase === "trial" || state.phase === "wait") {
    if (state.phase === "wait") { state = await patient("state"); continue; }
    if (state.doubt) await doubt();
    document.body.dataset.trial = `${state.number}.${state.attempt}`;
    at("line").textContent = fill(state.total ? TEXT.trial : TEXT.trialOnly, { NUMBER: state.number, TOTAL: state.total });
    const told = await showing(state.draws);
    const next = await patient("answer", { number: state.number, attempt: state.attempt, choice: null, ...told });
    if (told.stop) await stop();
    if (told.why && told.why !== "too early" && told.why !== "too late") { await rest(TEXT.paused, 0); since = 0; if (!same(screenDraw)) throw new Error(changed(screenDraw)); }
    else if (next.number !== state.number && ++since >= EVERY && next.phase === "trial") { await rest(TEXT.break, REST); since = 0; }
    state = next;
  }
  return state;
}
async function doubt() {
  show("doubt");
  await new Promise((go) => { at("still").onclick = go; at("enough").onclick = stop; });
  show("stage");
}
// A closed laptop or a server that is started again: an answer is sent until it was heard.
async function patient(path, values) {
  for (let n = 0; ; n++) {
    try { return await send(path, values); } catch (error) {
      if (!(error instanceof TypeError) || n > 60) throw error;
      complain(TEXT.again); await new Promise((go) => setTimeout(go, 1000)); complain("");
    }
  }
}

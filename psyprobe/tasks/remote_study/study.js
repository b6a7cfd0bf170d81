"use strict";
// A study as a jsPsych timeline: screen, distance, practice, trials, and the answers as a file. Nothing is sent anywhere.
const CARD_MM = 85.6, FIXATION = 300, DURATION = 500, FLANK = 100, EARLY = 150, LATE = 8000, PAUSE = 500, EVERY = 25, MOST_DROPPED = 2;
const TEXT = STUDY.text, fill = (text, values) => Object.entries(values).reduce((all, [name, value]) => all.replaceAll(name, value), text);
const known = { person: new URLSearchParams(location.search).get("person") || letters(8), session: letters(16), screen: {}, trials: [] };
const canvas = document.createElement("canvas");
canvas.className = "pattern";
const painted = painter(canvas, STUDY.shader);
let period = 1000 / 60;

function letters(n) {
  return Array.from(crypto.getRandomValues(new Uint8Array(n)), (each) => "abcdefghijklmnopqrstuvwxyz"[each % 26]).join("");
}
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
// Pixels per degree where the gaze meets the screen.
function ppd() {
  const { card, distance, device_pixel_ratio } = known.screen, pitch = CARD_MM / (card * device_pixel_ratio);
  return 1 / (2 * Math.atan(pitch / (2 * distance)) * 180 / Math.PI);
}
function refresh() {
  return new Promise((go) => {
    const times = [];
    (function tick(t) { times.push(t); times.length < 62 ? requestAnimationFrame(tick) : go(median(times.slice(2).map((each, i) => each - times[i + 1]))); })(performance.now());
  });
}

// A page with a form; `check` gives what is wrong, or nothing.
class Step {
  static info = { name: "psyprobe-step", version: "1", parameters: { html: { type: jsPsychModule.ParameterType.HTML_STRING }, ready: { type: jsPsychModule.ParameterType.FUNCTION, default: () => {} }, check: { type: jsPsychModule.ParameterType.FUNCTION, default: () => "" } }, data: {} };
  constructor(jsPsych) { this.jsPsych = jsPsych; }
  trial(display, { html, ready, check }) {
    document.body.className = "";
    document.body.style.background = "";
    display.innerHTML = `<form>${html}<p class="problem" role="alert"></p></form>`;
    const form = display.querySelector("form");
    (form.querySelector("input") || form.querySelector("button")).focus();
    ready(form);
    form.onsubmit = async (event) => {
      event.preventDefault();
      const problem = await check(form);
      form.querySelector(".problem").textContent = problem;
      if (!problem) this.jsPsych.finishTrial({});
    };
  }
}

// One pattern, shown again until an attempt counts.
class Pattern {
  static info = { name: "psyprobe-pattern", version: "1", parameters: { pattern: { type: jsPsychModule.ParameterType.OBJECT }, line: { type: jsPsychModule.ParameterType.STRING, default: "" }, practice: { type: jsPsychModule.ParameterType.BOOL, default: false } }, data: {} };
  constructor(jsPsych) { this.jsPsych = jsPsych; }
  async trial(display, { pattern, line, practice }) {
    document.body.className = "stage";
    const words = STUDY.words;
    display.innerHTML = `<p class="line" aria-live="polite"></p><div class="dot"></div><div class="keys"><button>${words[0]} (F ↑)</button><button>${words[1]} (J →)</button></div>`;
    display.append(canvas);
    display.querySelector(".line").textContent = line;
    let told = {};
    for (let attempt = 1; !told.choice; attempt++) {
      told = { number: pattern.number, attempt, ...await showing(display, pattern, attempt) };
      if (told.why === "paused" || told.why === "hidden") await new Promise((go) => addEventListener("keydown", go, { once: true }));
    }
    if (practice) display.querySelector(".line").textContent = told.choice === pattern.correct ? TEXT.right : TEXT.wrong;
    else known.trials.push(told);
    document.body.dataset.trial = practice ? "practice" : pattern.number;
    await new Promise((go) => setTimeout(go, PAUSE));
    this.jsPsych.finishTrial({ ...told, hit: told.choice === pattern.correct });
  }
}
function drawing(pattern, attempt) {
  const scale = ppd(), { mean, contrast, frequency, sigma, orientation, phase } = pattern;
  const seed = (pattern.number * 2654435769 + attempt * 40503) >>> 0;
  return { ...STUDY.light, mean, contrast, cycles: frequency / scale, sigma: sigma * scale, orientation, phase, seed, dither: "golden" };
}
function prepare(draw) {
  const ratio = devicePixelRatio, side = Math.round(STUDY.field * ppd());
  canvas.width = canvas.height = side;
  canvas.style.width = canvas.style.height = `${side / ratio}px`;
  canvas.style.left = `${Math.round((innerWidth * ratio - side) / 2) / ratio}px`;
  canvas.style.top = `${Math.round((innerHeight * ratio - side) / 2) / ratio}px`;
  painted.draw({ ...draw, contrast: 0 }, 0);
  const codes = painted.read(), grey = Math.round(codes.reduce((sum, each) => sum + each, 0) / codes.length);
  document.body.style.background = `rgb(${grey} ${grey} ${grey})`;
}
function envelope(ms) {
  if (ms < 0 || ms >= DURATION) return 0;
  const edge = Math.min(ms, DURATION - ms);
  return edge >= FLANK ? 1 : 0.5 - 0.5 * Math.cos(Math.PI * edge / FLANK);
}
function showing(display, pattern, attempt) {
  const draw = drawing(pattern, attempt), dot = display.querySelector(".dot"), buttons = [...display.querySelectorAll("button")];
  prepare(draw);
  return new Promise((go) => {
    let begun = null, first = null, last = null, shown = 0, dropped = 0, over = false;
    const hidden = () => end({ why: "hidden" });
    function end(more) {
      if (over) return;
      over = true;
      removeEventListener("keydown", key); removeEventListener("blur", hidden); removeEventListener("resize", hidden);
      if (more.choice && dropped > MOST_DROPPED) more = { why: "frames" };
      go({ frames_shown: shown, frames_dropped: dropped, period_ms: period, ...more });
    }
    function answer(place, when) {
      const reaction = first === null ? -1 : when - first;
      if (reaction < EARLY || reaction > LATE) return end({ why: reaction < EARLY ? "too early" : "too late" });
      end({ choice: STUDY.words[place], reaction_ms: reaction });
    }
    function key(event) {
      const place = { f: 0, F: 0, ArrowUp: 0, j: 1, J: 1, ArrowRight: 1 }[event.key];
      if (event.repeat) return;
      if (place !== undefined) { event.preventDefault(); answer(place, event.timeStamp); } else if (event.key === "p" || event.key === "P") end({ why: "paused" });
    }
    addEventListener("keydown", key); addEventListener("blur", hidden); addEventListener("resize", hidden);
    buttons.forEach((button, place) => { button.onclick = (event) => answer(place, event.timeStamp); });
    requestAnimationFrame(function tick(t) {
      if (over) return;
      begun ??= t;
      const ms = t - begun - FIXATION;
      dot.hidden = ms >= 0;
      painted.draw({ ...draw, contrast: draw.contrast * envelope(ms) }, Math.round((t - begun) / period));
      if (ms >= 0 && ms < DURATION) { first ??= t; shown += 1; }
      if (ms > 0 && ms - period < DURATION && last !== null && t - last > 1.5 * period) dropped += Math.round((t - last) / period) - 1;
      last = t;
      if (ms > LATE + 2000) return end({ why: "too late" });
      requestAnimationFrame(tick);
    });
  });
}

// ---- the timeline ----
const jsPsych = initJsPsych({ display_element: "study" });
const button = (text) => `<p><button>${text}</button></p>`;
const cards = [];
const card = {
  type: Step,
  html: `<h1>${TEXT.card_title}</h1><p>${TEXT.card}</p><div id="card"></div><label>${TEXT.width}<input type="range" min="150" max="900" step="0.25"></label>${button(TEXT.next)}`,
  ready: (form) => {
    const slider = form.querySelector("input"), draw = () => { document.getElementById("card").style.width = `${slider.value}px`; };
    // The second fit begins elsewhere.
    slider.value = cards.length % 2 ? 500 : 250;
    slider.oninput = draw;
    draw();
  },
  check: (form) => { cards.push(Number(form.querySelector("input").value)); return ""; },
};
const fitted = {
  timeline: [card, card],
  loop_function: () => {
    const [one, two] = cards.slice(-2);
    known.screen = { card: (one + two) / 2, device_pixel_ratio: devicePixelRatio, width: screen.width, height: screen.height };
    return Math.abs(one - two) > 0.02 * one;
  },
};
const distance = {
  type: Step,
  html: `<h1>${TEXT.distance_title}</h1><p>${TEXT.distance}</p><label>${TEXT.centimetres}<input type="number" min="20" max="500" step="1" required></label>${button(TEXT.next)}`,
  check: async (form) => {
    known.screen.distance = 10 * Number(form.querySelector("input").value);
    const needed = Math.ceil(known.screen.distance * STUDY.finest * STUDY.least_pixels / ppd() / 10);
    if (STUDY.finest * STUDY.least_pixels > ppd()) return fill(TEXT.too_near, { NEEDED: needed });
    if (STUDY.field * ppd() > Math.min(innerWidth, innerHeight) * devicePixelRatio) return TEXT.too_small;
    period = known.screen.period = await refresh();
    return period > 34 ? TEXT.too_slow : "";
  },
};
const practice = {
  timeline: [
    { type: Step, html: `<h1>${TEXT.practice_title}</h1><p>${TEXT.practice}</p>${button(TEXT.start)}` },
    ...STUDY.practice.map((pattern) => ({ type: Pattern, pattern, practice: true, line: TEXT.practice_title })),
  ],
  loop_function: (data) => data.values().filter((each) => each.hit).length < STUDY.practice.length - 1,
};
const trials = STUDY.trials.flatMap((pattern, i) => [
  ...(i && i % EVERY === 0 ? [{ type: Step, html: `<h1>${TEXT.break_title}</h1><p>${TEXT.rest}</p>${button(TEXT.next)}` }] : []),
  { type: Pattern, pattern, line: fill(TEXT.trial, { NUMBER: i + 1, TOTAL: STUDY.trials.length }) },
]);
const answers = () => JSON.stringify({ format: STUDY.format, experiment: STUDY.experiment, ...known });
const end = {
  type: Step,
  html: `<h1>${TEXT.end_title}</h1><p>${TEXT.end}</p><p><a id="file" download="${known.person}.json">${TEXT.save}</a></p><label>${TEXT.copy}<textarea id="answers" readonly></textarea></label>${button(TEXT.close)}`,
  ready: (form) => {
    const text = answers();
    form.querySelector("textarea").value = text;
    form.querySelector("#file").href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    document.body.dataset.trial = "over";
  },
};
jsPsych.run([
  { type: Step, html: `<h1>${STUDY.title}</h1>${TEXT.consent.map((each) => `<p>${each}</p>`).join("")}${button(TEXT.agree)}`, check: () => { known.consent = true; return ""; } },
  fitted, distance, practice, ...trials, end,
]);

(EYES) => {
  // A person in front of the page's canvas, in its own window: `EYES` says how well they see.
  // Frames come by a clock of their own, since a machine full of work would drop them. Of each frame of a showing the
  // person takes the light of the pixels that stand in the canvas; when it is over they fit their templates to its mean,
  // see the strongest with a chance that grows with its visibility, or guess, and press the key.
  let t = performance.now(), seed = EYES.seed, phase = "elsewhere", rows, size, light, frames, share, grey, due, key, first;
  window.sitter = { begun: t, answering: true, log: [], now: () => t };
  const random = () => { // mulberry32
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  const envelope = (ms) => { const edge = Math.min(ms, 500 - ms); return edge >= 100 ? 1 : 0.5 - 0.5 * Math.cos(Math.PI * Math.max(edge, 0) / 100); };

  // Rows that give the contrasts of all templates at once, where each alone would see its neighbours too.
  function templates(n) {
    const all = [], c = (n - 1) / 2, s = EYES.sigma * EYES.ppd;
    for (const degrees of EYES.orientations) for (const f of EYES.frequencies) {
      const one = new Float64Array(n * n), a = degrees * Math.PI / 180, turn = 2 * Math.PI * f / EYES.ppd;
      let mean = 0;
      for (let i = 0; i < n * n; i++) {
        const x = i % n - c, y = Math.floor(i / n) - c;
        one[i] = Math.exp(-(x * x + y * y) / (2 * s * s)) * Math.cos(turn * (x * Math.cos(a) + y * Math.sin(a)));
        mean += one[i] / (n * n);
      }
      all.push(one.map((v) => v - mean));
    }
    const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; i++) sum += a[i] * b[i]; return sum; };
    const m = all.map((a) => all.map((b) => dot(a, b))), inverse = m.map((_, i) => m.map((__, j) => Number(i === j)));
    for (let i = 0; i < m.length; i++) {
      const pivot = m[i][i];
      m[i] = m[i].map((v) => v / pivot); inverse[i] = inverse[i].map((v) => v / pivot);
      for (let k = 0; k < m.length; k++) if (k !== i) {
        const by = m[k][i];
        m[k] = m[k].map((v, j) => v - by * m[i][j]); inverse[k] = inverse[k].map((v, j) => v - by * inverse[i][j]);
      }
    }
    return { all, inverse, dot };
  }
  function pixels() {
    const canvas = document.getElementById("canvas"), gl = canvas.getContext("webgl2"), n = canvas.width, codes = new Uint8Array(4 * n * n);
    gl.readPixels(0, 0, n, n, gl.RGBA, gl.UNSIGNED_BYTE, codes);
    return [codes, n];
  }
  const seen = (chance, right) => random() < chance ? right : EYES.keys[Math.floor(random() * EYES.keys.length)];
  // A letter by its ink: its place is the box about it, its name the likest of the given shapes, its size the ink's area.
  function nameLetter() {
    const ink = light.map((v) => (frames - v / grey) / share), most = Math.max(...ink);
    let left = size, right = 0, low = size, high = 0, area = 0;
    for (let i = 0; i < ink.length; i++) {
      area += ink[i] / most;
      if (ink[i] < most / 2) continue;
      left = Math.min(left, i % size); right = Math.max(right, i % size + 1); low = Math.min(low, Math.floor(i / size)); high = Math.max(high, Math.floor(i / size) + 1);
    }
    const n = EYES.shapes[0].length ** 0.5, likeness = EYES.shapes.map((shape) => shape.reduce((sum, inked, i) => {
      // Rows of shapes come from above.
      const x = Math.floor(left + (i % n + 0.5) / n * (right - left)), y = Math.floor(high - (Math.floor(i / n) + 0.5) / n * (high - low));
      return sum + (inked - 0.5) * (ink[y * size + x] / most - 0.5);
    }, 0));
    const name = likeness.indexOf(Math.max(...likeness)), height = 5 * Math.sqrt(area / EYES.areas[name]) / EYES.ppd;
    window.sitter.log.push([document.body.dataset.trial || "practice", height, EYES.keys[name], (t - window.sitter.begun) / 1000]);
    return seen((1 - EYES.lapse) * (1 - Math.exp(-((height / EYES.letter_deg) ** EYES.slope))), EYES.keys[name]);
  }
  // Which of two intervals holds more of the one pattern, with noise of its own in each.
  function compare() {
    const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const [one, two] = [first, light.map((v) => v / share)].map((each) => rows.dot(rows.all[0], each) / grey * rows.inverse[0][0]);
    window.sitter.log.push([document.body.dataset.trial || "practice", one, two, (t - window.sitter.begun) / 1000]);
    return EYES.keys[two + EYES.internal * normal() > one + EYES.internal * normal() ? 1 : 0];
  }
  function decide() {
    if (EYES.shapes) return nameLetter();
    if (EYES.internal !== undefined) return compare();
    const { all, inverse, dot } = rows, per = grey * share;
    const seen = all.map((one) => dot(one, light) / per), contrasts = inverse.map((row) => dot(row, seen));
    const visible = contrasts.map((c, i) => c * 10 ** EYES.log10_sensitivity[i % EYES.frequencies.length]);
    const best = visible.indexOf(Math.max(...visible)), turned = Math.floor(best / EYES.frequencies.length);
    const chance = visible[best] > 0 ? (1 - EYES.lapse) / (1 + Math.exp(-2 * Math.log(19) * Math.log10(visible[best]) / EYES.width)) : 0;
    const sees = random() < chance, n = EYES.keys.length;
    window.sitter.log.push([document.body.dataset.trial || "practice", contrasts[best], EYES.orientations[turned], (t - window.sitter.begun) / 1000]);
    if (EYES.criterion !== undefined) return EYES.keys[sees || random() < EYES.criterion ? 0 : 1];
    return EYES.keys[sees ? turned : Math.floor(random() * n)];
  }
  function press(key) {
    const event = new KeyboardEvent("keydown", { key });
    Object.defineProperty(event, "timeStamp", { value: t });
    const button = document.getElementById("keys").children[EYES.keys.indexOf(key)];
    if (!EYES.touches || !button) return dispatchEvent(event);
    const touch = new MouseEvent("click");
    Object.defineProperty(touch, "timeStamp", { value: t });
    button.dispatchEvent(touch);
  }
  function watch() {
    look();
    // Where a test waits for this moment, time stands still in it.
    if (phase === window.sitter.until) { window.sitter.reached = true; window.sitter.answering = false; }
  }
  function look() {
    const spot = document.getElementById("spot").getBoundingClientRect(), cross = document.getElementById("cross").getBoundingClientRect();
    if (document.body.dataset.step === "blind" && spot.width && (cross.left + cross.right - spot.left - spot.right) / 2 >= EYES.blind_px) return press(" ");
    if (document.body.dataset.step !== "stage" || !window.sitter.answering) { phase = "elsewhere"; return; }
    if (!document.getElementById("fixation").hidden) {
      if (phase === "looking") { first = light.map((v) => v / share); phase = "between"; }
      if (phase === "ready" || phase === "between") return;
      phase = "ready"; first = null;
      const [codes, n] = pixels();
      if (size !== n) { rows = EYES.shapes ? null : templates(n); size = n; }
      grey = 0;
      for (let i = 0; i < n * n; i++) grey += EYES.light[codes[4 * i]] / (n * n);
      return;
    }
    if (phase === "ready" || phase === "between") { light = new Float64Array(size * size); frames = share = 0; due = t + 500; phase = "looking"; }
    if (phase === "looking" && t < due) {
      const [codes] = pixels();
      for (let i = 0; i < light.length; i++) light[i] += EYES.light[codes[4 * i]];
      share += envelope(t - (due - 500)); frames += 1;
    } else if (phase === "looking" && !(EYES.internal !== undefined && !first)) {
      key = decide();
      phase = "answering";
      // The page draws grey until the answer, which nobody needs to see.
      due = t + EYES.answer_ms; t = due - EYES.frame_ms;
    } else if (phase === "answering" && t >= due) { phase = "answered"; press(key); }
  }
  window.requestAnimationFrame = (f) => setTimeout(() => { t += EYES.frame_ms; f(t); watch(); }, window.sitter.answering ? 0 : EYES.frame_ms);
  return 1;
}

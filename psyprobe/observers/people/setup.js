// Consent and calibration: each step is sent as soon as it is done, so that what is wrong is said where it is mended.
async function consent() {
  show("consent");
  for (;;) { await pressed("agreed"); if (at("agree").checked) return; complain(TEXT.agree); }
}
// Repeats a step until the server takes it, with all that came before.
async function taken(known, step) {
  for (;;) {
    const values = { ...known, ...await step() };
    try { return [values, await send("calibrate", { ...values, ...screenNow(), period })]; } catch (error) { complain(error.message); }
  }
}
async function calibrate() {
  await refresh();
  let known = {}, told;
  [known] = await taken(known, async () => ({ cards: [await card(1, 230), await card(2, 470)] }));
  [known] = await taken(known, () => distance(known.cards));
  [known, told] = await taken(known, luminance);
  return told;
}

async function card(number, start) {
  show("measure");
  at("turn").textContent = fill(TEXT.turn, { NUMBER: number });
  const width = at("width"), fit = () => { at("card").style.width = `${width.value}px`; at("card").style.height = `${width.value * 53.98 / 85.6}px`; };
  width.value = start; width.oninput = fit; fit();
  await pressed("fitted");
  return Number(width.value);
}

async function distance(cards) {
  for (;;) {
    show("distance");
    at("millimetres").oninput = () => { at("byTape").checked = true; };
    const choose = () => { at("checking").hidden = at("bySpot").checked; };
    document.querySelectorAll("[name=by]").forEach((each) => { each.onchange = choose; });
    choose();
    await pressed("measured");
    const spot = at("bySpot").checked, values = { distance_method: spot ? "blind_spot" : "tape" };
    if (!spot) values.distance = Number(at("millimetres").value);
    if (!spot && !at("check").checked) return values;
    const offsets = await blindSpot((cards[0] + cards[1]) / 2 / 85.6);
    if (offsets) return { ...values, offsets };
  }
}
// Where a dot vanishes, CSS px from the cross, five times; null where it does not.
async function blindSpot(pxPerMm) {
  const offsets = [];
  let missed = false;
  for (let n = 1; n <= 5 && !missed; n++) {
    show("blind");
    at("sweep").textContent = fill(TEXT.sweep, { NUMBER: n });
    at("move").hidden = false; at("vanished").hidden = true;
    await pressed("move");
    at("move").hidden = true; at("vanished").hidden = false; at("spot").hidden = false;
    at("vanished").focus();
    const offset = await sweep(30 * pxPerMm);
    at("spot").hidden = true;
    if (offset) offsets.push(offset); else missed = true;
  }
  if (missed) { complain(TEXT.missed); show("distance"); at("measured").focus(); await pressed("measured"); return null; }
  return offsets;
}
function sweep(speed) {
  const field = at("field").getBoundingClientRect(), cross = at("cross").getBoundingClientRect(), from = cross.left + cross.width / 2 - field.left;
  return new Promise((go) => {
    let begun = null, last = 0, over = false;
    const end = (value) => { over = true; removeEventListener("keydown", key); at("vanished").onclick = null; go(value); };
    const key = (event) => { if (event.key === " " && !event.repeat) { event.preventDefault(); end(last); } };
    addEventListener("keydown", key);
    at("vanished").onclick = () => end(last);
    function tick(t) {
      if (over) return;
      begun ??= t;
      last = speed * (t - begun) / 1000;
      at("spot").style.left = `${from - last}px`;
      if (last > from) return end(null);
      requestAnimationFrame(tick);
    }
    requestAnimationFrame(tick);
  });
}

async function luminance() {
  show("luminance");
  at("known").hidden = !facts.display; at("light").hidden = facts.display;
  at("peak").oninput = () => { at("byValue").checked = true; };
  for (;;) { await pressed("lit"); if (at("off").checked) break; complain(TEXT.off); }
  const values = { light: at("byValue").checked ? "value" : "guess", peak: Number(at("peak").value) };
  return at("byEye").checked && !facts.display ? { ...values, matches: await byEye() } : values;
}
// Three shares of bright lines from two sides, twice: pairs of share and drive.
async function byEye() {
  const settings = [0.25, 0.5, 0.75].flatMap((share) => [[share, 0.25], [share, 0.95]]), matches = [];
  for (const [share, start] of [...settings, ...settings.reverse()]) {
    show("gamma");
    at("turnOfMatch").textContent = fill(TEXT.match, { NUMBER: matches.length + 1 });
    const drive = at("drive"), side = 256;
    drive.value = Math.round(255 * start);
    drive.oninput = () => stripes(side, share, Number(drive.value));
    if (!stripes(side, share, Number(drive.value))) { complain(TEXT.resampled); return []; }
    drive.focus();
    await pressed("matched");
    matches.push([share, Number(drive.value) / 255]);
  }
  return matches;
}
// Lines one device pixel high, lying, since along a row a panel blurs; false where the canvas holds other codes.
function stripes(side, share, code) {
  const canvas = at("stripes"), context = canvas.getContext("2d", { willReadFrequently: true }), ratio = devicePixelRatio, n = Math.round(side * ratio), image = new ImageData(n, n);
  canvas.width = canvas.height = n;
  canvas.style.width = canvas.style.height = `${n / ratio}px`;
  // On whole device pixels of the screen, else the compositor would average lines.
  const box = at("match").getBoundingClientRect();
  canvas.style.left = `${Math.round(box.left * ratio) / ratio - box.left}px`;
  canvas.style.top = `${Math.round(box.top * ratio) / ratio - box.top}px`;
  const period = share === 0.5 ? 2 : 4, bright = Math.round(share * period), inside = (i) => i >= n / 4 && i < 3 * n / 4;
  for (let y = 0; y < n; y++) for (let x = 0; x < n; x++) {
    const value = inside(x) && inside(y) ? code : y % period < bright ? 255 : 0;
    image.data.set([value, value, value, 255], 4 * (y * n + x));
  }
  context.putImageData(image, 0, 0);
  return context.getImageData(0, 0, n, n).data.every((each, i) => each === image.data[i]);
}

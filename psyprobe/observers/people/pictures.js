// Pictures of a benchmark: one question after the other, each as long as one likes.
const TOO_EARLY = 150;
// What was written of an answer when its picture was put away.
let draft = { number: 0, text: "" };

async function seePictures(state) {
  at("read").textContent = facts.judge ? fill(TEXT.readByJudge, { JUDGE: facts.judge }) : TEXT.read;
  // Where a judge has yet to read them, nothing is asked of who has agreed and answered.
  if (!state && facts.left) {
    if (facts.resumed) goesOn(TEXT.resumedPictures, { NUMBER: facts.resumed.number });
    await consent();
  }
  if (!state || state.phase !== "done") {
    if (facts.left) {
      show("how");
      await pressed("look");
      at("look").disabled = true; at("look").textContent = TEXT.starting;
    } else show("reading");
    state = state ? await send("state") : await send("begin", { consent: true, browser: browserName(), screen: { ...screenNow(), inner_width: innerWidth, inner_height: innerHeight } });
  }
  while (state.phase === "trial" || state.phase === "wait") {
    if (state.phase === "wait") { if (state.last) show("reading"); state = await patient("state"); continue; }
    const told = await looking(state), next = patient("answer", { number: state.number, attempt: state.attempt, ...told });
    next.catch(() => {});
    // The reply to the last answer waits for the judge.
    if (!told.why && state.number === state.total) show("reading");
    if (told.why === "paused" || told.why === "hidden") await restFromPictures();
    state = await next;
  }
  if (state.phase === "done") { show("thanks"); at("answered").textContent = fill(TEXT.answered, { COUNT: state.count, STORE: facts.store }); }
  return state;
}
// Shows one question, and waits for its answer: what it is, or why the attempt does not count.
async function looking({ number, attempt, total, images, text, words, labels, longest }) {
  show("looking");
  at("place").textContent = fill(TEXT.trial, { NUMBER: number, TOTAL: total });
  at("progress").max = total; at("progress").value = number - 1;
  const shown = images.map((source, i) => Object.assign(document.createElement("img"), { src: source, alt: fill(TEXT.picture, { NUMBER: i + 1, COUNT: images.length }) }));
  at("pictures").replaceChildren(...shown.map((image) => {
    const figure = document.createElement("figure");
    figure.append(image);
    if (shown.length > 1) figure.append(Object.assign(document.createElement("figcaption"), { textContent: image.alt }));
    return figure;
  }));
  at("question").textContent = text;
  const buttons = words.map((word, i) => answerButton(word, labels[i])), written = at("written");
  at("answers").replaceChildren(...buttons);
  at("answers").hidden = !words.length; at("own").hidden = words.length > 0;
  at("answers").classList.toggle("short", labels.every((label) => !label));
  written.maxLength = longest; written.value = draft.number === number ? draft.text : "";
  await Promise.all(shown.map((image) => image.decode()));
  const [begun] = await frames(1);
  document.body.dataset.trial = `${number}.${attempt}`;
  if (!words.length) written.focus({ preventScroll: true });
  return new Promise((go) => {
    const scales = () => shown.map((image) => Math.min(1, image.getBoundingClientRect().width / image.naturalWidth));
    function end(more, when) {
      removeEventListener("keydown", key); document.removeEventListener("visibilitychange", away);
      draft = { number, text: more.why ? written.value : "" };
      go({ reaction_ms: Math.max(0, when - begun), choice: null, ...more });
    }
    function answer(choice, when, name) {
      end(when - begun < TOO_EARLY ? { why: "too early" } : { choice, key: name, scales: scales() }, when);
    }
    function own(when, name) { if (written.value.trim()) answer(written.value, when, name); }
    function key(event) {
      if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (event.key === "Escape") return end({ why: "paused" }, event.timeStamp);
      if (!words.length && document.activeElement === written) {
        if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); own(event.timeStamp, event.key); }
        return;
      }
      const place = words.findIndex((word) => letterOf(word) === event.key.toLowerCase());
      if (place >= 0) { event.preventDefault(); answer(words[place], event.timeStamp, event.key); }
      else if (event.key.toLowerCase() === "p") { event.preventDefault(); end({ why: "paused" }, event.timeStamp); }
    }
    function away() { if (document.hidden) end({ why: "hidden" }, performance.now()); }
    addEventListener("keydown", key);
    document.addEventListener("visibilitychange", away);
    buttons.forEach((button, i) => { button.onclick = (event) => answer(words[i], event.timeStamp, "touch"); });
    at("written_send").onclick = (event) => own(event.timeStamp, "touch");
    at("stop").onclick = (event) => end({ why: "paused" }, event.timeStamp);
    // Who went away while the picture was being read.
    away();
  });
}
const letterOf = (word) => word[0].toLowerCase();
function answerButton(word, label) {
  const button = document.createElement("button"), letter = document.createElement("kbd");
  letter.textContent = letterOf(word).toUpperCase();
  // As text and never as HTML: questions come from models.
  button.append(letter, label || (word.length > 1 ? word : ""));
  button.setAttribute("aria-keyshortcuts", letterOf(word));
  button.dataset.word = word;
  return button;
}
async function restFromPictures() {
  show("pause");
  at("pauseTitle").textContent = TEXT.paused;
  await new Promise((go) => { at("on").onclick = go; at("leave").onclick = stop; });
}

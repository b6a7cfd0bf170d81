"""Build a set: every item goes through every step, and nothing is asked or drawn twice.

A step is asked of all items before the next one, so that a server has many questions at once.
Replies are kept in the set's store as they come, word for word; what cannot be read leaves its item
failed at that step, and the others go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import read_image
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest, json_text, make_folder, write_text
from psyprobe.files.terminal import progress_bar
from psyprobe.observers.chat.protocol import AnswerObserver, Decoding
from psyprobe.tasks.items import ItemQuestion, ask_items
from psyprobe.tasks.mvp_construction import steps
from psyprobe.tasks.mvp_construction.manipulation import (
    REGIONS,
    Box,
    Plan,
    Tools,
    drawn_before,
    manipulate,
    write_pair,
)
from psyprobe.tasks.mvp_construction.steps import STEPS, Item, Step

#: Changes when a step is done differently, which does it anew.
VERSION = "mvp-construction 1"
#: Temperature of the captioner in the paper, which gives none for the other model.
TEMPERATURE = 0.1
_MAX_TOKENS = 1500


@dataclass(frozen=True)
class BuildReport(Recorded):
    """How far a set has come."""

    #: Next step of each item, or why it failed, by number.
    states: Mapping[int, str]
    #: Items that stand failed, by step.
    failed: Mapping[str, int]
    #: Rows of the question file.
    questions: int
    #: Tools that ran with random weights; their images show only that the machinery works.
    random_weights: tuple[str, ...]

    def __str__(self) -> str:
        complete = sum(state == "complete" for state in self.states.values())
        lines = [
            f"{complete} of {len(self.states)} photographs are image pairs with "
            f"{self.questions} questions"
        ]
        for step, count in self.failed.items():
            lines.append(f"{count} failed at {step}; ask again with --retry")
        for number, state in self.states.items():
            if state != "complete":
                lines.append(f"  {number}: {state}")
        for name in self.random_weights:
            lines.append(f"random weights: {name}; its images only show that it runs")
        return "\n".join(lines)


def build_set(
    photographs: str | Path,
    output: str | Path,
    *,
    captioner: AnswerObserver,
    chat: AnswerObserver,
    tools: Tools,
    offered: Sequence[str] = (),
    region: str = "box",
    seed: int = 0,
    retry: bool = False,
    progress: bool | None = None,
) -> BuildReport:
    """Build image pairs with questions from photographs, or resume a set begun before.

    Parameters
    ----------
    photographs : str or Path
        Folder of images.
    output : str or Path
        Folder of the set; steps that were done with the same inputs are not done again.
    captioner : AnswerObserver
        Looks at photographs: captions them with boxes and answers short questions.
    chat : AnswerObserver
        Works in words alone: picks the subject, proposes the manipulation, writes the questions.
    tools : Tools
        Tools of the image steps.
    offered : sequence of str
        Codes of the categories that may be proposed; all thirteen without.
    region : {"box", "mask"}
        Shape in which a part is cut out.
    seed : int
        Seed of every draw; each item and step has its own, derived from it.
    retry : bool
        Try failed steps again: the model is told why its reply could not be used, and other draws
        are made.
    progress : bool, optional
        Whether to show progress bars.

    Raises
    ------
    InputError
        There are no photographs, one cannot be read as it is, or a category or region is unknown.
    """
    for code in offered:
        if code not in steps.categories():
            raise unknown_name("category", code, steps.categories())
    if region not in REGIONS:
        raise unknown_name("region of a part", region, REGIONS)
    kinds = [steps.categories()[code] for code in (offered or steps.categories())]
    folder = make_folder(output)
    items = steps.gather_items(photographs, folder)
    for item in items:
        # Before any question, so that no image fails after an hour of them.
        read_image(item.photograph)
        if retry:
            _record_failure(item, folder)
    for i, name in enumerate(STEPS):
        ready = [item for item in items if all(item.done(step) for step in STEPS[:i])]
        if name == "image":
            _draw(ready, folder, tools, region, seed, progress)
        else:
            step = steps.LANGUAGE_STEPS[name]
            _ask_step(
                ready, folder, step, captioner if step.looks else chat, kinds, progress
            )
    return _finish(items, folder, {"captioner": captioner, "chat": chat}, tools, seed)


def _record_failure(item: Item, folder: Path) -> None:
    """Move a failed step to the item's failures, so that it is tried again."""
    for name in STEPS:
        if name in item.steps and not item.done(name):
            item.failures.setdefault(name, []).append(item.steps.pop(name).reason)
            steps.write_item(folder, item)
            return


def _settle(item: Item, name: str, step: Step, folder: Path) -> None:
    """Record the outcome of a step; a failure discards the steps that depend on it."""
    item.steps[name] = step
    if step.value is None:
        for later in STEPS[STEPS.index(name) + 1 :]:
            item.steps.pop(later, None)
    steps.write_item(folder, item)


def _ask_step(
    items: Sequence[Item],
    folder: Path,
    step: steps.LanguageStep,
    observer: AnswerObserver,
    kinds: Sequence[steps.Category],
    progress: bool | None,
) -> None:
    """Ask an observer a step of all items, and keep each reply that can be read."""
    open_steps = []
    for item in items:
        failures = item.failures.get(step.name, [])
        prompt = steps.fill(step.name, steps.prompt_values(step.name, item, kinds))
        if failures:
            prompt += "\n" + steps.fill("again", {"reason": failures[-1]})
        question = ItemQuestion(
            name=str(item.number),
            prompt=prompt,
            images=((item.photograph, item.sha256),) if step.looks else (),
            decoding=Decoding(
                TEMPERATURE, _MAX_TOKENS, logprobs=False, seed=len(failures)
            ),
        )
        image = item.sha256 if step.looks else ""
        key = digest([VERSION, question.request, image, observer.card.digest])
        if step.name not in item.steps or item.steps[step.name].key != key:
            open_steps.append((item, question, key))
    if not open_steps:
        return
    answers = ask_items(
        [question for _, question, _ in open_steps],
        observer,
        version=VERSION,
        store=folder / "runs.sqlite",
        label=step.name,
        progress=progress,
    )
    for item, question, key in open_steps:
        try:
            limits = steps.reply_limits(step.name, item, kinds)
            reply = answers[question.name].text
            outcome = Step(key, steps.read_reply(reply, step.form, **limits))
        except steps.UnreadReply as error:
            outcome = Step(key, reason=str(error))
        _settle(item, step.name, outcome, folder)


def _draw(
    items: Sequence[Item],
    folder: Path,
    tools: Tools,
    region: str,
    seed: int,
    progress: bool | None,
) -> None:
    """Draw the manipulated images of all items that lack them."""
    pending: list[tuple[Item, Plan, JsonObject]] = []
    for item in items:
        plan = _plan_edit(item, region, seed)
        cards = {name: card.to_dict() for name, card in tools.used(plan).items()}
        key = digest([VERSION, item.sha256, plan.to_dict(), cards])
        step = item.steps.get("image")
        if (
            step is None
            or step.key != key
            or not (step.value is None or drawn_before(folder, item.number, key))
        ):
            account = {
                "key": key,
                "version": VERSION,
                "photograph": Path(item.photograph).name,
                "sha256": item.sha256,
                "category": item.value("proposal")["category"],
                "plan": plan.to_dict(),
                "tools": cards,
                "random_weights": any(
                    card["random_weights"] for card in cards.values()
                ),
            }
            pending.append((item, plan, account))
    with progress_bar(len(pending), progress, "image") as bar:
        for item, plan, account in pending:
            step = _draw_pair(item, plan, account, folder, tools)
            _settle(item, "image", step, folder)
            bar.update()


def _draw_pair(
    item: Item, plan: Plan, account: JsonMapping, folder: Path, tools: Tools
) -> Step:
    """Draw and write the images of one pair, unless the folder holds them."""
    key = account["key"]
    if not drawn_before(folder, item.number, key):
        photograph = read_image(item.photograph)
        try:
            manipulated = manipulate(photograph, plan, tools)
        except InputError as error:
            return Step(key, reason=str(error))
        write_pair(folder, item.number, photograph, manipulated, account)
    return Step(
        key, {"random_weights": account["random_weights"], "editing": plan.editing}
    )


def _plan_edit(item: Item, region: str, seed: int) -> Plan:
    """Collect what an image edit needs: category, texts, boxes, region and seed."""
    proposal = item.value("proposal")
    part = proposal["part"]
    return Plan(
        editing=steps.categories()[proposal["category"]].editing,
        caption=proposal["caption"],
        instruction=proposal["instruction"] or "",
        subject=Box(*steps.subject(item)["box"]),
        part=None if part is None else Box(*steps.parts(item)[part - 1]["box"]),
        region=region,
        seed=_seed(seed, item, "image"),
    )


def _seed(seed: int, item: Item, step: str) -> int:
    """Derive a random seed from a photograph and a step, whatever the order of items."""
    return int(
        digest([seed, item.sha256, step, len(item.failures.get(step, []))])[:8], 16
    )


def _finish(
    items: Sequence[Item], folder: Path, observers: JsonMapping, tools: Tools, seed: int
) -> BuildReport:
    """Write the questions of complete items and the record of the build, and count outcomes."""
    rows = []
    for item in items:
        if item.state == "complete":
            code = item.value("proposal")["category"]
            rows += steps.question_rows(
                item.number,
                code,
                item.value("questions"),
                _seed(seed, item, "questions"),
            )
    cards = {name: tool.card for name, tool in vars(tools).items()}
    build = {
        "version": VERSION,
        "seed": seed,
        **{name: observer.card.to_dict() for name, observer in observers.items()},
        "tools": {name: card.to_dict() for name, card in cards.items()},
    }
    write_text(folder / "questions.json", steps.json_lines(rows))
    write_text(folder / "build.json", json_text(build))
    states = {item.number: item.state for item in items}
    failed = Counter(
        name
        for item in items
        for name, step in item.steps.items()
        if step.value is None
    )
    random_weights = tuple(card.name for card in cards.values() if card.random_weights)
    return BuildReport(states, dict(failed), len(rows), random_weights)

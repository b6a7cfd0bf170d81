"""inspect-ai: our tasks evaluated by it, its logs read here, ours read by it, and its models as
observers."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import child
from item_pages import run_page, write_page
from PIL import Image
from small_runs import QUESTIONS, ran, small_page

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.cli import main
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment
from psyprobe.files.images import decode_image
from psyprobe.observers.chat.protocol import Decoding, eight_bit
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.probes.experiments import load_results
from psyprobe.running.store import Store
from psyprobe.tasks.bridges.turns import questions_of, store_replies
from psyprobe.tasks.mvp_bench.probe import MVP_BENCH

pytest.importorskip(
    "inspect_ai",
    reason="the inspect extra is not installed: pip install 'psyprobe[inspect]'",
)
log = pytest.importorskip("inspect_ai.log")
model = pytest.importorskip("inspect_ai.model")

from psyprobe.observers.chat.inspect_chat import InspectObserver, inspect_card  # noqa: E402
from psyprobe.tasks.bridges.inspect_logs import read_inspect_log, write_inspect_log  # noqa: E402

# Its retries call tenacity in a way that tenacity would rather not be called.
pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated")
SAME = (
    "text",
    "reading",
    "response",
    "contrast",
    "delivered_contrast",
    "prompt",
    "p_yes",
    "tokens_in",
    "tokens_out",
)


@pytest.fixture(scope="module")
def evaluated(page: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of ``inspect eval psyprobe/csf`` with an observer of known truth behind HTTP."""
    folder = tmp_path_factory.mktemp("logs")
    with SimulatedServer(pp.load_observer("simulated:watson-malo")) as server:
        command = [
            sys.executable,
            "-m",
            "inspect_ai",
            "eval",
            "psyprobe/csf",
            "-T",
            f"experiment={page.folder}/small.toml",
        ]
        command += [
            "--model",
            "openai-api/sim/simulated:watson-malo",
            "--display",
            "plain",
            "--log-dir",
            str(folder),
        ]
        # inspect-ai knows installed packages by their metadata, which a checkout on the path would
        # hide.
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONPATH"
        }
        environment |= {"SIM_API_KEY": "none", "SIM_BASE_URL": server.base_url}
        with child(
            command, 240, env=environment, stdout=-1, stderr=-2, text=True, cwd=folder
        ) as process:
            output, _ = process.communicate()
    assert process.returncode == 0, output[-2000:]
    (path,) = folder.glob("*.eval")
    return path


def _same(result: Any, other: Any, names: tuple[str, ...] = SAME) -> None:
    first = trials(result)
    second = trials(other)
    for name in names:
        np.testing.assert_array_equal(
            first[name].values, second[name].values, err_msg=name
        )


def test_a_csf_by_inspect_eval_is_the_csf_of_a_run(
    page: Experiment, store: Store, evaluated: Path
) -> None:
    """The observer behind it is the same, so its replies, and every sensitivity, are those of a run
    here."""
    (imported,) = load_results(store)
    replies = read_inspect_log(
        evaluated, small_page(page.folder, **{"asking.readout": "text"})
    )
    assert replies.card == inspect_card("openai-api/sim/simulated:watson-malo")
    with Store(None) as other:
        assert store_replies(replies, other, progress=False) == (QUESTIONS, 0)
        (result,) = load_results(other)
        columns = (
            "text",
            "reading",
            "response",
            "contrast",
            "delivered_contrast",
            "prompt",
        )
        _same(imported, result, columns)
        points = [
            [point.sensitivity for point in pp.score(result_of_either).curve]
            for result_of_either in (imported, result)
        ]
        assert points[0] == points[1] and all(
            sensitivity > 1 for sensitivity in points[0]
        )
        pp.plot(result)
    eval_log = log.read_eval_log(str(evaluated))
    assert eval_log.status == "success" and eval_log.eval.task == "psyprobe/csf"
    (score,) = eval_log.results.scores
    assert score.metrics["sensitivity at 2 cpd"].value == pytest.approx(points[0][0])
    # Each sample is read as it is read here, and knows what would be right.
    for sample in eval_log.samples:
        (mark,) = sample.scores.values()
        assert mark.answer in ("yes", "no") and sample.target in ("yes", "no")
        assert (mark.value == 1) == (
            (mark.answer == "yes") == (sample.metadata["prompt"] == "seen")
        )


def test_the_command_reads_a_log(
    page: Experiment, evaluated: Path, tmp_path: Path, capsys: Any
) -> None:
    stored = str(tmp_path / "runs.sqlite")
    command = ["store", "import", "--as", "inspect", str(evaluated), "-o", stored]
    assert main(command) == 2
    assert "small_noise.toml" in capsys.readouterr().err
    assert main([*command, "--experiment", str(page.folder / "small.toml")]) == 0
    assert (
        f"{QUESTIONS} answers of inspect:openai-api/sim/simulated:watson-malo in small"
        in capsys.readouterr().out
    )
    assert main(["score", stored]) == 0
    assert (
        main(
            ["store", "export", "--as", "inspect", stored, "-o", str(tmp_path / "logs")]
        )
        == 2
    )
    assert (
        main([*command, "--observer", "a"]) == 2
        and "says who was asked" in capsys.readouterr().err
    )


@pytest.mark.parametrize("ending", [".eval", ".json"])
def test_a_run_as_a_log_and_back(
    page: Experiment, store: Store, ending: str, tmp_path: Path
) -> None:
    record, path = store.runs()[0], tmp_path / "run.eval"
    assert write_inspect_log(record, store, path, page.folder) == QUESTIONS
    if ending == ".json":
        path = tmp_path / "run.json"
        log.write_eval_log(
            log.read_eval_log(str(tmp_path / "run.eval")), str(path), format="json"
        )
    eval_log = log.read_eval_log(str(path), resolve_attachments=True)
    (imported,) = load_results(store)
    assert eval_log.results.completed_samples == len(eval_log.samples) == QUESTIONS
    assert eval_log.eval.model == "simulated/watson-malo"
    usage = eval_log.stats.model_usage["simulated/watson-malo"]
    assert (
        usage.input_tokens == trials(imported)["tokens_in"].sum()
        and usage.output_tokens == trials(imported)["tokens_out"].sum()
    )
    # Their reader sorts samples by id; ours are in the order of asking.
    samples = {sample.id: sample for sample in eval_log.samples}
    turns = list(questions_of(page, inspect_card("a/b")))
    in_order = [samples[turn.id] for turn in turns]
    assert [sample.output.completion for sample in in_order] == trials(imported)[
        "text"
    ].values.tolist()
    responses = trials(imported)["response"].values.tolist()
    assert [sample.scores["reply_reader"].value for sample in in_order] == responses
    # The image in it is the one that was shown.
    for turn in turns[:3]:
        image = samples[turn.id].input[0].content[0].image
        codes = decode_image(base64.b64decode(image.partition(",")[2]), "a sample")
        np.testing.assert_array_equal(codes, eight_bit(turn.inquiry.images[0]))
    with Store(None) as other:
        assert store_replies(read_inspect_log(path, page), other, progress=False) == (
            QUESTIONS,
            0,
        )
        assert load_results(other)[0].drop_attrs().identical(imported.drop_attrs())


def test_first_tokens_thinking_and_ends_come_back(
    page: Experiment, tmp_path: Path
) -> None:
    """With probabilities, as the simulated observer gives them."""
    probable = small_page(tmp_path, **{"asking.readout": "p_yes"})
    with Store(None) as store, Store(None) as other:
        record = ran(store, probable)
        write_inspect_log(record, store, tmp_path / "run.eval", tmp_path)
        replies = read_inspect_log(tmp_path / "run.eval", probable)
        store_replies(replies, other, progress=False)
        imported, result = (load_results(path)[0] for path in (store, other))
        assert np.isfinite(trials(imported)["p_yes"]).all()
        # Whether the list of tokens was whole is ours alone, and comes back too.
        _same(imported, result, (*SAME, "logit", "answer_mass"))


def test_benchmark_items_have_samples_and_marks(tmp_path: Path) -> None:
    image = np.zeros((16, 16, 3), np.uint8)
    lines = []
    for number, (kind, answer) in enumerate((("s", "yes"), ("e", "no"))):
        Image.fromarray(image + number).save(tmp_path / f"1_{kind}.png")
        question = {
            "question_id": number,
            "id": 1,
            "image": f"1_{kind}.png",
            "type": f"y/n-{kind}",
            "level": "low",
        }
        lines.append(
            {
                **question,
                "question": "Is it black?\nPlease answer yes or no.",
                "answer": answer,
            }
        )
    (tmp_path / "questions.json").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    page = write_page(tmp_path / "bench.toml", "mvp_bench", tmp_path, parser="rule")
    with Store(None) as store:
        result = run_page(
            page, pp.observer(lambda images, prompt: "Yes", name="yes", bits=8), store
        )
        assert list(MVP_BENCH.marks(result).values()) == [1.0, 0.0]
        write_inspect_log(store.runs()[0], store, tmp_path / "run.eval", tmp_path)
    eval_log = log.read_eval_log(str(tmp_path / "run.eval"))
    samples = sorted(eval_log.samples, key=lambda sample: sample.metadata["item"])
    assert [sample.scores["reply_reader"].value for sample in samples] == [1.0, 0.0]
    with Store(None) as store:
        assert store_replies(
            read_inspect_log(tmp_path / "run.eval"), store, progress=False
        ) == (
            2,
            0,
        )
        assert MVP_BENCH.marks(load_results(store)[0]) == MVP_BENCH.marks(result)


def test_what_is_no_log_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"no zip")
    with pytest.raises(InputError, match="is no log of inspect-ai"):
        read_inspect_log(tmp_path / "a.eval")
    spec = log.EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="other",
        dataset=log.EvalDataset(sample_ids=[]),
        model="a/b",
        config=log.EvalConfig(),
    )
    log.write_eval_log(log.EvalLog(eval=spec, samples=[]), str(tmp_path / "b.json"))
    with pytest.raises(InputError, match="of the task 'other', and none of psyprobe's"):
        read_inspect_log(tmp_path / "b.json")


def _output(text: str) -> Any:
    output = model.ModelOutput.from_content("mock", text)
    output.usage = model.ModelUsage(input_tokens=7, output_tokens=2, total_tokens=9)
    return output


def test_a_model_of_inspect_ai_is_an_observer() -> None:
    requests = []

    def answer(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        requests.append((messages, config))
        return _output("Yes, there is.")

    observer = InspectObserver("mockllm/model", custom_outputs=answer, concurrency=3)
    image = np.random.default_rng(1).integers(0, 256, (8, 8, 3)) / 255
    model_answer = observer.answer(
        [image], "Is it?", system="Be brief.", decoding=Decoding(max_tokens=5, seed=3)
    )
    assert (
        model_answer.text,
        model_answer.tokens_in,
        model_answer.tokens_out,
        model_answer.server,
    ) == (
        "Yes, there is.",
        7,
        2,
        "inspect-ai",
    )
    (system, user), config = requests[0]
    assert system.text == "Be brief." and user.text == "Is it?"
    codes = decode_image(
        base64.b64decode(user.content[0].image.partition(",")[2]), "sent"
    )
    np.testing.assert_array_equal(codes, eight_bit(image))
    assert (
        config.max_tokens,
        config.seed,
        config.temperature,
        config.top_logprobs,
    ) == (
        5,
        3,
        0.0,
        20,
    )


def test_a_run_with_it(page: Experiment) -> None:
    observer = InspectObserver(
        "mockllm/model", custom_outputs=lambda *_: _output("No"), logprobs=False
    )
    result = pp.run(page, observer, progress=False)
    assert (
        set(trials(result)["text"].values) == {"No"}
        and result.attrs["observer"] == "inspect:mockllm/model"
    )


def test_what_it_cannot_be_asked() -> None:
    with pytest.raises(PsyprobeError, match="inspect-ai has no 'nobody/knows'"):
        pp.load_observer("inspect:nobody/knows")
    with pytest.raises(InputError, match="input_size 0 px"):
        pp.load_observer("inspect:mockllm/model", input_size=0)
    observer = InspectObserver("mockllm/model", custom_outputs=lambda *_: _output(""))
    with pytest.raises(InputError, match=r"no asking\.response_format"):
        observer.answer(
            [], "Is it?", decoding=Decoding(response_format={"type": "json_object"})
        )

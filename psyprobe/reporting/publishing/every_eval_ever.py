"""Export runs as records of Every Eval Ever, schema 0.3.0: each as a whole, those in words also
answer by answer.

Images, curves and log-probabilities have no field there: digests and text stand for them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from psyprobe.analysis.score import (
    OBSERVER,
    Entry,
    Metric,
    Score,
    without_mathematics,
)
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import json_text, make_folder, plain_value, write_text
from psyprobe.observers.chat.protocol import Answer
from psyprobe.probes.results import score_layers
from psyprobe.probes.words.answer_table import Read, read_answer
from psyprobe.reporting.publishing.check import check_files, read_registry_page
from psyprobe.reporting.publishing.derive import RecordingStore
from psyprobe.reporting.publishing.identity import run_path, slug
from psyprobe.reporting.publishing.index import read_retractions
from psyprobe.reporting.publishing.items import item_contents
from psyprobe.reporting.publishing.publish import (
    Published,
    Terms,
    describe_run,
    grouped_runs,
    refuse_random_weights,
)
from psyprobe.reporting.publishing.scoring import SHAPE, load_records, shape_entry
from psyprobe.running.protocol import DIGEST_DIGITS, Content, RunRecord, labelled
from psyprobe.running.registry_run import (
    ANSWERS_FILE,
    PAGE_FILE,
    is_registry,
    load_run,
    run_folders,
    unpack,
)
from psyprobe.running.store import Store
from psyprobe.running.task import Task

_SCHEMA = "0.3.0"
_INFINITY = "Infinity"
#: Loaders of observers whose names end in the address of a model on a hub, OWNER/MODEL.
_HUBS = (
    "diffusers",
    "sam2",
    "timm",
    "transformers",
    "transformers_vision",
    "vit_mae",
)
#: Loaders of files that lie on the disk of whoever ran them.
_OWN_FILES = ("torch", "onnx")
#: What is told of a trial, and of the images of its answer.
_TRIAL = ("contrast", "prompt", "repeat", "order", "image_seed")
_DELIVERED = ("delivered_contrast", "coherent_gain", "total_contrast")
#: Packages that compute a model, the first of which a run names as its engine.
_ENGINES = ("vllm", "transformers", "onnxruntime", "torch")


@dataclass(frozen=True)
class _Source:
    """A run with all that its record tells."""

    run: JsonMapping
    records: Sequence[RunRecord]
    #: Holds the answers of this run alone, without the run.
    store: Store
    #: Name of the registry or file that it comes from.
    name: str


def export_records(
    source: str | Path,
    output: str | Path,
    terms: Terms | None = None,
    *,
    people: bool = False,
) -> list[Published]:
    """Export the runs of a registry or a store as records of Every Eval Ever.

    Scores are computed from the answers. A record is the same bytes at each export.

    Parameters
    ----------
    source : str or Path
        The folder of a registry, or a store.
    output : str or Path
        The folder that gets ``data/psyprobe.EXPERIMENT/DEVELOPER/MODEL/UUID.json``.
    terms : Terms, optional
        Of a store, who publishes on which terms; a registry says so itself.
    people : bool, optional
        Export runs of people too, under the name of a model, psyprobe-people/CODE.

    Returns
    -------
    list of Published
        Where each run's record lies, or why it was left out.

    Raises
    ------
    InputError
        The source is neither, or a store comes without terms.
    """
    root = make_folder(output)
    if is_registry(source):
        return list(_export_registry(Path(source), root, people))
    if terms is None or not terms.contributor:
        raise InputError(
            f"{source} is a store, which does not say who publishes; give --contributor"
        )
    return list(_export_store(Path(source), root, terms, people))


def _export_registry(registry: Path, root: Path, people: bool) -> Iterator[Published]:
    """Export the sound runs of a registry."""
    page = read_registry_page(registry)
    name = str(page.get("name", registry.resolve().name))
    retractions = {run: reason for run, reason, _ in read_retractions(registry)}
    for folder in run_folders(registry):
        observer, _, experiment, number = folder.parts[-4:]
        try:
            run, files = check_files(folder, page)
            if run["status"] == "failed":
                raise InputError(f"it failed: {run['failure']['message']}")
            if number in retractions:
                raise InputError(f"it was retracted: {retractions[number]}")
            text = files[PAGE_FILE].decode()
            path = _export(run, text, unpack(files[ANSWERS_FILE]), name, root, people)
            yield Published(experiment, observer, path)
        except PsyprobeError as error:
            yield Published(experiment, observer, reason=str(error))


def _export_store(
    path: Path, root: Path, terms: Terms, people: bool
) -> Iterator[Published]:
    """Export the finished runs of a store."""
    with Store(path, create=False) as stored, RecordingStore() as copy:
        stored.database.copy_answers(copy.database)
        for records in grouped_runs(stored):
            first = records[0]
            names = (first.experiment, labelled(first.observer, first.label))
            try:
                refuse_random_weights(first, terms)
                run, unpacked = describe_run(records, copy, terms, terms.licence)
                text = first.experiment_toml
                items = item_contents(records, copy)
                exported = _export(run, text, unpacked, path.name, root, people, items)
                yield Published(*names, exported)
            except PsyprobeError as error:
                yield Published(*names, reason=str(error))


def _export(
    run: JsonMapping,
    page: str,
    unpacked: bytes,
    name: str,
    root: Path,
    people: bool,
    items: Sequence[Content] = (),
) -> str:
    """Write the record of a run, and those of its answers, and return the path of the first.

    Items of a benchmark, which are withheld, are needed for its scores alone.
    """
    is_person = run["observer"]["kind"].startswith("person")
    if is_person and not people:
        raise InputError(
            "Every Eval Ever has models and no people; to export them under the name of a model, "
            "give --people"
        )
    with Store(None) as store:
        store.add_contents(items)
        source = _Source(run, load_run(run, page, unpacked, store), store, name)
        record, folder = _build_record(source)
        # Replies of people may hold more than an answer, and items of benchmarks have owners.
        rows = [] if is_person else list(_build_rows(source, record))
    identity = UUID(
        bytes=sha256(run["answers"]["sha256"].encode()).digest()[:16], version=4
    )
    make_folder(root / folder)
    if rows:
        content = "".join(f"{_line(row)}\n" for row in rows)
        samples = f"{folder}/{identity}_samples.jsonl"
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": samples,
            "hash_algorithm": "sha256",
            "checksum": sha256(content.encode()).hexdigest(),
            "total_rows": len(rows),
        }
        write_text(root / samples, content)
    path = f"{folder}/{identity}.json"
    write_text(root / path, json_text(record))
    return path


def _build_record(source: _Source) -> tuple[JsonObject, str]:
    """Build the record of a run as a whole, and name its folder."""
    run = source.run
    _, _, experiment, number = run_path(run)
    model = _build_model(run)
    contributor = run["contributor"]
    finished = str(run["when"]["finished"])
    results = list(_build_results(source, experiment))
    if not results:
        raise InputError("it has no score, and a record needs one")
    organization = {
        "source_name": source.name,
        "source_type": "documentation"
        if run["source"]["kind"] == "published"
        else "evaluation_run",
        "source_organization_name": contributor["name"],
        "evaluator_relationship": contributor.get("relation", "third_party"),
        "additional_details": _texts(
            {
                "run": number,
                "label": run.get("label"),
                "answers_sha256": run["answers"]["sha256"],
                "licence": run["licence"],
                "kind": run["observer"]["kind"],
            }
        ),
    }
    if contributor.get("contact"):
        organization["source_organization_url"] = contributor["contact"]
    record = {
        "schema_version": _SCHEMA,
        "evaluation_id": f"psyprobe.{experiment}/{model['id']}/{number}",
        "evaluation_timestamp": finished,
        "retrieved_timestamp": f"{datetime.fromisoformat(finished).timestamp():.0f}",
        "source_metadata": organization,
        "eval_library": {
            "name": "psyprobe",
            "version": run["software"]["psyprobe"],
            "additional_details": _texts(run["software"]),
        },
        "model_info": model,
        "evaluation_results": results,
    }
    return record, f"data/psyprobe.{experiment}/{model['id']}"


def _build_model(run: JsonMapping) -> JsonObject:
    """Build what a record says of the observer."""
    observer = run["observer"]
    card = observer["card"]
    served = [origin["served"] for origin in run["origins"] if origin["served"]]
    software = run["software"] | (
        run["origins"][0]["software"] if run["origins"] else {}
    )
    developer, model = _name_model(observer)
    details = {
        "deployment_type": _deployment(card),
        "model_availability": _availability(card),
        "card_digest": observer["digest"],
        "weights_sha256": card.get("weights_digest"),
        "revision": observer["revision"],
        "served": sorted({entry.get("model", "") for entry in served}),
        "fingerprints": sorted({entry.get("fingerprint", "") for entry in served}),
        "input": card.get("input"),
        "layers": card.get("features"),
        "dtype": card.get("dtype"),
        "random_weights": observer["random_weights"],
    }
    info: JsonObject = {
        "name": observer["name"],
        "id": f"{developer}/{model}",
        "developer": developer,
        "additional_details": _texts(details),
    }
    engine = next((name for name in _ENGINES if name in software), None)
    if engine is not None and not served:
        info["inference_engine"] = {"name": engine, "version": software[engine]}
    return info


def _name_model(observer: JsonMapping) -> tuple[str, str]:
    """Name developer and model as on the hub that has it; else the kind of observer stands first.

    Examples
    --------
    >>> _name_model({"kind": "model", "name": "transformers:Qwen/Qwen3-VL-2B-Instruct"})
    ('Qwen', 'Qwen3-VL-2B-Instruct')
    >>> _name_model({"kind": "model", "name": "packaged:efficientnet_lite0"})
    ('psyprobe-packaged', 'efficientnet_lite0')
    >>> _name_model({"kind": "baseline", "name": "pixels"})
    ('psyprobe-baseline', 'pixels')
    """
    loader, colon, model = str(observer["name"]).partition(":")
    if not colon:
        return f"psyprobe-{slug(observer['kind'])}", slug(loader)
    if str(observer["kind"]).startswith("person"):
        return "psyprobe-people", slug(model)
    if loader == "timm" and "/" not in model:
        return "timm", slug(model)
    if loader in _HUBS and re.fullmatch(r"[\w-][\w.-]*[\w-]/[\w.-]*[\w-]", model):
        owner, _, name = model.partition("/")
        return owner, name
    return f"psyprobe-{slug(loader)}", slug(model)


def _deployment(card: JsonMapping) -> str:
    """Tell who ran the model: whoever asked it, a provider, or unknown."""
    if card.get("device") != "server" or card["options"].get("endpoint") == "loopback":
        return "self_deployed"
    return "unknown"


def _availability(card: JsonMapping) -> str:
    """Tell whether others can have the weights, as far as the card does; never a guess."""
    is_own = card["name"].partition(":")[0] in _OWN_FILES or ".py:" in card["name"]
    return "open_weights" if card.get("weights_digest") and not is_own else "unknown"


def _build_results(source: _Source, experiment: str) -> Iterator[JsonObject]:
    """Iterate over the numbers by which the observer is ranked."""
    run = source.run
    results = load_records(source.records, source.store)
    generation = _build_generation(source)
    judge = source.records[0].layout.get("judge")
    for result in results:
        for score in score_layers(result):
            readout = [name for name in (score.layer, score.measure) if name]
            curve = score.to_dict().get("curve")
            for metric, entry, record in _entries(score):
                config = _build_metric(metric, entry)
                if judge:
                    config["llm_scoring"] = _build_judge(judge)
                values = {
                    **{name: value for name, value in record.items() if name},
                    "flags": entry.flags,
                    "note": entry.note,
                    "layer": score.layer,
                    "measure": score.measure,
                    "curve": curve,
                }
                details: JsonObject = {
                    "score": entry.value,
                    "uncertainty": {"num_samples": run["answers"]["count"]},
                    "details": _texts(values),
                }
                if entry.low is not None and entry.high is not None:
                    details["uncertainty"]["confidence_interval"] = {
                        "lower": entry.low,
                        "upper": entry.high,
                        "confidence_level": score.confidence,
                        "method": f"over {entry.over}" if entry.over else "of psyprobe",
                    }
                yield {
                    "evaluation_result_id": ".".join(
                        [experiment, *readout, metric.name]
                    ),
                    "evaluation_name": ".".join([run["experiment"]["name"], *readout]),
                    "source_data": {
                        "dataset_name": run["experiment"]["name"],
                        "source_type": "other",
                        "additional_details": {
                            "page_sha256": run["page"]["sha256"],
                            "experiment_digest": run["experiment"]["digest"],
                        },
                    },
                    "metric_config": config,
                    "score_details": details,
                    **generation,
                }


def _entries(score: Score) -> Iterator[tuple[Metric, Entry, JsonMapping]]:
    """Iterate over the values by which a score's observer is ranked, with its other numbers."""
    for row in score.rows():
        if row.responder == OBSERVER and row.table:
            entries = dict(row.entries)
            shape = None if entries else shape_entry(row)
            if shape is not None:
                entries[SHAPE] = shape
            for metric, entry in entries.items():
                if entry.value is not None and math.isfinite(entry.value):
                    yield metric, entry, row.record


def _build_metric(metric: Metric, entry: Entry) -> JsonObject:
    """Build what a record says of a metric, with bounds that its values cannot leave."""
    kind = "score"
    low: float | str = 0.0
    high: float | str = _INFINITY
    unit = "1"
    if metric.name == "alignment":
        kind, low, high = "correlation", -1.0, 1.0
    elif metric.full_score != 1:
        kind, high, unit = "accuracy", metric.full_score, "percent"
    elif not metric.more_is_better:
        kind = "rmse" if "rmse" in metric.name else "error"
        unit = "log10" if "log" in metric.label else "1"
    return {
        "metric_id": f"psyprobe.{metric.name}",
        "metric_name": without_mathematics(metric.label),
        "metric_kind": kind,
        "metric_unit": unit,
        "lower_is_better": not metric.more_is_better,
        "score_type": "continuous",
        "min_score": "-Infinity" if (entry.value or 0.0) < 0 and not low else low,
        "max_score": high,
    }


def _build_judge(judge: JsonMapping) -> JsonObject:
    """Build what a record says of a model that judged replies."""
    card = judge["observer"]
    developer, model = _name_model({"kind": "judge", "name": card["name"]})
    details = {
        "deployment_type": _deployment(card),
        "model_availability": _availability(card),
    }
    info = {
        "name": card["name"],
        "id": f"{developer}/{model}",
        "additional_details": details,
    }
    return {
        "judges": [{"model_info": info, "temperature": judge["temperature"]}],
        "input_prompt": _line(judge["prompts"]),
        "additional_details": {"repeats": str(judge["repeats"])},
    }


def _build_generation(source: _Source) -> JsonObject:
    """Build the part of a record on how replies were generated; empty for numbers."""
    record = source.records[0]
    layout = record.layout
    if record.observer_card["ability"] != "answer":
        return {}
    # A judge has requests of its own.
    name = next(
        answered.question.request
        for answered, _ in source.store.all_answers()
        if answered.question.observer == record.observer_digest[:DIGEST_DIGITS]
    )
    request = source.store.contents([name])[name]
    decoding = layout.get("asking") or request["decoding"]
    arguments = {
        "temperature": decoding.get("temperature"),
        "max_tokens": decoding.get("max_tokens") or request["decoding"]["max_tokens"],
    }
    if prompts := layout.get("prompts"):
        arguments["prompt_template"] = "\n".join(
            Prompt.from_dict(prompt).full for prompt in prompts
        )
    return {
        "generation_config": {
            "generation_args": arguments,
            "additional_details": _texts(
                {name: decoding.get(name) for name in ("design", "readout", "seed")}
            ),
        }
    }


def _build_rows(source: _Source, record: JsonMapping) -> Iterator[JsonObject]:
    """Iterate over the answers of a run in words, each as a record of its own."""
    requests = {
        replace(answered.question, label="").key: answered.question.request
        for answered, _ in source.store.all_answers()
    }
    contents = source.store.contents(requests.values())
    for part in source.records:
        layout = part.layout
        if "prompts" not in layout or "trials" not in part.outcome:
            continue
        task = Task.from_dict(layout["task"])
        prompts = {
            prompt.id: prompt for prompt in map(Prompt.from_dict, layout["prompts"])
        }
        store = source.store.with_label(part.label)
        trials = part.outcome["trials"]
        answers = store.iterate_answers([trial["key"] for trial in trials])
        for trial, answer in zip(trials, answers, strict=True):
            prompt, polarity = prompts[trial["prompt"]].interpret(
                trial["order"], task.alternatives
            )
            is_present = trial["contrast"] > 0
            right = prompt.yes[0] if is_present == (polarity > 0) else prompt.no[0]
            request = requests[trial["key"]]
            yield {
                "schema_version": _SCHEMA,
                "evaluation_id": record["evaluation_id"],
                "model_id": record["model_info"]["id"],
                **{
                    name: record["evaluation_results"][0][name]
                    for name in ("evaluation_name", "evaluation_result_id")
                },
                "sample_id": f"{trial['key'][:DIGEST_DIGITS]}.{request[:8]}",
                **_build_row(answer, prompt, right, contents[request]),
                "metadata": _texts(
                    {
                        # Near threshold "no" is no error: what counts is the curve.
                        "psychometric": 1,
                        layout["levels"][0]["name"]: trial["value"],
                        "level_unit": layout["levels"][0]["unit"],
                        **{name: trial[name] for name in _TRIAL},
                        **{name: answer.get(name) for name in _DELIVERED},
                        "stimulus": trial["key"][:DIGEST_DIGITS],
                        "system": contents[request].get("system"),
                        "p_yes": _read(answer, prompt).p_yes,
                    }
                ),
            }


def _read(answer: JsonMapping, prompt: Prompt) -> Read:
    """Read a stored answer by the words of its prompt."""
    reply = answer["reply"]
    return Read("") if reply is None else read_answer(Answer.from_dict(reply), prompt)


def _build_row(
    answer: JsonMapping, prompt: Prompt, right: str, request: JsonMapping
) -> JsonObject:
    """Build what a record says of one question, its reply, and how that was read."""
    reading = _read(answer, prompt)
    words = {"yes": prompt.yes[0], "no": prompt.no[0]}
    word = reading.label or words.get(reading.text, "unread")
    reply = Answer("") if answer["reply"] is None else Answer.from_dict(answer["reply"])
    row: JsonObject = {
        "sample_hash": sha256(f"{request['prompt']}{right}".encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": request["prompt"],
            "reference": [right],
            "choices": list(request["words"]),
        },
        "output": {"raw": [reply.text or reply.refusal]},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": word,
                "extraction_method": "psyprobe read_answer",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": float(word == right), "is_correct": word == right},
        "error": answer["refused"] or None,
    }
    if reply.tokens_in is not None and reply.tokens_out is not None:
        row["token_usage"] = {
            "input_tokens": reply.tokens_in,
            "output_tokens": reply.tokens_out,
            "total_tokens": reply.tokens_in + reply.tokens_out,
        }
    if reply.latency > 0:
        row["performance"] = {"latency_ms": 1000 * reply.latency}
    if reply.thinking:
        row["output"]["reasoning_trace"] = [reply.thinking]
    return row


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Turn values into text, all that details may hold, leaving out those that say nothing."""
    return {
        name: value if isinstance(value, str) else _line(value)
        for name, value in values.items()
        if value not in (None, "", [], [""])
        and not (isinstance(value, float) and math.isnan(value))
    }


def _line(value: Any) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=plain_value)

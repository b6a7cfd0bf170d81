"""Whether what psyprobe measures of an encoder predicts how well it names spoilt photographs.

    python benchmarks/prediction_study.py            # tables and figure from docs/predictions.csv
    python benchmarks/prediction_study.py FOLDER     # encode first; FOLDER keeps finished encoders
    python benchmarks/prediction_study.py simulate   # false alarms and coverage of its statistics

The task is the same for all encoders: 16 photographs that pip packages contain, of which random
crops are named by a decision stage (`lda`) trained on other clean crops. Crops are then corrupted
along R-Bench's dimensions, filtered to an octave, or lowered in contrast. What may predict this is
read from docs/results.csv. Encoding takes scikit-image, scikit-learn, matplotlib, the extra
`corruption` and the packages of docs/observers.md, and about 20 minutes of one core.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import files
from itertools import permutations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from psyprobe.analysis.comparison.family import holm
from psyprobe.analysis.comparison.models import (
    family_rank_correlation,
    partial_rank_correlation,
    rank_correlation,
)
from psyprobe.analysis.intervals import fisher, normal_quantile
from psyprobe.analysis.words.robustness import csf_robustness

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE = DOCS / "predictions.csv"
README = Path(__file__).with_name("README.md")
#: Photographs by package, each with the licence that the package states.
PHOTOGRAPHS = {
    "scikit-image": {
        "skimage/data/astronaut.png": "public domain",
        "skimage/data/brick.png": "CC0",
        "skimage/data/camera.png": "CC0",
        "skimage/data/cell.png": "CC0",
        "skimage/data/chelsea.png": "CC0",
        "skimage/data/coffee.png": "CC0",
        "skimage/data/coins.png": "no known restrictions",
        "skimage/data/grass.png": "CC0",
        "skimage/data/gravel.png": "CC0",
        "skimage/data/hubble_deep_field.jpg": "public domain",
        "skimage/data/ihc.png": "no known restrictions",
        "skimage/data/retina.jpg": "CC0",
        "skimage/data/rocket.jpg": "public domain",
    },
    "scikit-learn": {
        "sklearn/datasets/images/china.jpg": "CC BY 2.0, danielbuechele",
        "sklearn/datasets/images/flower.jpg": "CC BY 2.0, vultilion",
    },
    "matplotlib": {
        "matplotlib/mpl-data/sample_data/grace_hopper.jpg": "public domain",
    },
}
#: Encoders, the fastest first, each with its family.
FAMILIES = {
    "packaged:mobilenetv2": "mobile",
    "packaged:efficientnet_lite0": "mobile",
    "packaged:efficientnet_lite1": "mobile",
    "packaged:efficientnet_lite2": "mobile",
    "packaged:resnet50_augnet": "ResNet",
    "packaged:vit_small_dinov2_saliency": "ViT",
    "packaged:hed": "VGG",
}
CONTRAST_ALONE = "contrast alone"
BASELINES = ("pixels", CONTRAST_ALONE)
EMBEDDING = "embedding"
#: px: native of five encoders; EfficientNet-Lite1 and Lite2 are loaded for it.
SIZE = 224
PPD = 60.0
#: Sides of crops over the shorter side of the photograph.
CROP_SIDES = (0.25, 0.5)
TRAINING_CROPS = 10
#: Crops that are spoilt, and as many others on which clean accuracy is measured.
TEST_CROPS = 4
CLEAN = "clean"
SOURCE = "source"
CORRUPTION = "corruption"
BAND = "band"
CONTRAST = "contrast"
OUTCOMES = (CORRUPTION, BAND, CONTRAST)
#: Crops of each corruption at each strength, and of each band and contrast.
CELL_CROPS = {CORRUPTION: 2, BAND: 16, CONTRAST: 16}
#: cpd, as of the decisions in docs/results.csv.
BANDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
#: Over the contrast of the photograph.
CONTRASTS = (0.5, 0.25, 0.125, 0.0625, 0.03125)
#: deg²: the denser noise of the decisions.
DENSITY = 2.78e-6
BATCH = 16
ALIGNED_TESTS = (
    "gabor_achromatic",
    "noise_achromatic",
    "gabor_red_green",
    "gabor_yellow_violet",
    "luminance",
    "area",
    "mask_coherent",
    "mask_incoherent",
)
CONFIDENCE = 0.95
SIMULATED_RUNS = 1000


def main(argument: str = "") -> None:
    if argument == "simulate":
        print(simulated_table())
        return
    if argument:
        encode_all(Path(argument))
    counts = pd.read_csv(TABLE)
    predictors = read_predictors(pd.read_csv(DOCS / "results.csv"))
    print_study(counts, predictors)
    draw_figure(counts, predictors)


# Images


@dataclass(frozen=True)
class Trial:
    """One image: a crop of a photograph, and what is done to it."""

    photograph: int
    crop: int
    #: "training", "clean", "source", "corruption", "band" or "contrast".
    kind: str
    #: Name of the corruption, cpd of the band or factor of contrast.
    condition: str = ""
    #: Of the corruption: "low", "mid" or "high".
    strength: str = ""


def photograph_names() -> list[str]:
    """List the photographs by the stems of their files."""
    return [Path(path).stem for paths in PHOTOGRAPHS.values() for path in paths]


@cache
def photographs() -> list[np.ndarray]:
    """Read all photographs from the packages, uint8 (H, W, 3)."""
    from psyprobe.files.images import read_image

    images = []
    for package, paths in PHOTOGRAPHS.items():
        located = {str(file): file.locate() for file in files(package) or []}
        for path in paths:
            codes = read_image(Path(str(located[path])))
            grey = codes.reshape(*codes.shape[:2], -1)
            images.append(np.broadcast_to(grey[..., :3], (*codes.shape[:2], 3)))
    return images


def draw_crop(photograph: int, crop: int) -> np.ndarray:
    """Cut a random square out of a photograph and resample it to the size of the encoders."""
    from PIL import Image

    image = photographs()[photograph]
    generator = np.random.default_rng([photograph, crop])
    height, width = image.shape[:2]
    side = round(min(height, width) * generator.uniform(*CROP_SIDES))
    top = int(generator.integers(height - side + 1))
    left = int(generator.integers(width - side + 1))
    square = Image.fromarray(
        np.ascontiguousarray(image[top : top + side, left : left + side])
    )
    return np.asarray(square.resize((SIZE, SIZE), Image.Resampling.LANCZOS))


def lower_contrast(codes: np.ndarray, factor: float) -> np.ndarray:
    """Mix the light of an image with its mean, and return drive that is not rounded."""
    from psyprobe.light.transfer import drive_of_light, light_of_drive

    light = light_of_drive(codes / 255, "srgb")
    mean = light.mean(axis=(0, 1))
    return np.asarray(drive_of_light(mean + factor * (light - mean), "srgb"))


@cache
def draw_trial(trial: Trial) -> np.ndarray:
    """Draw the display drive of an image, float32 (SIZE, SIZE, 3)."""
    from psyprobe.corruption import corrupt
    from psyprobe.tasks.r_bench.bands import octave_band

    codes = draw_crop(trial.photograph, trial.crop)
    if trial.kind == CONTRAST:
        return lower_contrast(codes, float(trial.condition)).astype(np.float32)
    if trial.kind == BAND:
        codes = octave_band(codes, float(trial.condition), PPD)
    if trial.kind == CORRUPTION:
        image_id = f"{trial.photograph}-{trial.crop}"
        codes = corrupt(
            codes, trial.condition, trial.strength, image_id=image_id, scale=True
        )
    return (codes / 255).astype(np.float32)


def training_trials() -> list[Trial]:
    """List the images on which the decision stage is trained, one photograph after another."""
    return [
        Trial(photograph, crop, "training")
        for photograph in range(len(photograph_names()))
        for crop in range(TRAINING_CROPS)
    ]


def test_trials() -> list[Trial]:
    """List the images that are named: clean ones, then each condition on some of the sources."""
    from psyprobe.corruption import STRENGTHS, dimensions

    cells = [(CORRUPTION, name, level) for name in dimensions() for level in STRENGTHS]
    cells += [(BAND, f"{band:g}", "") for band in BANDS]
    cells += [(CONTRAST, f"{factor:g}", "") for factor in CONTRASTS]
    places = [
        (photograph, TRAINING_CROPS + crop)
        for crop in range(TEST_CROPS)
        for photograph in range(len(photograph_names()))
    ]
    trials = [Trial(*place, SOURCE) for place in places]
    trials += [
        Trial(photograph, crop + TEST_CROPS, CLEAN) for photograph, crop in places
    ]
    # Dealt in rounds, so that all photographs are shown equally often.
    generator = np.random.default_rng(1)
    deck: list[int] = []
    for cell in cells:
        count = CELL_CROPS[cell[0]]
        while len(deck) < count:
            deck += generator.permutation(len(places)).tolist()
        trials += [Trial(*places[index], *cell) for index in deck[:count]]
        deck = deck[count:]
    return trials


# Observers


def contrast_of(batch: np.ndarray) -> np.ndarray:
    """Compute the RMS contrast of the luminance of images, (N, 1)."""
    from psyprobe.light.transfer import light_of_drive

    light = light_of_drive(batch.astype(np.float64), "srgb")
    luminance = light @ [0.2126, 0.7152, 0.0722]
    mean = luminance.mean(axis=(1, 2))
    # Crops of the night sky may be all black.
    contrast = luminance.std(axis=(1, 2)) / np.where(mean > 0, mean, 1)
    return contrast[:, None]


def load_features(
    name: str, layers: Sequence[str]
) -> Callable[[np.ndarray], Mapping[str, np.ndarray]]:
    """Load an observer as a function from images to features by layer."""
    from psyprobe.observers import load_observer

    if name == CONTRAST_ALONE:
        return lambda batch: {EMBEDDING: contrast_of(batch)}
    if name == "pixels":
        return lambda batch: {EMBEDDING: batch.reshape(len(batch), -1)}
    return load_observer(name, layers=list(layers), input_size=SIZE).features


def decided_layers(name: str) -> list[str]:
    """List the layers of which docs/results.csv has decisions in noise, the embedding last."""
    rows = pd.read_csv(DOCS / "results.csv")
    rows = rows[
        (rows["experiment"] == "gabor_in_noise")
        & (rows["observer"] == f"decided:{name}")
    ]
    layers = {layer for layer in rows["layer"].dropna() if layer != EMBEDDING}
    return [*sorted(layers), EMBEDDING] if name in FAMILIES else [EMBEDDING]


def top_classes(name: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """Load the classifier of an encoder as a function of embeddings; None if it has none."""
    from psyprobe.observers.encoders.packaged import PACKAGES, load_head

    key = name.removeprefix("packaged:")
    if key not in PACKAGES or PACKAGES[key].read != "efficientnet_lite":
        return None
    weights, bias = load_head(key)
    return lambda rows: np.argmax(rows @ weights.T + bias, axis=1)


def encoded(
    trials: Sequence[Trial],
    features: Callable[[np.ndarray], Mapping[str, np.ndarray]],
) -> Iterator[dict[str, np.ndarray]]:
    """Encode images in batches, float64 (N, D) by layer."""
    for start in range(0, len(trials), BATCH):
        batch = np.stack([draw_trial(trial) for trial in trials[start : start + BATCH]])
        yield {
            layer: np.asarray(rows, np.float64).reshape(len(batch), -1)
            for layer, rows in features(batch).items()
        }


def name_photographs(name: str) -> pd.DataFrame:
    """Train an observer's stages on clean crops, and count right names by condition and layer."""
    from psyprobe.observers.decisions.stages import train_identifier

    layers = decided_layers(name)
    features = load_features(name, layers)
    batches = list(encoded(training_trials(), features))
    stages = {}
    for layer in layers:
        rows = np.concatenate([batch.pop(layer) for batch in batches])
        stages[layer] = train_identifier(
            "lda", list(rows.reshape(-1, TRAINING_CROPS, rows.shape[1]))
        )
    classify = top_classes(name)
    trials = test_trials()
    answers: dict[str, list[int]] = {layer: [] for layer in layers}
    classes: list[int] = []
    for batch in encoded(trials, features):
        for layer, rows in batch.items():
            answers[layer] += np.argmax(stages[layer].variables(rows), axis=1).tolist()
        if classify is not None:
            classes += classify(batch[EMBEDDING]).tolist()
    parts = []
    for layer in layers:
        part = pd.DataFrame(trials)
        part["correct"] = part["photograph"] == answers[layer]
        if classes and layer == EMBEDDING:
            part["same_class"] = same_as_source(trials, classes)
        parts.append(part.assign(observer=name, layer=layer))
    return pd.concat(parts)


def same_as_source(trials: Sequence[Trial], classes: Sequence[int]) -> list[bool]:
    """Tell of each image whether its class is that of the same crop unspoilt."""
    sources = {
        (trial.photograph, trial.crop): label
        for trial, label in zip(trials, classes, strict=True)
        if trial.kind in (SOURCE, CLEAN)
    }
    return [
        label == sources[trial.photograph, trial.crop]
        for trial, label in zip(trials, classes, strict=True)
    ]


def encode_all(folder: Path) -> None:
    """Let all observers name the photographs, resuming, and write docs/predictions.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for name in (*BASELINES, *FAMILIES):
        path = folder / f"{name.partition(':')[2] or name.replace(' ', '_')}.csv"
        if not path.exists():
            start = time.process_time()
            name_photographs(name).to_csv(path, index=False)
            print(f"{name}: {time.process_time() - start:.0f} s", flush=True)
        parts.append(
            pd.read_csv(path, keep_default_na=False, na_values={"same_class": [""]})
        )
    answers = pd.concat(parts)
    answers["same_class"] = answers["same_class"].map(
        {"True": 1, "False": 0, True: 1, False: 0}
    )
    keys = ["observer", "layer", "kind", "condition"]
    counts = answers.groupby(keys, sort=False).agg(
        correct=("correct", "sum"),
        total=("correct", "size"),
        same_class=("same_class", lambda values: values.sum(min_count=1)),
    )
    counts.reset_index().to_csv(TABLE, index=False, float_format="%.0f")


# Statistics


def exact_p(x: ArrayLike, y: ArrayLike) -> float:
    """Compute the two-sided p of Spearman's correlation over all orders of the encoders."""
    x_ranks = stats.zscore(stats.rankdata(x))
    y_ranks = stats.zscore(stats.rankdata(y))
    test = stats.permutation_test(
        (x_ranks,),
        lambda ranks, axis: np.mean(ranks * y_ranks, axis=axis),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=np.inf,
    )
    return float(test.pvalue)


def smallest_significant(count: int, pairs: int = 1) -> float:
    """Compute the least |r_s| of n encoders whose p, Holm's first, stays at 0.05 or below."""
    ranks = stats.zscore(np.arange(float(count)))
    orders = np.array(list(permutations(range(count))))
    null = np.abs(ranks[orders] @ ranks) / count
    sizes = np.unique(null.round(9))[::-1]
    shares = [np.mean(null >= size - 1e-9) * pairs for size in sizes]
    significant = [size for size, p in zip(sizes, shares, strict=True) if p <= 0.05]
    return float(significant[-1]) if significant else float("nan")


def simulated_table() -> str:
    """Lay out how often 7 simulated encoders correlate, and how often intervals hold the truth."""
    rows = []
    for truth in (0.0, 0.5, 0.8, 0.95):
        generator = np.random.default_rng(1)
        # Of two normal quantities with this rank correlation.
        normal_truth = 2 * np.sin(np.pi * truth / 6)
        hits = 0
        covered = 0
        for _ in range(SIMULATED_RUNS):
            x, noise = generator.standard_normal((2, len(FAMILIES)))
            y = normal_truth * x + np.sqrt(1 - normal_truth**2) * noise
            link = rank_correlation(x, y, CONFIDENCE)
            hits += exact_p(x, y) <= 0.05
            covered += link.low <= truth <= link.high
        shares = [f"{100 * n / SIMULATED_RUNS:.1f} %" for n in (hits, covered)]
        rows.append([f"{truth:g}", *shares])
    return markdown(["true r_s", "p at most 0.05", "interval holds r_s"], rows)


# Predictors and outcomes


def read_predictors(results: pd.DataFrame) -> pd.DataFrame:
    """Read what was measured of each encoder; a row an encoder, a column a predictor."""
    encoders = list(FAMILIES)
    angular = results[results["measure"] == "angular"].dropna(subset=["alignment"])
    alignment = angular.pivot_table("alignment", "observer", "experiment").loc[encoders]
    turns = results[results["experiment"] == "orientation_discrimination"]
    anisotropy = turns.groupby("observer")["anisotropy"].max().loc[encoders]
    sensitivity = decisions(results, "sensitivity")
    log_efficiency = np.log10(decisions(results, "efficiency"))
    z = fisher(alignment[list(ALIGNED_TESTS)])
    return pd.DataFrame(
        {
            "S_ac, Gabors: r_s": alignment["gabor_achromatic"],
            "S_ac, noise: r_s": alignment["noise_achromatic"],
            "S_ac, eight tests: mean z": z.mean(axis=1),
            "contrast discrimination: r_s": alignment["contrast_discrimination"],
            "anisotropy": anisotropy,
            "decisions: log10 efficiency": log_efficiency.mean(axis=1),
            "decisions: CSF, 16 over 1 cpd": np.log10(
                sensitivity[16.0] / sensitivity[1.0]
            ),
        },
        index=encoders,
    )


def decisions(
    results: pd.DataFrame, variable: str, layer: str = EMBEDDING
) -> pd.DataFrame:
    """Read a variable of the decisions in the denser noise; encoders by frequency, cpd."""
    rows = results[
        (results["experiment"] == "gabor_in_noise")
        & (results["layer"] == layer)
        & (results["noise_density_deg2"] == DENSITY)
    ]
    names = rows["observer"].str.removeprefix("decided:")
    return rows.assign(observer=names).pivot_table(
        variable, "observer", "frequency_cpd"
    )


def accuracies(counts: pd.DataFrame, layer: str = EMBEDDING) -> pd.DataFrame:
    """Compute the share of right names of each observer; a column a kind of image."""
    rows = counts[counts["layer"] == layer]
    sums = rows.groupby(["observer", "kind"])[["correct", "total"]].sum()
    return (sums["correct"] / sums["total"]).unstack("kind")


def study_rows(counts: pd.DataFrame, predictors: pd.DataFrame) -> pd.DataFrame:
    """Correlate every predictor with every outcome; p after Holm over all pairs."""
    accuracy = accuracies(counts).loc[predictors.index]
    families = list(FAMILIES.values())
    rows = []
    for name, values in predictors.items():
        for outcome in OUTCOMES:
            pair = (values.to_numpy(), accuracy[outcome].to_numpy())
            link = rank_correlation(*pair, CONFIDENCE)
            partial = partial_rank_correlation(*pair, accuracy[CLEAN], CONFIDENCE)
            over_families = family_rank_correlation(*pair, families, CONFIDENCE)
            means = [pd.Series(column).groupby(families).mean() for column in pair]
            rows.append(
                {
                    "predictor": name,
                    "outcome": outcome,
                    "r": link.r,
                    "low": link.low,
                    "high": link.high,
                    "p": exact_p(*pair),
                    "partial": partial.r,
                    "partial_p": partial.p,
                    "r_families": over_families.r,
                    "p_families": exact_p(*means),
                }
            )
    frame = pd.DataFrame(rows)
    frame["p_holm"] = holm(frame["p"].tolist())
    return frame


def reliability(counts: pd.DataFrame, outcome: str) -> float:
    """Compute the share of an outcome's variance over encoders that is no sampling error."""
    rows = counts[(counts["layer"] == EMBEDDING) & (counts["kind"] == outcome)]
    rows = rows[rows["observer"].isin(FAMILIES)]
    sums = rows.groupby("observer")[["correct", "total"]].sum()
    share = sums["correct"] / sums["total"]
    error = share * (1 - share) / sums["total"]
    return float(1 - error.mean() / share.var(ddof=1))


# Tables and figure


def accuracy_table(counts: pd.DataFrame) -> str:
    """Lay out the share of right names of each observer, and how often its class stays."""
    accuracy = accuracies(counts)
    main_rows = counts[counts["layer"] == EMBEDDING]
    classes = main_rows.groupby(["observer", "kind"])[["same_class", "total"]].sum(
        min_count=1
    )
    same = (classes["same_class"] / classes["total"]).unstack("kind")
    rows = []
    for name in (*FAMILIES, *BASELINES):
        cells = [f"{accuracy.loc[name, kind]:.2f}" for kind in (CLEAN, *OUTCOMES)]
        for kind in OUTCOMES:
            share = same.loc[name, kind]
            cells.append(f"{share:.2f}" if np.isfinite(share) else "")
        rows.append([f"`{name.removeprefix('packaged:')}`", *cells])
    head = [CLEAN, "corrupted", "one octave", "low contrast"]
    stays = [f"class stays, {kind}" for kind in head[1:]]
    return markdown(["observer", *head, *stays], rows)


def prediction_table(study: pd.DataFrame) -> str:
    """Lay out each correlation with its interval, given clean accuracy, and over families."""
    rows = [
        [
            str(link.predictor),
            str(link.outcome),
            f"{link.r:.2f} [{link.low:.2f}, {link.high:.2f}]",
            f"{link.p:.3f}",
            f"{link.p_holm:.2f}",
            f"{link.partial:.2f} ({link.partial_p:.2f})",
            f"{link.r_families:.2f} ({link.p_families:.2f})",
        ]
        for link in study.itertuples()
    ]
    head = ["predictor", "outcome", "r_s", "p", "p, Holm", "given clean accuracy (p)"]
    return markdown([*head, "4 families (p)"], rows)


def layer_table(counts: pd.DataFrame, results: pd.DataFrame) -> str:
    """Lay out efficiency and right names by layer, within each encoder."""
    rows = []
    for name in FAMILIES:
        for layer in counts.loc[counts["observer"] == name, "layer"].unique():
            efficiency = decisions(results, "efficiency", layer).loc[name]
            accuracy = accuracies(counts, layer).loc[name]
            rows.append(
                [
                    f"`{name.removeprefix('packaged:')}`, {layer}",
                    f"{10 ** np.log10(efficiency).mean():.2g}",
                    *(f"{accuracy[kind]:.2f}" for kind in (CLEAN, *OUTCOMES)),
                ]
            )
    head = ["encoder, layer", "efficiency", CLEAN, "corrupted", "one octave"]
    return markdown([*head, "low contrast"], rows)


def sign_table(counts: pd.DataFrame, results: pd.DataFrame) -> str:
    """Count the encoders whose most efficient layer names fewer than their embedding."""
    encoders = [
        name
        for name in FAMILIES
        if counts.loc[counts["observer"] == name, "layer"].nunique() > 1
    ]
    rows = []
    for kind in (CLEAN, *OUTCOMES):
        differences = np.array(
            [
                accuracies(counts).loc[name, kind]
                - accuracies(counts, best_layer(name, counts, results)).loc[name, kind]
                for name in encoders
            ]
        )
        worse = int((differences > 0).sum())
        decided = int((differences != 0).sum())
        p = stats.binomtest(worse, decided).pvalue
        mean = differences.mean()
        rows.append([kind, f"{worse} of {decided}", f"{mean:+.2f}", f"{p:.3f}"])
    head = ["images", "embedding names more", "mean difference", "p, sign test"]
    return markdown(head, rows)


def best_layer(name: str, counts: pd.DataFrame, results: pd.DataFrame) -> str:
    """Find the layer of an encoder from which decisions are most efficient."""
    layers = counts.loc[counts["observer"] == name, "layer"].unique()
    means = {
        layer: np.log10(decisions(results, "efficiency", layer).loc[name]).mean()
        for layer in layers
    }
    return max(means, key=means.__getitem__)


def band_table(counts: pd.DataFrame, results: pd.DataFrame) -> str:
    """Lay out how the sensitivity of decisions goes with right names over octaves."""
    encoders = list(FAMILIES)
    sensitivity = decisions(results, "sensitivity").loc[encoders, list(BANDS)]
    octaves = by_condition(counts, BAND).loc[encoders, list(BANDS)]
    corrupted = accuracies(counts).loc[encoders, CORRUPTION]
    links = csf_robustness(
        encoders, BANDS, np.log10(sensitivity), octaves, corrupted=corrupted
    ).links
    rows = [
        [link.over, f"{link.r:.2f} [{link.low:.2f}, {link.high:.2f}]", f"{link.p:.2f}"]
        for link in links
        if link.r is not None
    ]
    return markdown(["over", "Pearson's r", "p"], rows)


def by_condition(counts: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Compute the share of right names by observer and band or contrast."""
    rows = counts[(counts["layer"] == EMBEDDING) & (counts["kind"] == kind)]
    share = rows["correct"] / rows["total"]
    table = rows.assign(share=share, condition=rows["condition"].astype(float))
    return table.pivot_table("share", "observer", "condition")


def print_study(counts: pd.DataFrame, predictors: pd.DataFrame) -> None:
    """Print all tables, and put them into benchmarks/README.md."""
    from results_page import put

    results = pd.read_csv(DOCS / "results.csv")
    study = study_rows(counts, predictors)
    tables = {
        "right names": accuracy_table(counts),
        "predictions": prediction_table(study),
        "predictions by octave": band_table(counts, results),
        "predictions by layer": layer_table(counts, results),
        "predictions within encoders": sign_table(counts, results),
    }
    for name, table in tables.items():
        print(f"## {name}\n\n{table}\n")
    for outcome in OUTCOMES:
        print(f"reliability, {outcome}: {reliability(counts, outcome):.2f}")
    for count, pairs in ((7, 1), (7, len(study)), (4, 1)):
        print(
            f"{count} units, {pairs} pairs: significant from "
            f"{smallest_significant(count, pairs):.3f} on"
        )
    page = README.read_text(encoding="utf-8")
    for name, table in tables.items():
        page = put(page, name, table)
    README.write_text(page, encoding="utf-8")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table in Markdown."""
    from results_page import markdown as lay_out

    return lay_out(head, rows)


def draw_figure(counts: pd.DataFrame, predictors: pd.DataFrame) -> None:
    """Draw right names over octaves and contrasts, and over three predictors."""
    from matplotlib.figure import Figure
    from results_page import save

    from psyprobe.plotting.axes import COLOURS

    accuracy = accuracies(counts)
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    panels = figure.subplots(2, 3, sharey=True)
    styles = dict(zip(FAMILIES, zip(COLOURS, "osDv^PX", strict=False), strict=True))
    octaves = by_condition(counts, BAND)
    contrasts = by_condition(counts, CONTRAST)
    groups = by_group(counts)
    for name in (*FAMILIES, *BASELINES):
        colour, marker = styles.get(name, ("0.4", ""))
        line = "-" if name in FAMILIES else "--" if name == "pixels" else ":"
        style = {"color": colour, "marker": marker, "linestyle": line, "markersize": 5}
        label = name.removeprefix("packaged:")
        panels[0, 0].plot(groups.loc[name], **style, label=label)
        panels[0, 1].plot(octaves.loc[name], **style)
        panels[0, 2].plot(contrasts.loc[name], **style)
    for label in panels[0, 0].get_xticklabels():
        label.set(rotation=35, horizontalalignment="right", rotation_mode="anchor")
    titles = (
        "Corrupted, by group",
        "One octave, centre (cpd)",
        "Contrast, over the crop's",
    )
    for panel, title in zip(panels[0], titles, strict=True):
        panel.set_title(title, fontsize=9, loc="left")
    for panel, values in ((panels[0, 1], BANDS), (panels[0, 2], CONTRASTS)):
        panel.set_xscale("log", base=2)
        panel.set_xticks(values, [f"{value:.2g}" for value in values])
        panel.minorticks_off()
    shown = [predictors.columns[index] for index in (0, 5, 6)]
    total = int(
        counts[(counts["observer"] == "pixels") & (counts["kind"] == CORRUPTION)][
            "total"
        ].sum()
    )
    for panel, name in zip(panels[1], shown, strict=True):
        for encoder, (colour, marker) in styles.items():
            share = accuracy.loc[encoder, CORRUPTION]
            reach = normal_quantile(CONFIDENCE) * np.sqrt(share * (1 - share) / total)
            panel.errorbar(
                predictors.loc[encoder, name],
                share,
                reach,
                color=colour,
                marker=marker,
                linestyle="",
            )
        for baseline, line in zip(BASELINES, ("--", ":"), strict=True):
            panel.axhline(
                accuracy.loc[baseline, CORRUPTION], color="0.4", linestyle=line
            )
        link = rank_correlation(
            predictors[name], accuracy.loc[list(FAMILIES), CORRUPTION], CONFIDENCE
        )
        panel.set_title(
            f"r_s = {link.r:.2f} [{link.low:.2f}, {link.high:.2f}]",
            fontsize=9,
            loc="left",
        )
        panel.set_xlabel(name)
    panels[0, 0].set_ylabel("Right names")
    panels[1, 0].set_ylabel("Right names, corrupted")
    for panel in panels.flat:
        panel.set_ylim(0, 1.02)
        panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    save(figure, "predictions", 80)


def by_group(counts: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of right names by observer and group of corruptions."""
    from psyprobe.corruption import GROUPS, dimensions

    rows = counts[(counts["layer"] == EMBEDDING) & (counts["kind"] == CORRUPTION)]
    group = [dimensions()[name].group for name in rows["condition"]]
    sums = rows.assign(group=group).groupby(["observer", "group"])[["correct", "total"]]
    shares = sums.sum().eval("correct / total").unstack("group")
    return shares[[name for name in GROUPS if name in shares]]


if __name__ == "__main__":
    main(*sys.argv[1:])

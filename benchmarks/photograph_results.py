"""Ask classifiers which of 16 things is shown, over contrast; print tables and draw the figure.

    apt-get install tuxpaint-stamps-default sweethome3d-furniture
    python benchmarks/photograph_results.py FOLDER [ROOT]     # 2 minutes of processor time

The pictures of photographs.csv are read from two packages of Debian, installed or unpacked below
ROOT with ``dpkg-deb -x``, set on grey in FOLDER, three of each category, and asked about by the page
`photograph_categories`. Where a category has fewer, mirrored ones fill its sets and are not counted.
Answers stay in FOLDER/runs.sqlite; what is there is not asked again.
"""

from __future__ import annotations

import csv
import os
import sys
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("agg")

from matplotlib.figure import Figure
from PIL import Image, ImageOps

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.plotting.axes import log_axis, typeset
from psyprobe.probes.experiments import load_results

HERE = Path(__file__).resolve().parent
FIGURE = HERE.parent / "docs" / "images" / "results_photographs.png"
OBSERVERS = tuple(f"classifier:efficientnet_lite{number}" for number in range(3))
#: Where packages of Debian have their pictures, below the root.
FOLDERS = {
    "tuxpaint-stamps-default": "usr/share/tuxpaint/stamps",
    "sweethome3d-furniture": "usr/share/sweethome3d/furniture",
    "psyprobe": str(HERE.parent / "experiments"),
}
SETS = 3
SIDE = 224
#: px of the longer side of a thing.
LENGTH = 190
#: Code of the ground.
GREY = 128
#: SD over mean in the window; above the last, the darkest picture needs negative light.
CONTRASTS = np.geomspace(0.0025, 0.2, 13).round(5).tolist()


@dataclass(frozen=True)
class Picture:
    """One row of photographs.csv."""

    category: str
    package: str
    #: Below the package's folder; what follows an archive is the path inside it.
    file: str
    #: Left, top, right and bottom of the part that is used, px; "" for all.
    box: str
    #: "photograph" or "rendering".
    kind: str
    licence: str

    @property
    def name(self) -> str:
        """The stem of its file."""
        return Path(self.file).stem

    def read(self, root: Path) -> Image.Image:
        """Read it from its package, with the transparency of its ground."""
        archive, point, rest = self.file.partition(".sh3f/")
        path = root / FOLDERS[self.package] / (archive + point.rstrip("/") or self.file)
        source: Path | BytesIO = path
        if point:
            source = BytesIO(zipfile.ZipFile(path).read(rest))
        image = Image.open(source).convert("RGBA")
        if self.box:
            left, top, right, bottom = map(int, self.box.split())
            image = image.crop((left, top, right, bottom))
        return image


def read_pictures() -> dict[str, list[Picture]]:
    """Read the list of pictures, by category."""
    with (HERE / "photographs.csv").open(encoding="utf-8") as file:
        rows = [Picture(**row) for row in csv.DictReader(file)]
    return {
        name: [row for row in rows if row.category == name]
        for name in sorted({row.category for row in rows})
    }


def compose(image: Image.Image) -> Image.Image:
    """Set a thing in the middle of a grey square; an opaque picture fills it."""
    opaque = image.getchannel("A").getextrema()[0] == 255
    if opaque:
        return ImageOps.fit(image.convert("RGB"), (SIDE, SIDE))
    seen = image.getchannel("A").point(lambda value: 255 * (value > 16))
    image = ImageOps.contain(
        image.crop(seen.getbbox()), (LENGTH, LENGTH), Image.Resampling.LANCZOS
    )
    ground = Image.new("RGBA", (SIDE, SIDE), (GREY, GREY, GREY, 255))
    corner = ((SIDE - image.width) // 2, (SIDE - image.height) // 2)
    ground.alpha_composite(image, corner)
    return ground.convert("RGB")


def write_sets(folder: Path, root: Path) -> None:
    """Write one picture of each category into each set; a second use is mirrored."""
    for category, pictures in read_pictures().items():
        for number in range(SETS):
            place = folder / f"set{number + 1}"
            place.mkdir(parents=True, exist_ok=True)
            image = compose(pictures[number % len(pictures)].read(root))
            if number >= len(pictures):
                image = ImageOps.mirror(image)
            image.save(place / f"{category}.png")


def ask(folder: Path) -> None:
    """Show all pictures at all contrasts once to each observer, into the store."""
    for observer in OBSERVERS:
        for number in range(SETS):
            page = pp.load_experiment("photograph_categories").with_settings(
                {
                    "stimulus.parameters.file": str(folder / f"set{number + 1}"),
                    "stimulus.parameters.file_ppd": 32,
                    "levels.contrast": {"values": CONTRASTS},
                    "asking.design": "constant",
                    "asking.options": {},
                    "asking.repeats": 16,
                }
            )
            pp.run(
                page,
                observer,
                store=str(folder / "runs.sqlite"),
                label=f"set{number + 1}",
                progress=False,
            )


def table_of(folder: Path) -> pd.DataFrame:
    """Read the trials of the store but for those of mirrored pictures, with observer and picture."""
    parts = []
    for result in load_results(str(folder / "runs.sqlite")):
        names = ["shown", "answer", "contrast", "response"]
        part = trials(result)[names].to_dataframe()
        part["observer"], set_name = str(result.attrs["observer"]).split(", ")
        part["place"] = int(set_name.removeprefix("set")) - 1
        parts.append(part)
    pictures = pd.DataFrame(
        {"shown": name, "place": place, "kind": row.kind, "picture": row.name}
        for name, rows in read_pictures().items()
        for place, row in enumerate(rows)
    )
    return pd.concat(parts).merge(pictures, on=["shown", "place"])


def thresholds_of(table: pd.DataFrame) -> pd.Series:
    """Compute the contrast from which on each picture is named right, by observer and picture.

    It is halfway to the next contrast below, in log10; infinite where the strongest is named wrong,
    and 0 where all are named right, as what is named without being seen.
    """

    def threshold(trials_of_picture: pd.DataFrame) -> float:
        right = trials_of_picture.sort_values("contrast")["response"].to_numpy() == 1
        if right.all():
            return 0.0
        last_wrong = int(np.flatnonzero(~right)[-1])
        if last_wrong == len(CONTRASTS) - 1:
            return float("inf")
        return float(np.sqrt(CONTRASTS[last_wrong] * CONTRASTS[last_wrong + 1]))

    keys = ["observer", "shown", "picture", "kind"]
    return table.groupby(keys)[["contrast", "response"]].apply(threshold)


def median_text(thresholds: pd.Series) -> str:
    """Format the median of thresholds with its 95 % interval over pictures."""
    generator = np.random.default_rng(1)
    values = thresholds.to_numpy()
    draws = generator.choice(values, (10_000, len(values)))
    medians = np.quantile(draws, 0.5, axis=1, method="lower")
    low, high = np.quantile(medians, [0.025, 0.975], method="nearest")
    middle = np.quantile(values, 0.5, method="lower")
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def print_tables(table: pd.DataFrame) -> None:
    """Print what each classifier names right, by kind and category, and its confusions."""
    thresholds = thresholds_of(table)
    strongest = table[table["contrast"] == CONTRASTS[-1]]
    faint = table[table["contrast"] < CONTRASTS[3]]
    print("| classifier | photographs | renderings | median threshold (95 %) | faint |")
    print("|---|---|---|---|---|")
    for observer, rows in strongest.groupby("observer"):
        cells = [
            f"{int(part['response'].sum())} of {len(part)}"
            for _, part in rows.groupby("kind")
        ]
        answers = faint[faint["observer"] == observer]["answer"]
        share = answers.value_counts(normalize=True)
        said = f"{share.index[0]} in {100 * share.iloc[0]:.0f} %"
        text = median_text(thresholds[observer])
        print(f"| `{observer}` | {' | '.join(cells)} | {text} | {said} |")
    names = [name.removeprefix("classifier:efficientnet_") for name in OBSERVERS]
    print(f"\n| category | {' | '.join(names)} | wrong at {CONTRASTS[-1]:g} |")
    print("|---|" + "---|" * (len(OBSERVERS) + 1))
    for category, rows in strongest.groupby("shown"):
        cells = [
            ", ".join(f"{value:.3g}" for value in sorted(thresholds[name, category]))
            for name in OBSERVERS
        ]
        wrong = rows[rows["response"] == 0]["answer"].value_counts()
        mistakes = ", ".join(f"{answer} {count}" for answer, count in wrong.items())
        print(f"| {category} | {' | '.join(cells)} | {mistakes or '-'} |")


def draw(table: pd.DataFrame) -> None:
    """Draw right answers over contrast, and confusions of the upper half of contrasts."""
    with typeset(178):
        figure = Figure(figsize=(7.0, 3.1), layout="constrained")
        left, right = figure.subplots(1, 2)
        for number, observer in enumerate(OBSERVERS):
            rows = table[table["observer"] == observer]
            shares = rows.groupby("contrast")["response"].mean()
            left.plot(shares, "o-", color=f"C{number}", label=observer, markersize=3)
        left.axhline(1 / 16, color="0.7", linestyle=":", label="guessing")
        log_axis(left.xaxis, np.array(CONTRASTS), 1.1)
        left.set(
            xlabel="RMS contrast in the window", ylabel="Right answers", ylim=(0, 1)
        )
        left.legend(loc="upper left", fontsize=6)
        names = sorted(read_pictures())
        strong = table[table["contrast"] >= CONTRASTS[len(CONTRASTS) // 2]]
        counts = pd.crosstab(strong["shown"], strong["answer"], normalize="index")
        cells = counts.reindex(index=names, columns=names, fill_value=0)
        image = right.imshow(cells, cmap="Greys", vmin=0, vmax=1)
        right.set_xticks(range(16), names, rotation=90, fontsize=6)
        right.set_yticks(range(16), names, fontsize=6)
        right.set(xlabel="Named", ylabel="Shown")
        figure.colorbar(image, ax=right, label=f"Share from {CONTRASTS[6]:.2g} on")
        figure.savefig(FIGURE, dpi=200)
    Image.open(FIGURE).convert("RGB").quantize(64).save(FIGURE, optimize=True)


def main(folder: str, root: str = "/") -> None:
    write_sets(Path(folder), Path(root))
    ask(Path(folder))
    table = table_of(Path(folder))
    print_tables(table)
    draw(table)


if __name__ == "__main__":
    main(*sys.argv[1:])

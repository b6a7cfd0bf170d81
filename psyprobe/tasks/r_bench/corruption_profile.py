"""How far a corrupted photograph is from its original for a vision encoder: a robustness profile without questions.

Photographs are cropped to the observer's proportions and resized to its input after they were corrupted, as a camera
and a model's own processor would do it; both steps are recorded. S_ac is that of the contrast experiments, so that a
corruption can be read as so much contrast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.corruption.apply import corrupt
from psyprobe.corruption.dimensions import STRENGTHS, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import file_digest, images_in, read_image
from psyprobe.store import Answers, Question, Store, digest

if TYPE_CHECKING:
    import xarray

    from psyprobe.observers import FeatureObserver


#: Corrupting, resizing or measuring differently makes another question of the same image.
_VERSION = "corruption profile 1"
#: Images shown at once, whatever their size.
_BATCH = 33
#: Side at which an observer that takes any size looks, px.
_ANY_SIZE = 224


def robustness_profile(
    photographs: str | Path | Sequence[str | Path],
    observer: str | FeatureObserver,
    *,
    names: Sequence[str] | None = None,
    strengths: Sequence[str] = STRENGTHS,
    seed: int = 0,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> xarray.Dataset:
    """S_ac between photographs and their corrupted versions, for all dimensions and strengths.

    Parameters
    ----------
    photographs : str, Path or sequence of these
        A folder of images, or image files: sRGB with 8 bits.
    observer : str or FeatureObserver
        An encoder, by name or as an object.
    names : sequence of str, optional
        Dimensions; by default all 33.
    strengths : sequence of str
        Of "low", "mid" and "high".
    seed : int
        Of the corruptions.
    store : str, Path or Store, optional
        The file that keeps responses; what it holds is not computed again.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``response`` (layer, measure, photograph, dimension, strength) with the measures of a detection run; the
        dimensions' steps and groups as coordinates.

    Raises
    ------
    InputError
        A photograph cannot be read, or the observer gives no features.
    UnknownNameError
        There is no such dimension or strength.
    """
    import xarray

    from psyprobe.analysis.distance import MEASURES
    from psyprobe.files.progress import progress_bar
    from psyprobe.files.software import software_versions
    from psyprobe.observers import load_observer
    from psyprobe.probes.asking import features, respond
    from psyprobe.store import open_store

    who: Any = load_observer(observer) if isinstance(observer, str) else observer
    if who.card.ability != "features":
        raise InputError(
            f"a robustness profile needs an observer with features, and {who.card.name} has {who.card.ability!r}"
        )
    known = dimensions()
    chosen = list(known) if names is None else list(names)
    for name in chosen:
        if name not in known:
            raise unknown_name("corruption", name, known)
    for strength in strengths:
        if strength not in STRENGTHS:
            raise unknown_name("strength", strength, STRENGTHS)
    paths = images_in(photographs) if isinstance(photographs, str | Path) else [Path(path) for path in photographs]
    size = who.card.input_size or (_ANY_SIZE, _ANY_SIZE)
    cells = [_Cell(path, name, strength) for path in paths for name in chosen for strength in strengths]
    fed = digest({"resize": "bicubic", "crop": "centre", "size": list(size)})
    originals = {path: file_digest(path) for path in paths}
    questions = {
        cell: Question(
            digest([originals[cell.path], cell.name, cell.strength, seed]),
            originals[cell.path],
            fed,
            who.card.digest,
            _VERSION,
        )
        for cell in cells
    }
    with open_store(store) as opened:
        opened.keep("observer", {who.card.digest: who.card.to_dict()})
        missing = set(opened.missing(question.key for question in questions.values()))
        todo = [cell for cell in cells if questions[cell].key in missing]
        with progress_bar(len(todo), progress) as bar:
            bar.set_description(f"33 corruptions: {who.card.name}")
            for path, members in _by_photograph(todo):
                photograph = read_image(path)
                reference = features(who, _fed([photograph], size))
                shown = _fed(
                    (corrupt(photograph, cell.name, cell.strength, seed, image_id=path.name) for cell in members), size
                )
                values = respond(who, shown, reference, [0] * len(members), MEASURES, ppd=0.0)
                asked = tuple(questions[cell] for cell in members)
                opened.add([Answers(asked, tuple(who.card.features), tuple(MEASURES), values)])
                bar.update(len(members))
        keys = [questions[cell].key for cell in cells]
        responses = opened.read(keys, list(who.card.features), list(MEASURES))
    shape = (len(paths), len(chosen), len(strengths), len(who.card.features), len(MEASURES))
    axes = ("layer", "measure", "photograph", "dimension", "strength")
    return xarray.Dataset(
        {
            "response": (
                axes,
                np.moveaxis(responses.reshape(shape), (3, 4), (0, 1)),
                {
                    "units": "angular: angle / pi; cosine: cosine similarity; l1, l2: feature units",
                    "long_name": "Response",
                },
            )
        },
        coords={
            "layer": list(who.card.features),
            "measure": list(MEASURES),
            "photograph": [path.name for path in paths],
            "dimension": chosen,
            "strength": list(strengths),
            "step": ("dimension", [known[name].step for name in chosen]),
            "group": ("dimension", [known[name].group for name in chosen]),
            "simulated": ("dimension", [int(known[name].captured) for name in chosen]),
        },
        attrs={
            "probe": "corruption_profile",
            "observer": who.card.name,
            "observer_card": json.dumps(who.card.to_dict(), sort_keys=True),
            "random_weights": int(who.card.random_weights),
            "seed": seed,
            "size": json.dumps(list(size)),
            "resize": "centre crop to the observer's proportions, bicubic with antialiasing, after corruption",
            "software": json.dumps(software_versions(), sort_keys=True),
        },
    )


@dataclass(frozen=True)
class _Cell:
    path: Path
    name: str
    strength: str


def _by_photograph(cells: Sequence[_Cell]) -> Iterator[tuple[Path, list[_Cell]]]:
    """Cells in batches of one photograph each, so that it is read and passed through the encoder once a batch."""
    for path in dict.fromkeys(cell.path for cell in cells):
        members = [cell for cell in cells if cell.path == path]
        for start in range(0, len(members), _BATCH):
            yield path, members[start : start + _BATCH]


def _fed(images: Any, size: tuple[int, int]) -> FloatArray:
    """Drive as an encoder gets it, shape (n, H, W, 3), float32 in [0, 1]."""
    from PIL import Image

    height, width = size
    shown = []
    for image in images:
        picture = Image.fromarray(image)
        scale = max(width / picture.width, height / picture.height)
        across, down = width / scale, height / scale
        left, top = (picture.width - across) / 2, (picture.height - down) / 2
        box = (left, top, left + across, top + down)
        shown.append(np.asarray(picture.resize((width, height), Image.Resampling.BICUBIC, box=box)))
    return np.stack(shown).astype(np.float32) / np.float32(255)


def plot_profile(profile: xarray.Dataset, ax: Any = None, *, measure: str = "angular", layer: str | None = None) -> Any:
    """Draw a robustness profile as coloured cells: dimensions downwards, strengths to the right.

    Parameters
    ----------
    profile : xarray.Dataset
        As `robustness_profile` gives it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    measure : str
        Which response.
    layer : str, optional
        Which layer; by default the last.

    Returns
    -------
    matplotlib.axes.Axes
        Means over photographs; a star marks a dimension that is simulated where R-Bench photographed it.
    """
    found = profile["response"].sel(measure=measure, layer=layer or str(profile["layer"].values[-1])).mean("photograph")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(4.2, 1.2 + 0.2 * profile.sizes["dimension"]), layout="constrained").add_subplot()
    drawn = ax.imshow(found.values, cmap="YlGnBu", aspect="auto", vmin=0, interpolation="nearest")
    middle = float(found.max()) * 0.55
    for (i, j), value in np.ndenumerate(found.values):
        ax.text(
            j, i, f"{value:.3f}", ha="center", va="center", fontsize=6, color="white" if value > middle else "black"
        )
    known = dimensions()
    labels = [
        f"{known[str(name)].title}{' *' if known[str(name)].captured else ''}" for name in profile["dimension"].values
    ]
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_xticks(range(profile.sizes["strength"]), [str(each) for each in profile["strength"].values])
    ax.tick_params(length=0)
    steps = profile["step"].values
    for i in np.flatnonzero(steps[1:] != steps[:-1]):
        ax.axhline(i + 0.5, color="black", linewidth=0.8)
    card = json.loads(profile.attrs["observer_card"])
    ax.set_title(f"{card['name']}{' [RANDOM WEIGHTS]' if profile.attrs['random_weights'] else ''}", fontsize=9)
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label("Angular distance $S_{ac}$" if measure == "angular" else measure)
    ax.set_xlabel("Strength" + (" (* simulated)" if profile["simulated"].values.any() else ""))
    return ax

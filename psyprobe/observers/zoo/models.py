"""The model zoo: the models of a paper by the names that they have there.

``models.toml`` has the 45 entries of Cai et al. (CVPR 2025) and newer encoders: each names the
observer that stands for the model, its feature, its weights and what differs from the published
run. Loading is left to that observer's own kind.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psyprobe.errors import WeightsError, unknown_name
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.parsing import packaged_toml
from psyprobe.observers.registry import (
    ObserverKind,
    ObserverRow,
    load_observer,
    observer_kind,
)

#: Endings of files that hold weights.
_WEIGHTS = (".safetensors", ".bin", ".pth", ".pt")


@dataclass(frozen=True)
class ZooModel:
    """One model of the zoo.

    Parameters
    ----------
    name : str
        Published models have the name of the published score table.
    family : str
        Group of models in the paper.
    observer : str
        The observer that stands for it: "timm:vit_small_patch16_224.dino".
    options : mapping
        Options of `load_observer`.
    published_options : mapping
        Further options of the published run, where it departs from what is right.
    feature : str
        The compared feature, in words.
    shape : tuple of int
        Shape of an image's feature before it is flattened.
    weights : str
        "hub: ID" (fetched by the library on first use), "file: ADDRESS" (must be given with
        ``weights=``) or "none".
    normalisation : str
        Mean and standard deviation of its input: "imagenet", "openai" (those of CLIP), "half" (0.5
        and 0.5), "none", or in words.
    size : int or None
        Side of its native input, px; None for any.
    training : str
        What it was trained on.
    licence : str
        Licence of the weights, as the library or their authors state it; empty if unknown.
    published : bool
        Whether it is one of the paper's 45 entries.
    differs : str
        What differs from the published run besides the input; empty where nothing is known to.
    """

    name: str
    family: str
    observer: str
    feature: str
    shape: tuple[int, ...]
    normalisation: str
    weights: str
    size: int | None = None
    training: str = ""
    licence: str = ""
    published: bool = False
    differs: str = ""
    options: JsonMapping = field(default_factory=dict, hash=False)
    published_options: JsonMapping = field(default_factory=dict, hash=False)

    @property
    def obstacle(self) -> str:
        """What is missing to run the model, a package or weights; "" if nothing."""
        missing = observer_kind(self.observer).obstacle
        if missing:
            return missing
        source, _, address = self.weights.partition(": ")
        if source == "file":
            return f"needs a weights file from {address}: load it with weights=FILE"
        if source == "hub" and not _cached(address):
            return (
                f"its weights are not in the cache; the model hub has them ({address})"
            )
        return ""


@functools.cache
def zoo_models() -> dict[str, ZooModel]:
    """Read all published models of the zoo, by name.

    Examples
    --------
    >>> zoo_models()["dino_vits16"].observer
    'timm:vit_small_patch16_224.dino'
    >>> sum(model.published for model in zoo_models().values())
    45
    """
    pages = packaged_toml("psyprobe.observers.zoo", "models.toml")
    return {
        name: ZooModel(name, **{**page, "shape": tuple(page["shape"])})
        for name, page in pages.items()
    }


def zoo_rows() -> list[ObserverRow]:
    """List the published models of the zoo, each with what is missing here."""
    rows = []
    for model in zoo_models().values():
        summary = ", ".join(filter(None, (model.family, model.training, model.feature)))
        ability = observer_kind(model.observer).ability
        rows.append(ObserverRow(f"zoo:{model.name}", summary, ability, model.obstacle))
    return rows


def load_zoo(name: str, *, published: bool = False, **options: Any) -> Any:
    """Load a published model of the zoo by name; `options` override those of its row.

    With `published` it is run as the paper did where that differs from what is right: masked
    autoencoders with 75 % of the patches dropped, latent autoencoders by one sample. Published
    experiments ask for it.

    Raises
    ------
    UnknownNameError
        If the zoo has no such model.
    WeightsError
        If the weights must be given as a file, or are not to be had.
    """
    full = f"zoo:{name}"
    models = zoo_models()
    if name not in models:
        raise unknown_name(
            "observer", full, (f"zoo:{model_name}" for model_name in models)
        )
    model = models[name]
    source, _, address = model.weights.partition(": ")
    if (
        source == "file"
        and not options.get("random_weights")
        and "weights" not in options
    ):
        # The library would quietly take weights of another training for the same architecture.
        raise WeightsError(
            f"{full}: no library here fetches its weights; load {address} and name it with "
            "weights=FILE"
        )
    as_published = model.published_options if published else {}
    observer: Any = load_observer(
        model.observer, **{**model.options, **as_published, **options}
    )
    observer.card = dataclasses.replace(
        observer.card,
        name=full,
        licence=model.licence or observer.card.licence,
        options={**observer.card.options, "observer": model.observer},
    )
    return observer


def _cached(repository: str) -> bool:
    """Tell whether the hub's cache holds a complete weights file of a repository."""
    home = os.environ.get("HF_HOME", str(Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", str(Path(home) / "hub"))).expanduser()
    snapshots = cache / f"models--{repository.replace('/', '--')}" / "snapshots"
    # An interrupted download leaves the folder, and links to files that are not there.
    return any(
        path.suffix in _WEIGHTS and path.is_file() for path in snapshots.glob("*/**/*")
    )


KIND = ObserverKind(
    "zoo",
    load_zoo,
    form="zoo:NAME",
    summary="a model of the zoo by its published name",
    rows=zoo_rows,
)

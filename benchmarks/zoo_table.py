"""Write docs/zoo.md from the catalogue (psyprobe/observers/zoo/models.toml): ``python
benchmarks/zoo_table.py``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from psyprobe.observers.zoo.models import zoo_models

PAGE = Path(__file__).parents[1] / "docs" / "zoo.md"
TEXT = """# The model zoo

Run any model of Cai et al. (2025), or one of some newer encoders, by a short name:

```bash (needs weights from a model hub)
psyprobe run gabor_achromatic --observer zoo:dinov2_vits14
psyprobe list observers                                       # which can run here, and what the others need
```

## What differs from the published runs

* **Normalisation.** Each encoder gets its own mean and standard deviation, unless the experiment (all `_published`
  ones) or `input="raw"` says otherwise.
* **The `_published` experiments** run the models as the paper did (`load_observer("zoo:NAME", published=True)`). MAE
  drops 75 % of its patches by the authors' seed, so ViT-H never sees the last quarter of its image. The latent
  autoencoders give one sample of the posterior; here it has a seed, and in the paper it had none. All other
  experiments show MAE every patch and take the mean of the posterior.
* **SAM and SAM-2** get stimuli that are drawn at 1024 px, not enlarged ones.
* **DINO XCiT and ResNet-50** have weights that no library used here contains. Load the [file](#the-models) yourself:
  `load_observer("zoo:NAME", weights=FILE)`.
* **QuickGELU** follows the tag: on for OpenAI's weights, off for LAION's.

## What was checked

None of the weights on a model hub was ever loaded where psyprobe was written. Every row of timm, open_clip, SAM-2 and
MAE was built without weights, and gives features of the shape below. Tests run ten small rows with random weights.
ColorVideoVDP runs for real.

## The models

A star marks the models of the paper; numbers say what differs. Size is the side of the native input, px; an empty
licence is not stated. `psyprobe list observers` says which feature each model gives and where its weights come from.

| normalisation | mean | standard deviation |
|---|---|---|
| imagenet | (0.485, 0.456, 0.406) | (0.229, 0.224, 0.225) |
| openai | (0.481, 0.458, 0.408) | (0.269, 0.261, 0.276) |
| half | 0.5 | 0.5 |

| name | observer | shape | size | normalisation | licence | differs |
|---|---|---|---|---|---|---|
"""


def numbered(texts: Iterable[str]) -> list[str]:
    """List each text once, in the order of first use, without the empty one."""
    return list(dict.fromkeys(filter(None, texts)))


if __name__ == "__main__":
    models = zoo_models().values()
    notes = numbered(model.differs for model in models)
    rows = [
        (
            f"`{model.name}`{'*' if model.published else ''}",
            f"`{model.observer}`",
            "×".join(map(str, model.shape)),
            "any" if model.size is None else str(model.size),
            model.normalisation,
            model.licence,
            str(notes.index(model.differs) + 1) if model.differs else "",
        )
        for model in models
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    file_list = "".join(
        f"* `{model.name}`: {model.weights.removeprefix('file: ')}\n"
        for model in models
        if model.weights.startswith("file: ")
    )
    note_list = "".join(f"{number}. {note}\n" for number, note in enumerate(notes, 1))
    PAGE.write_text(
        f"{TEXT}{table}\nWeights to load from a file:\n\n{file_list}\nWhat differs:\n\n{note_list}",
        encoding="utf-8",
    )

"""Write docs/zoo.md from the catalogue (psyprobe/observers/zoo/models.toml): ``python
benchmarks/zoo_table.py``."""

from __future__ import annotations

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
* **DINO XCiT and ResNet-50** have weights that no library used here contains. Load the file yourself:
  `load_observer("zoo:NAME", weights=FILE)`. We have not checked that timm reads it.
* **QuickGELU** follows the tag: on for OpenAI's weights, off for LAION's.

The last column of the table lists what else differs in each model.

## What was checked

None of the weights on a model hub was ever loaded where psyprobe was written. Every row of timm, open_clip, SAM-2 and
MAE was built as its real architecture without numbers, on torch's meta device, and gives features of the shape below
(`python benchmarks/zoo_shapes.py`). The tests run ten small rows with random weights at their real size: one of each
family and loader, except SAM. ColorVideoVDP runs for real.

## The models

Size is the side of the native input, px. Normalisation is mean and standard deviation:

| normalisation | mean | standard deviation |
|---|---|---|
| imagenet | (0.485, 0.456, 0.406) | (0.229, 0.224, 0.225) |
| openai | (0.481, 0.458, 0.408) | (0.269, 0.261, 0.276) |
| half | 0.5 | 0.5 |

| name | family | observer | feature | shape | size | normalisation | weights | licence | in the paper | differs |
|---|---|---|---|---|---|---|---|---|---|---|
"""

if __name__ == "__main__":
    rows = [
        (
            f"`{model.name}`",
            model.family,
            f"`{model.observer}`",
            model.feature,
            " x ".join(map(str, model.shape)),
            "any" if model.size is None else str(model.size),
            model.normalisation,
            model.weights,
            model.licence or "not stated",
            "yes" if model.published else "",
            model.differs,
        )
        for model in zoo_models().values()
    ]
    PAGE.write_text(TEXT + "".join(f"| {' | '.join(row)} |\n" for row in rows), encoding="utf-8")

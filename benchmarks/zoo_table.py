"""Write docs/zoo.md from the catalogue: ``python benchmarks/zoo_table.py``."""

from __future__ import annotations

from pathlib import Path

from psyprobe.observers.encoders.catalogue import zoo_models

PAGE = Path(__file__).parents[1] / "docs" / "zoo.md"
TEXT = """# The model zoo

`psyprobe run gabor_achromatic --observer zoo:NAME` takes any of these names; `psyprobe list observers` says which can
run here and what the others miss. The rows are data (`psyprobe/observers/zoo.toml`); this page is written from them by
`python benchmarks/zoo_table.py`.

**What was checked.** None of the weights on a model hub was ever loaded where psyprobe was written. Every timm,
open_clip, SAM-2 and MAE row was built as its real architecture on torch's meta device, without numbers, and gives a
feature of the shape below (`python benchmarks/zoo_shapes.py`). The tests run ten small rows, one of each family and
loader but SAM, with random weights at their real size. ColorVideoVDP runs for real.

**What differs from the published runs.** Encoders get their own mean and standard deviation unless the experiment (all
`_published` ones) or `input="raw"` says otherwise. The `_published` experiments also run the models of the zoo as the
paper did (`load_observer("zoo:NAME", published=True)`): MAE with 75 % of the patches dropped by the authors' seed, of
which ViT-H never sees the last quarter of its image; the latent autoencoders by one sample of the posterior, seeded
here and unseeded there. All other experiments show MAE every patch and take the posterior mean. SAM and SAM-2 get
stimuli drawn at 1024 px, not enlarged ones. The DINO XCiT and ResNet-50 weights are in no library used here: give the
file with `load_observer("zoo:NAME", weights=FILE)`; that timm reads it is not checked. QuickGELU is decided by the tag:
on for OpenAI's weights, off for LAION's.

**Columns.** Size: side of the native input, px. Normalisation: "imagenet" is mean (0.485, 0.456, 0.406) and standard
deviation (0.229, 0.224, 0.225); "openai" (0.481, 0.458, 0.408) and (0.269, 0.261, 0.276); "half" 0.5 and 0.5.

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

"""Write docs/zoo.md from the catalogue: ``python benchmarks/zoo_table.py``."""

from __future__ import annotations

from pathlib import Path

from psyprobe.observers.zoo import zoo_models

PAGE = Path(__file__).parents[1] / "docs" / "zoo.md"
TEXT = """# The model zoo

`psyprobe run gabor_achromatic --observer zoo:NAME` takes any of these names; `psyprobe list observers` says which can
run here and what the others miss. The rows are data (`psyprobe/observers/zoo.toml`); this page is written from them by
`python benchmarks/zoo_table.py`.

**What was checked.** None of the weights on a model hub was ever loaded where psyprobe was written. Every timm and
open_clip row was built as its real architecture on torch's meta device, without numbers, and gives a feature of the
shape below (`python benchmarks/zoo_shapes.py`). The tests run ten small rows, one of each family and loader but SAM
and ColorVideoVDP, with random weights at their real size. ColorVideoVDP runs for real.

**What differs from the published runs.** Encoders get their own mean and standard deviation unless the experiment (all
`_published` ones) or `input="raw"` says otherwise. SAM gets stimuli drawn at 1024 px, not enlarged ones. SAM-2 is the
trunk alone. MAE sees all patches; the published 75 % masking is not offered. The DINO XCiT and ResNet-50 weights are
in no library used here: give the file with `load_observer("zoo:NAME", weights=FILE)`; that timm reads it is not
checked. QuickGELU is decided by the tag: on for OpenAI's weights, off for LAION's.

| name | family | observer | feature | shape | weights | licence | in the paper | differs |
|---|---|---|---|---|---|---|---|---|
"""

if __name__ == "__main__":
    rows = [
        (
            f"`{model.name}`",
            model.family,
            f"`{model.observer}`",
            model.feature,
            " x ".join(map(str, model.shape)),
            model.weights,
            model.licence or "not stated",
            "yes" if model.published else "",
            model.differs,
        )
        for model in zoo_models().values()
    ]
    PAGE.write_text(TEXT + "".join(f"| {' | '.join(row)} |\n" for row in rows), encoding="utf-8")

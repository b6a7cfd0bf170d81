"""Build every model of the zoo without weights and hold its feature's shape to the catalogue.

On torch's meta device nothing is computed and nothing stored, so that a network of a billion
parameters costs a second; the tests run small ones of each loader for real. Prints one line a
model, and ends non-zero on a difference.
"""

from __future__ import annotations

import math
import sys

import torch

from psyprobe.observers.encoders.libraries import sam2_config, vit_mae_config
from psyprobe.observers.zoo.models import ZooModel, zoo_models


def measured_shape(model: ZooModel) -> tuple[int, ...]:
    prefix, _, name = model.observer.partition(":")
    if prefix == "timm":
        import timm

        size = model.options.get("input_size")
        with torch.device("meta"):
            module = timm.create_model(
                name, **({"img_size": size} if size else {})
            ).eval()
            images = torch.empty(
                1,
                3,
                *(
                    (size, size)
                    if size
                    else timm.get_pretrained_cfg(name).input_size[1:]
                ),
            )
            layer = model.options.get("layers")
            if layer is None:
                return tuple(
                    module.forward_head(
                        module.forward_features(images), pre_logits=True
                    ).shape[1:]
                )
            outputs = []
            module.get_submodule(layer).register_forward_hook(
                lambda _, __, output: outputs.append(output)
            )
            module(images)
            return tuple(outputs[0].shape[1:])
    if prefix == "open_clip":
        import open_clip

        architecture, _, _ = name.partition("/")
        config = open_clip.get_model_config(architecture)
        with torch.device("meta"):
            tower = open_clip.CLIP(
                **{k: v for k, v in config.items() if k in KEYS}
            ).visual.eval()
            size = config["vision_cfg"]["image_size"]
            return tuple(tower(torch.empty(1, 3, size, size)).shape[1:])
    if prefix == "sam2":
        from transformers import Sam2Model

        with torch.device("meta"):
            module = Sam2Model(sam2_config(name)).eval()
            return tuple(
                module.get_image_embeddings(torch.empty(1, 3, 1024, 1024))[-1].shape[1:]
            )
    if prefix == "vit_mae":
        from transformers import ViTMAEModel

        with torch.device("meta"):
            config = vit_mae_config(name)
            config.mask_ratio = 0.0
            images = torch.empty(1, 3, config.image_size, config.image_size)
            return tuple(ViTMAEModel(config).eval()(images).last_hidden_state.shape[1:])
    raise LookupError("not built on the meta device; see the tests")


KEYS = ("embed_dim", "vision_cfg", "text_cfg", "quick_gelu")

if __name__ == "__main__":
    wrong = 0
    for model in zoo_models().values():
        try:
            shape = measured_shape(model)
        except LookupError as why:
            print(f"{model.name:45} {why}")
            continue
        except Exception as problem:
            print(
                f"{model.name:45} cannot be built: {type(problem).__name__}: {problem}"
            )
            wrong += 1
            continue
        alike = shape == model.shape and math.prod(shape) == math.prod(model.shape)
        wrong += not alike
        print(
            f"{model.name:45} {shape} "
            f"{'as catalogued' if alike else f'CATALOGUED AS {model.shape}'}"
        )
    sys.exit(min(wrong, 1))

"""SAM and two Stable Diffusion pipelines of the real architectures, tiny and of random weights,
saved to folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: With random weights nothing passes the usual thresholds.
SAM_SETTINGS = {
    "points_per_crop": 2,
    "pred_iou_thresh": -100.0,
    "stability_score_thresh": -1.0,
}


def sam(folder: Path) -> Path:
    """SAM: a vision transformer of 64 px, two layers, and a mask decoder of one."""
    import torch
    from transformers import (
        SamConfig,
        SamImageProcessor,
        SamMaskDecoderConfig,
        SamModel,
        SamProcessor,
        SamPromptEncoderConfig,
        SamVisionConfig,
    )

    config = SamConfig(
        vision_config=SamVisionConfig(
            hidden_size=32,
            output_channels=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=64,
            patch_size=8,
            mlp_dim=64,
            window_size=4,
            global_attn_indexes=[1],
            num_pos_feats=8,
        ),
        prompt_encoder_config=SamPromptEncoderConfig(
            hidden_size=16, image_size=64, patch_size=8, mask_input_channels=4
        ),
        mask_decoder_config=SamMaskDecoderConfig(
            hidden_size=16,
            mlp_dim=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            iou_head_hidden_dim=16,
            iou_head_depth=2,
        ),
    )
    config.random_weights = True
    square = {"height": 64, "width": 64}
    processor = SamImageProcessor(
        size={"longest_edge": 64},
        pad_size=square,
        mask_size={"longest_edge": 64},
        mask_pad_size=square,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        SamModel(config).save_pretrained(folder)
    SamProcessor(processor).save_pretrained(folder)
    return folder


def diffusion(folder: Path, kind: str) -> Path:
    """Stable Diffusion for inpainting ("inpaint", 9 input channels) or InstructPix2Pix ("instruct",
    8)."""
    import diffusers
    import torch
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        unet = diffusers.UNet2DConditionModel(
            sample_size=8,
            in_channels={"inpaint": 9, "instruct": 8}[kind],
            block_out_channels=(8, 8),
            layers_per_block=1,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=16,
            norm_num_groups=4,
            attention_head_dim=4,
        )
        # Three halvings, as the real one: latents are an eighth of the image.
        vae = diffusers.AutoencoderKL(
            block_out_channels=(8,) * 4,
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            layers_per_block=1,
            latent_channels=4,
            norm_num_groups=4,
        )
        text = CLIPTextModel(
            CLIPTextConfig(
                vocab_size=200,
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=1,
                num_attention_heads=2,
                bos_token_id=0,
                eos_token_id=1,
            )
        ).eval()
    letters = [chr(code) for code in range(33, 127)]
    words = [
        "<|startoftext|>",
        "<|endoftext|>",
        *letters,
        *(f"{letter}</w>" for letter in letters),
    ]
    tokenizer = CLIPTokenizer(
        vocab={word: number for number, word in enumerate(words)},
        merges=[],
        model_max_length=77,
    )
    parts: dict[str, Any] = {
        "vae": vae,
        "text_encoder": text,
        "tokenizer": tokenizer,
        "unet": unet,
        "safety_checker": None,
        "feature_extractor": None,
        "requires_safety_checker": False,
    }
    if kind == "inpaint":
        scheduler = diffusers.DDIMScheduler(steps_offset=1, clip_sample=False)
        diffusers.StableDiffusionInpaintPipeline(
            **parts, scheduler=scheduler
        ).save_pretrained(folder)
    else:
        scheduler = diffusers.EulerAncestralDiscreteScheduler(steps_offset=1)
        diffusers.StableDiffusionInstructPix2PixPipeline(
            **parts, scheduler=scheduler
        ).save_pretrained(folder)
    path = folder / "unet" / "config.json"
    marked = json.loads(path.read_text(encoding="utf-8")) | {"random_weights": True}
    path.write_text(json.dumps(marked), encoding="utf-8")
    return folder

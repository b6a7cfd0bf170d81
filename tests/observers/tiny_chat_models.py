"""Chat models of real architectures, tiny and of random weights, saved to folders with tokenizer
and processor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXTS = [
    "USER: Is there a pattern visible in the image? Answer with yes or no. ASSISTANT: Yes",
    "Yes, there is. No, there is not. yes no Yes No YES NO a texture, a grid, a flat grey "
    "field, noise",
    "Is the image completely uniform? I can see nothing. Which of the two images holds a "
    "pattern, A or B?",
]
LLAVA_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'system' %}{{ "
    "message['content'][0]['text'] }} {% else %}"
    "{{ message['role'].upper() }}: {% for item in message['content'] %}{% if item['type'] == "
    "'image' %}<image>\n"
    "{% else %}{{ item['text'] }} {% endif %}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
QWEN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for item in "
    "message['content'] %}"
    "{% if item['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ "
    "item['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
    "%}<|im_start|>assistant\n{% endif %}"
)
SMOLVLM_TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{ message['role'] | capitalize }}: {% for item "
    "in message['content'] %}"
    "{% if item['type'] == 'image' %}<image>{% else %}{{ item['text'] }}{% endif %}{% endfor "
    "%}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
}
BLIP_VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 56,
    "patch_size": 14,
}
QFORMER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "encoder_hidden_size": 32,
    "cross_attention_frequency": 1,
    "max_position_embeddings": 128,
}


def tokenizer(*special: str, padding_side: str = "left") -> Any:
    """A byte-level BPE learnt on a few sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        min_frequency=1,
        special_tokens=["<pad>", "<s>", "</s>", *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    fast.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=fast,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens=list(special),
        padding_side=padding_side,
    )


def _save(
    folder: Path, model_class: Any, config: Any, processor: Any, *, spread: float = 8.0
) -> Path:
    import torch

    config.random_weights = True  # so that whoever loads the folder can say so
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = model_class(config).eval()
        # The usual initial spread of 0.02 makes every answer alike; this one lets an image change
        # the answer.
        with torch.no_grad():
            for weight in model.parameters():
                if weight.ndim > 1:
                    weight.mul_(spread)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def llava(folder: Path) -> Path:
    """LLaVA: CLIP vision tower of 56 px, LLaMA."""
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.llava.image_processing_llava import LlavaImageProcessor

    words = tokenizer("<image>")
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        image_size=56,
        patch_size=14,
    )
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = LlavaConfig(
        vision_config=vision,
        text_config=LlamaConfig(vocab_size=len(words), **TEXT, **ids),
        image_token_index=words.convert_tokens_to_ids("<image>"),
        image_seq_length=16,
    )
    processor = LlavaProcessor(
        image_processor=LlavaImageProcessor(
            size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}
        ),
        tokenizer=words,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=LLAVA_TEMPLATE,
    )
    return _save(folder, LlavaForConditionalGeneration, config, processor)


def qwen(folder: Path) -> Path:
    """Qwen2.5-VL: images of any size, in patches."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
    )
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import (
        Qwen2VLImageProcessor,
    )
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import (
        Qwen2VLVideoProcessor,
    )

    special = (
        "<|im_start|>",
        "<|im_end|>",
        "<|vision_start|>",
        "<|vision_end|>",
        "<|image_pad|>",
        "<|video_pad|>",
    )
    words = tokenizer(*special)
    at = words.convert_tokens_to_ids
    config = Qwen2_5_VLConfig(
        text_config={
            **TEXT,
            "vocab_size": len(words),
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [1, 1, 2],
            },
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": at("<|im_end|>"),
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 32,
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
        image_token_id=at("<|image_pad|>"),
        video_token_id=at("<|video_pad|>"),
        vision_start_token_id=at("<|vision_start|>"),
        vision_end_token_id=at("<|vision_end|>"),
    )
    processor = Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(),
        tokenizer=words,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=QWEN_TEMPLATE,
    )
    return _save(folder, Qwen2_5_VLForConditionalGeneration, config, processor)


def smolvlm(folder: Path) -> Path:
    """SmolVLM: cuts large images into tiles unless told not to."""
    from transformers import (
        SmolVLMConfig,
        SmolVLMForConditionalGeneration,
        SmolVLMProcessor,
    )
    from transformers.models.smolvlm.image_processing_smolvlm import (
        SmolVLMImageProcessor,
    )
    from transformers.models.smolvlm.video_processing_smolvlm import (
        SmolVLMVideoProcessor,
    )

    tiles = [
        f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)
    ]
    words = tokenizer(
        "<image>",
        "<fake_token_around_image>",
        "<global-img>",
        "<end_of_utterance>",
        "<|im_start|>",
        *tiles,
    )
    config = SmolVLMConfig(
        text_config={
            "model_type": "llama",
            "vocab_size": len(words),
            "pad_token_id": 0,
            **TEXT,
        },
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 64,
            "patch_size": 16,
        },
        scale_factor=2,
        image_token_id=words.convert_tokens_to_ids("<image>"),
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=words.convert_tokens_to_ids("<end_of_utterance>"),
    )
    processor = SmolVLMProcessor(
        image_processor=SmolVLMImageProcessor(
            size={"longest_edge": 256},
            max_image_size={"longest_edge": 64},
            do_image_splitting=True,
        ),
        tokenizer=words,
        video_processor=SmolVLMVideoProcessor(
            max_image_size={"longest_edge": 64}, size={"longest_edge": 64}
        ),
        image_seq_len=4,
        chat_template=SMOLVLM_TEMPLATE,
    )
    return _save(folder, SmolVLMForConditionalGeneration, config, processor)


def blip2(folder: Path) -> Path:
    """BLIP-2 before an OPT language model: no chat template."""
    from transformers import Blip2Config, Blip2ForConditionalGeneration, Blip2Processor
    from transformers.models.blip.image_processing_blip import BlipImageProcessor

    words = tokenizer("<image>", padding_side="right")  # as published
    config = Blip2Config(
        vision_config=BLIP_VISION,
        qformer_config={**QFORMER, "vocab_size": len(words)},
        text_config=_opt(len(words)),
        num_query_tokens=4,
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    processor = Blip2Processor(
        BlipImageProcessor(size={"height": 56, "width": 56}), words, num_query_tokens=4
    )
    return _save(folder, Blip2ForConditionalGeneration, config, processor)


def blip2_t5(folder: Path) -> Path:
    """BLIP-2 before a T5, which is an encoder and a decoder."""
    from transformers import Blip2Config, Blip2ForConditionalGeneration, Blip2Processor
    from transformers.models.blip.image_processing_blip import BlipImageProcessor

    words = tokenizer("<image>")
    text = {
        "model_type": "t5",
        "vocab_size": len(words),
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
    }
    ids = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2}
    config = Blip2Config(
        vision_config=BLIP_VISION,
        qformer_config={**QFORMER, "vocab_size": len(words)},
        text_config={**text, **ids, "num_heads": 4},
        num_query_tokens=4,
        image_token_index=words.convert_tokens_to_ids("<image>"),
        use_decoder_only_language_model=False,
    )
    processor = Blip2Processor(
        BlipImageProcessor(size={"height": 56, "width": 56}), words, num_query_tokens=4
    )
    return _save(folder, Blip2ForConditionalGeneration, config, processor, spread=1.5)


def instructblip(folder: Path) -> Path:
    """InstructBLIP before a LLaMA: what its Q-Former takes from the image depends on the words."""
    from transformers import (
        InstructBlipConfig,
        InstructBlipForConditionalGeneration,
        InstructBlipProcessor,
    )
    from transformers.models.blip.image_processing_blip import BlipImageProcessor

    words, qformer_tokenizer = tokenizer("<image>"), tokenizer()
    config = InstructBlipConfig(
        vision_config=BLIP_VISION,
        qformer_config={
            **QFORMER,
            "vocab_size": len(qformer_tokenizer),
            "pad_token_id": 0,
        },
        text_config={
            "model_type": "llama",
            "vocab_size": len(words),
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            **TEXT,
        },
        num_query_tokens=4,
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    processor = InstructBlipProcessor(
        BlipImageProcessor(size={"height": 56, "width": 56}),
        words,
        qformer_tokenizer,
        num_query_tokens=4,
    )
    return _save(folder, InstructBlipForConditionalGeneration, config, processor)


def _opt(words: int) -> dict[str, Any]:
    return {
        "model_type": "opt",
        "vocab_size": words,
        "hidden_size": 32,
        "word_embed_proj_dim": 32,
        "ffn_dim": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 2048,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


BUILDERS: dict[str, Callable[[Path], Path]] = {
    "llava": llava,
    "qwen": qwen,
    "smolvlm": smolvlm,
    "blip2": blip2,
    "blip2_t5": blip2_t5,
    "instructblip": instructblip,
}

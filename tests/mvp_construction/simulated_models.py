"""Photographs that come with scikit-image, and chat models that know them: every reply depends on
what is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import psyprobe as pp

#: By photograph: how its mean colour is told from the others' is the captioner's business; the rest
#: is what it says.
SCENES: dict[str, dict[str, Any]] = {
    "astronaut": {
        "caption": "A smiling woman in an orange space suit in front of a flag and a model of a "
        "shuttle.",
        "objects": [("flag", [0.0, 0.0, 0.3, 0.75]), ("woman", [0.1, 0.02, 0.78, 1.0])],
        "subject": 2,
        "behaviour": "posing for a portrait",
        "background": "a flag and a model of a space shuttle",
        "object": ("a white helmet", [0.7, 0.62, 1.0, 1.0]),
        "emotion": ("joy", [0.33, 0.08, 0.55, 0.4]),
        "category": "R2",
        "part": 3,
        "high": ("She is an astronaut.", "She is a cook."),
        "low": ("a white helmet", "a steel pot"),
    },
    "chelsea": {
        "caption": "A tabby cat that looks past the camera.",
        "objects": [("cat", [0.18, 0.05, 0.9, 1.0])],
        "subject": 1,
        "behaviour": "looking to the side",
        "background": "a blurred red blanket",
        "object": None,
        "emotion": ("calm", [0.25, 0.1, 0.75, 0.8]),
        "category": "S1",
        "part": None,
        "high": ("The cat rests at home.", "The cat is lost in the wild."),
        "low": ("a red blanket", "a forest in the snow"),
    },
    "coffee": {
        "caption": "A cup of espresso on a wooden table.",
        "objects": [
            ("cup of coffee", [0.2, 0.05, 0.85, 0.95]),
            ("spoon", [0.55, 0.5, 0.95, 0.9]),
        ],
        "subject": 1,
        "behaviour": "standing on a table",
        "background": "a wooden table",
        "object": ("a spoon", [0.55, 0.5, 0.95, 0.9]),
        "emotion": None,
        "category": "B1",
        "part": None,
        "high": ("Somebody takes a break.", "Somebody has fled from a flood."),
        "low": ("a dry wooden table", "brown water all around"),
    },
    "rocket": {
        "caption": "A rocket on its launch pad at night, lit by floodlights.",
        "objects": [("rocket", [0.44, 0.12, 0.58, 0.85])],
        "subject": 1,
        "behaviour": "waiting for its launch",
        "background": "a night sky above a launch pad",
        "object": None,
        "emotion": None,
        "category": "S2",
        "part": None,
        "high": ("It is a real launch.", "It is a scene of a comic."),
        "low": ("natural colours", "flat, shifted colours"),
    },
}


def photographs(folder: Path, longest: int = 192) -> Path:
    """The four photographs as files, made smaller for speed."""
    from skimage import data

    folder.mkdir(parents=True, exist_ok=True)
    for name in SCENES:
        thumbnail = Image.fromarray(np.asarray(getattr(data, name)()))
        thumbnail.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        thumbnail.save(folder / f"{name}.png")
    return folder


def _scene_of(image: Any) -> dict[str, Any]:
    """Told apart by mean colour, which the photographs' size does not change."""
    height, width = image.shape[:2]
    red, _, blue = image.mean(axis=(0, 1))
    if height == width:
        return SCENES["astronaut"]
    if red < 0.3:
        return SCENES["rocket"]
    return SCENES["coffee" if red / blue > 2 else "chelsea"]


def _boxed(word_and_box: tuple[str, list[float]] | None) -> dict[str, Any]:
    return (
        {"value": None, "box": None}
        if word_and_box is None
        else {"value": word_and_box[0], "box": word_and_box[1]}
    )


class SpyModels:
    """Counts prompts, and can spoil replies: `spoil(step, prompt, reply)` returns another
    reply."""

    def __init__(self, spoil: Any = None) -> None:
        self.steps: list[str] = []
        self.prompts: list[str] = []
        self._spoil = spoil
        self.captioner = pp.observer(self._look, name="simulated captioner")
        self.chat = pp.observer(self._talk, name="simulated chat")

    def _say(self, step: str, prompt: str, values: Any) -> str:
        self.steps.append(step)
        self.prompts.append(prompt)
        reply = json.dumps(values)
        return reply if self._spoil is None else self._spoil(step, prompt, reply)

    def _look(self, images: list[Any], prompt: str) -> str:
        scene = _scene_of(images[0])
        if prompt.startswith("Describe"):
            rows = [{"name": name, "box": box} for name, box in scene["objects"]]
            return self._say(
                "caption", prompt, {"caption": scene["caption"], "objects": rows}
            )
        assert scene["objects"][scene["subject"] - 1][0] in prompt
        if "doing" in prompt:
            return self._say("behaviour", prompt, {"value": scene["behaviour"]})
        if "background" in prompt:
            return self._say("background", prompt, {"value": scene["background"]})
        step = "emotion" if "emotion" in prompt else "object"
        return self._say(step, prompt, _boxed(scene[step]))

    def _talk(self, images: list[Any], prompt: str) -> str:
        assert not images
        scene = next(
            s
            for s in SCENES.values()
            if s["caption"] in prompt or s["high"][0] in prompt
        )
        if "main subject, the thing" in prompt:
            assert (
                f"{scene['subject']}. {scene['objects'][scene['subject'] - 1][0]}"
                in prompt
            )
            return self._say("subject", prompt, {"subject": scene["subject"]})
        if "Kinds of change" in prompt:
            assert re.search(rf"^{scene['category']}: ", prompt, re.MULTILINE)
            return self._say("proposal", prompt, self._proposal(scene))
        return self._say("questions", prompt, self._questions(scene))

    @staticmethod
    def _proposal(scene: dict[str, Any]) -> dict[str, Any]:
        (high_natural, high), (low_natural, low) = scene["high"], scene["low"]
        return {
            "category": scene["category"],
            "high_natural": high_natural,
            "high_manipulated": high,
            "low_natural": low_natural,
            "low_manipulated": low,
            "caption": f"{high} One sees {low}.",
            "part": scene["part"],
            "instruction": f"change {low_natural} into {low}"
            if scene["category"] == "S2"
            else None,
        }

    @staticmethod
    def _questions(scene: dict[str, Any]) -> dict[str, Any]:
        (high_natural, high), (low_natural, low) = scene["high"], scene["low"]
        wrong = [
            "Nothing happens.",
            "It is a sports event.",
            "It is a painting lesson.",
            "A shop opens.",
        ]
        return {
            "low": f"Does one see {low}?",
            "high": f"Is this so: {high}?",
            "single": {
                "question": "What does the image mean?",
                "right": high,
                "natural": high_natural,
                "wrong": wrong[:3],
            },
            "cross_low": {
                "question": "What is seen in the second image alone?",
                "right": low,
                "wrong": [low_natural, "a horse", "a lamp", "a book"],
            },
            "cross_high": {
                "question": "How does the meaning change?",
                "right": high,
                "wrong": wrong,
            },
        }

"""Time of each corruption at 512 x 384 beside imagecorruptions and albumentations, one thread, in
turn.

    python benchmarks/corruption_speed.py     # needs: pip install imagecorruptions albumentations

Least processor time of an 8-bit photograph in rounds in which all take turns; in brackets how many
times faster psyprobe is. Peers do what is nearest to the dimension, at a strength as near as theirs
allow; they do not do quite the same. "Before" are the libraries that once quantised colours and
denoised here. What nobody else has is timed alone.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import cv2
import numpy as np
from PIL import Image
from skimage import data

from psyprobe.corruption import corrupt, dimensions
from psyprobe.corruption.methods import white_noise

warnings.filterwarnings("ignore")
ROUNDS = 9


def peers() -> dict[str, dict[str, Callable[[Any], Any]]]:
    """What each peer has, by dimension, at mid strength."""
    functions_by_package: dict[str, dict[str, Callable[[Any], Any]]] = {
        "imagecorruptions": {},
        "albumentations": {},
    }
    try:
        import imagecorruptions

        names = {
            "motion_blur": "motion_blur",
            "lens_blur": "defocus_blur",
            "white_noise": "gaussian_noise",
            "impulse_noise": "impulse_noise",
            "multiplicative_noise": "speckle_noise",
            "clock_jittering": "glass_blur",
            "gaussian_filter": "gaussian_blur",
            "jpeg": "jpeg_compression",
            "resolution_limit": "pixelate",
            "hsv_saturation": "saturate",
            "maximum_brighten": "brightness",
            "contrast_change": "contrast",
        }
        for ours, theirs in names.items():
            functions_by_package["imagecorruptions"][ours] = lambda image, name=theirs: (
                imagecorruptions.corrupt(image, corruption_name=name, severity=3)
            )
    except ImportError as error:
        print(f"imagecorruptions is left out: {error}")
    try:
        import albumentations as a

        transforms = {
            # Along the line that seed 0 draws: theirs has 7 points, but 5 near diagonals.
            "motion_blur": a.MotionBlur(
                blur_limit=(7, 7),
                angle_range=(62, 62),
                direction_range=(0, 0),
                allow_shifted=False,
                p=1,
            ),
            "lens_blur": a.Defocus(radius=(6, 6), p=1),
            "bright_illumination": a.RandomSunFlare(p=1),
            "blocking_obstacle": a.CoarseDropout(num_holes_range=(1, 1), p=1),
            "white_noise": a.GaussNoise(std_range=(0.07, 0.07), p=1),
            "impulse_noise": a.SaltAndPepper(amount=(0.02, 0.02), p=1),
            "multiplicative_noise": a.MultiplicativeNoise(
                multiplier=(0.75, 1.25), elementwise=True, per_channel=True, p=1
            ),
            "color_noise": a.ISONoise(p=1),
            "clock_jittering": a.GlassBlur(p=1),
            "gaussian_filter": a.GaussianBlur(
                blur_limit=(9, 9), sigma_limit=(2, 2), p=1
            ),
            "jpeg": a.ImageCompression(
                compression_type="jpeg", quality_range=(7, 7), p=1
            ),
            "webp": a.ImageCompression(
                compression_type="webp", quality_range=(5, 5), p=1
            ),
            "resolution_limit": a.Downscale(scale_range=(0.57, 0.57), p=1),
            "grayscale_quantization": a.Posterize(num_bits=(3, 3), p=1),
            "block_exchange": a.RandomGridShuffle(grid=(24, 32), p=1),
            "block_lost": a.CoarseDropout(
                num_holes_range=(8, 8),
                hole_height_range=(32, 32),
                hole_width_range=(32, 32),
                p=1,
            ),
            "sharpness_change": a.UnsharpMask(p=1),
            "contrast_change": a.RandomBrightnessContrast(
                brightness_limit=0, contrast_limit=(0.4, 0.4), p=1
            ),
            "hsv_saturation": a.HueSaturationValue(p=1),
            "color_shift": a.ChromaticAberration(p=1),
        }
        for ours, transform in transforms.items():
            functions_by_package["albumentations"][ours] = lambda image, do=transform: (
                do(image=image)["image"]
            )
    except (ImportError, TypeError, ValueError) as error:
        print(f"albumentations is left out: {error}")
    return functions_by_package


def former(image: Any) -> dict[str, Callable[[], Any]]:
    """What the two dearest took before they were computed here: Pillow's median cut, scikit-image's
    non-local means."""
    from skimage.restoration import denoise_nl_means

    picture = Image.fromarray(image)
    noisy = white_noise(
        image.astype(np.float32) / 255, 0.1, np.random.default_rng(0)
    ).clip(0, 1)
    options = {
        "h": 0.8 * 0.1**0.5,
        "sigma": 0.1**0.5,
        "patch_size": 5,
        "patch_distance": 6,
        "fast_mode": True,
    }

    def quantised() -> Any:
        palette = picture.quantize(16, method=Image.Quantize.MEDIANCUT)
        return picture.quantize(16, palette=palette, dither=Image.Dither.FLOYDSTEINBERG)

    return {
        "color_quantization": quantised,
        "cnn_denoise": lambda: [
            denoise_nl_means(noisy[..., i], **options) for i in range(3)
        ],
    }


def measured(image: Any) -> dict[str, dict[str, float]]:
    """The least processor time of each dimension in ms, by whose it is; all take turns."""
    cv2.setNumThreads(1)
    functions_by_package = peers()
    before = former(image)
    timings = {}
    for name in dimensions():
        works: dict[str, Callable[[], Any]] = {
            "psyprobe": lambda name=name: corrupt(image, name, "mid")
        }
        works |= {
            package: lambda do=functions[name]: do(image)
            for package, functions in functions_by_package.items()
            if name in functions
        }
        works |= {"before": before[name]} if name in before else {}
        slowest = max(clock(work) for work in [*works.values(), *works.values()])
        # What takes a fraction of a millisecond is least disturbed once in many rounds.
        rounds = int(np.clip(200 / slowest, ROUNDS, 20 * ROUNDS))
        turns = [
            {key: clock(work) for key, work in works.items()} for _ in range(rounds)
        ]
        timings[name] = {key: min(turn[key] for turn in turns) for key in works}
    return timings


def photograph() -> Any:
    return np.asarray(Image.fromarray(data.coffee()).resize((512, 384)))


def rows() -> list[tuple[str, str, float, float]]:
    """What the speed table lists: the work, under which condition, the value, and the least that it
    should be."""
    condition = (
        "8-bit photograph of 512 x 384 px, mid strength, one image, one thread, "
        "processor time, best of rounds in turn"
    )
    timings = measured(photograph())
    speed_ratios = [
        milliseconds["albumentations"] / milliseconds["psyprobe"]
        for milliseconds in timings.values()
        if "albumentations" in milliseconds
    ]
    listed = [
        (
            f"corruptions at least as fast as albumentations, share of {len(speed_ratios)}",
            condition,
            float(np.mean(np.array(speed_ratios) >= 1)),
            14 / 17,
        )
    ]
    for name, milliseconds in timings.items():
        if "albumentations" in milliseconds:
            times = milliseconds["albumentations"] / milliseconds["psyprobe"]
            listed.append(
                (f"{name}, times as fast as albumentations", condition, times, 1.0)
            )
        if "before" in milliseconds:
            listed.append(
                (
                    f"{name}, times as fast as before",
                    condition,
                    milliseconds["before"] / milliseconds["psyprobe"],
                    2.0,
                )
            )
    return listed


def clock(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def main() -> None:
    packages = ("imagecorruptions", "albumentations", "before")
    print(
        f"{'ms, 512 x 384, one thread':26} {'psyprobe':>9} "
        + " ".join(f"{package:>18}" for package in packages)
    )
    timings = measured(photograph())
    for name, milliseconds in timings.items():
        cells = [
            f"{milliseconds[package]:.2f} ({milliseconds[package] / milliseconds['psyprobe']:.2f} x)"
            if package in milliseconds
            else "-"
            for package in packages
        ]
        print(
            f"{name:26} {milliseconds['psyprobe']:9.2f} "
            + " ".join(f"{cell:>18}" for cell in cells),
            flush=True,
        )
    for package in packages:
        slower = [
            name
            for name, milliseconds in timings.items()
            if package in milliseconds
            and milliseconds[package] < milliseconds["psyprobe"]
        ]
        print(f"slower than {package}: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()

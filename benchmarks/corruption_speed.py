"""Time of each corruption at 512 x 384 beside imagecorruptions and albumentations, one thread, in turn.

    python benchmarks/corruption_speed.py     # needs: pip install imagecorruptions albumentations

Processor time of an 8-bit photograph, median of rounds in which all three take turns; in brackets how many times faster
psyprobe is. Peers do what is nearest to the
dimension, at a strength as near as theirs allow; they do not do quite the same. Dimensions that no peer has are timed
alone.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import cv2
import numpy as np
from PIL import Image
from skimage import data

from psyprobe.corruption import corrupt, dimensions

warnings.filterwarnings("ignore")
ROUNDS = 9


def peers() -> dict[str, dict[str, Callable[[Any], Any]]]:
    """What each peer has, by dimension, at mid strength."""
    found: dict[str, dict[str, Callable[[Any], Any]]] = {"imagecorruptions": {}, "albumentations": {}}
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
            found["imagecorruptions"][ours] = lambda image, name=theirs: imagecorruptions.corrupt(
                image, corruption_name=name, severity=3
            )
    except ImportError as error:
        print(f"imagecorruptions is left out: {error}")
    try:
        import albumentations as a

        transforms = {
            "motion_blur": a.MotionBlur(blur_limit=(7, 7), p=1),
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
            "gaussian_filter": a.GaussianBlur(blur_limit=(9, 9), sigma_limit=(2, 2), p=1),
            "jpeg": a.ImageCompression(compression_type="jpeg", quality_range=(7, 7), p=1),
            "webp": a.ImageCompression(compression_type="webp", quality_range=(5, 5), p=1),
            "resolution_limit": a.Downscale(scale_range=(0.57, 0.57), p=1),
            "grayscale_quantization": a.Posterize(num_bits=(3, 3), p=1),
            "block_exchange": a.RandomGridShuffle(grid=(24, 32), p=1),
            "block_lost": a.CoarseDropout(
                num_holes_range=(8, 8), hole_height_range=(32, 32), hole_width_range=(32, 32), p=1
            ),
            "sharpness_change": a.UnsharpMask(p=1),
            "contrast_change": a.RandomBrightnessContrast(brightness_limit=0, contrast_limit=(0.4, 0.4), p=1),
            "hsv_saturation": a.HueSaturationValue(p=1),
            "color_shift": a.ChromaticAberration(p=1),
        }
        for ours, transform in transforms.items():
            found["albumentations"][ours] = lambda image, do=transform: do(image=image)["image"]
    except (ImportError, TypeError, ValueError) as error:
        print(f"albumentations is left out: {error}")
    return found


def clock(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def main() -> None:
    cv2.setNumThreads(1)
    image = np.asarray(Image.fromarray(data.coffee()).resize((512, 384)))
    others = peers()
    packages = ("imagecorruptions", "albumentations")
    print(f"{'ms, 512 x 384, one thread':26} {'psyprobe':>9} {'imagecorruptions':>18} {'albumentations':>18}")
    slower: dict[str, list[str]] = {package: [] for package in packages}
    for name in dimensions():
        if name == "cnn_denoise":
            continue
        works: dict[str, Callable[[], Any]] = {"psyprobe": lambda name=name: corrupt(image, name, "mid")}
        for package, known in others.items():
            if name in known:
                works[package] = lambda do=known[name]: do(image)
        times: dict[str, list[float]] = {key: [] for key in works}
        for key, work in list(works.items()):
            try:
                work()
            except Exception as error:
                print(f"{name}: {key} fails: {type(error).__name__}")
                del works[key], times[key]
        for _ in range(ROUNDS):
            for key, work in works.items():
                times[key].append(clock(work))
        middle = {key: median(each) for key, each in times.items()}
        cells = []
        for package in packages:
            ratio = middle[package] / middle["psyprobe"] if package in middle else None
            cells.append("-" if ratio is None else f"{middle[package]:.1f} ({ratio:.2f} x)")
            if ratio is not None and ratio < 1:
                slower[package].append(name)
        print(f"{name:26} {middle['psyprobe']:9.1f} {cells[0]:>18} {cells[1]:>18}", flush=True)
    for package in packages:
        print(f"slower than {package}: {', '.join(slower[package]) or 'none'}")


if __name__ == "__main__":
    main()

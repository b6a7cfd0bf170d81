"""What encoding with loss does, by Pillow's codecs, and the palette of few colours."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray


def color_quantization(image: FloatArray, colours: float, rng: np.random.Generator) -> FloatArray:
    """A palette of so many colours by median cut, with error diffusion. MATLAB's rule of least variance is close."""
    from PIL import Image

    picture = _picture(image).convert("RGB")
    palette = picture.quantize(round(colours), method=Image.Quantize.MEDIANCUT)
    dithered = picture.quantize(round(colours), palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
    return _values(dithered.convert("RGB"), image)


def jpeg2000(image: FloatArray, ratio: float, rng: np.random.Generator) -> FloatArray:
    """JPEG 2000 at a compression ratio, irreversible; by OpenJPEG's version to 0.5 dB."""
    # A small image has fewer wavelet levels than the codec takes by default.
    levels = int(np.clip(np.log2(min(image.shape[:2])), 1, 6))
    return _coded(
        image, "JPEG2000", quality_mode="rates", quality_layers=[ratio], irreversible=True, num_resolutions=levels
    )


def jpeg(image: FloatArray, quality: float, rng: np.random.Generator) -> FloatArray:
    """JPEG with chroma at half the resolution."""
    return _coded(image, "JPEG", quality=round(quality), subsampling="4:2:0")


def webp(image: FloatArray, quality: float, rng: np.random.Generator) -> FloatArray:
    """WebP with loss. Its worst quality is still milder than JPEG's 4."""
    return _coded(image, "WEBP", quality=round(quality), method=4)


def _coded(image: FloatArray, codec: str, **options: Any) -> FloatArray:
    from PIL import Image

    stream = io.BytesIO()
    _picture(image).save(stream, codec, **options)
    with Image.open(stream) as decoded:
        return _values(decoded, image)


def _picture(image: FloatArray) -> Any:
    """An 8-bit picture, which codecs take: one channel stays one."""
    from PIL import Image

    codes = image if image.dtype == np.uint8 else np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    return Image.fromarray(codes[..., 0] if image.shape[-1] == 1 else codes)


def _values(picture: Any, like: FloatArray) -> FloatArray:
    mode = "L" if like.shape[-1] == 1 else "RGB"
    codes = np.asarray(picture if picture.mode == mode else picture.convert(mode)).reshape(like.shape)
    if like.dtype == np.uint8:
        return codes
    return np.asarray((codes / np.float64(255)).astype(like.dtype))

"""Photographs and questions about them: what a reference must be like, the table of questions, six to try with."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import InputError
from psyprobe.tasks.tables import read_table

#: Columns of a table of questions: the file of the photograph, and the item as in the released table. A column score,
#: the quality of the photograph, is kept where it is there.
QUESTION_COLUMNS = ("image", "type", "question", "choice", "answer")


@dataclass(frozen=True)
class ReferenceLimits:
    """What a reference must be like; chosen so that snapshots pass, and thumbnails, blur and blank pages do not."""

    #: Smallest allowed shorter side, px.
    side: int = 224
    #: Smallest allowed variance of the Laplacian of luma, in 8-bit codes squared (Pech-Pacheco et al. 2000), after the
    #: image was made so small that its shorter side is 256 px, since it grows with resolution.
    sharpness: float = 20.0
    #: Smallest and largest allowed mean luma, 0 to 1.
    exposure: tuple[float, float] = (0.05, 0.95)
    #: Largest allowed share of pixels at 0 or 255 in all channels.
    clipped: float = 0.5

    def to_dict(self) -> dict[str, object]:
        """Plain values that JSON can hold."""
        return {**asdict(self), "exposure": list(self.exposure)}


def measure_reference(image: npt.NDArray[np.uint8]) -> dict[str, float]:
    """Side, sharpness, exposure and clipped share of an image, as in `ReferenceLimits`.

    Examples
    --------
    >>> measure_reference(np.zeros((32, 32, 3), np.uint8))
    {'side': 32, 'sharpness': 0.0, 'exposure': 0.0, 'clipped': 1.0}
    """
    import cv2

    grey = luma(image.astype(np.float32))
    small = grey
    shorter = min(grey.shape)
    if shorter > 256:
        size = (round(grey.shape[1] * 256 / shorter), round(grey.shape[0] * 256 / shorter))
        small = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))
    flat = (image == 0).all(axis=-1) | (image == 255).all(axis=-1)
    return {
        "side": shorter,
        "sharpness": float(np.var(cv2.Laplacian(small, cv2.CV_32F))),
        "exposure": float(grey.mean()) / 255,
        "clipped": float(flat.mean()),
    }


def check_reference(image: npt.NDArray[np.uint8], name: str, limits: ReferenceLimits) -> dict[str, float]:
    """What `measure_reference` gives of an image that is fit; any other is refused."""
    found = measure_reference(image)
    low, high = limits.exposure
    if found["side"] < limits.side:
        raise InputError(f"{name} has a shorter side of {found['side']:g} px; a reference needs {limits.side}")
    if not low <= found["exposure"] <= high:
        raise InputError(f"{name} has a mean luma of {found['exposure']:.3f}; a reference needs {low:g} to {high:g}")
    if found["clipped"] > limits.clipped:
        raise InputError(
            f"{name} has {found['clipped']:.0%} of its pixels black or white; a reference may have {limits.clipped:.0%}"
        )
    if found["sharpness"] < limits.sharpness:
        raise InputError(
            f"{name} is blurred: its Laplacian has the variance {found['sharpness']:.1f}; a reference needs "
            f"{limits.sharpness:g}"
        )
    return found


def read_question_table(path: str | Path) -> pd.DataFrame:
    """Read a table of questions about photographs.

    Parameters
    ----------
    path : str or Path
        A CSV with the columns image (file name), type (MCQ, VQA, CAP), question, choice ("A.one; B.two", N where there
        are none) and answer (a letter; a short text; reference captions as a list in Python's notation); score may be
        there.

    Returns
    -------
    pandas.DataFrame
        All cells as text.

    Raises
    ------
    InputError
        It is no such table, a row is there twice, or a key is none of the options.
    """
    table, _ = read_table(path, QUESTION_COLUMNS)
    asked = table[["image", "type", "question"]]
    if asked.duplicated().any():
        row = asked[asked.duplicated()].iloc[0]
        raise InputError(f"{path}: {row['question']!r} is asked twice of {row['image']}; keep one of them")
    for i, row in enumerate(table.to_dict("records"), start=2):
        if Path(row["image"]).name != row["image"] or not row["image"]:
            raise InputError(f"{path}, line {i}: image is {row['image']!r}; give a file name without folders")
    return table


def write_example(folder: str | Path) -> tuple[Path, Path]:
    """Write photographs and a table of questions, as `build_set` takes them.

    Parameters
    ----------
    folder : str or Path
        Gets a folder "photographs" and the file "questions.csv": 42 questions about six photographs.

    Returns
    -------
    tuple of Path
        Both.

    Raises
    ------
    InputError
        scikit-image or one of its photographs is not there.
    """
    try:
        import skimage
    except ImportError:
        raise InputError("the photographs come with scikit-image: pip install 'psyprobe[corruption]'") from None
    source = Path(skimage.__file__).parent / "data"
    place = Path(folder)
    photographs, questions = place / "photographs", place / "questions.csv"
    photographs.mkdir(parents=True, exist_ok=True)
    text = files("psyprobe.tasks.r_bench").joinpath("data", "photograph_questions.csv").read_text(encoding="utf-8")
    questions.write_text(text, encoding="utf-8")
    for name in dict.fromkeys(read_question_table(questions)["image"]):
        if not (source / name).is_file():
            raise InputError(f"this scikit-image comes without {name}; install version 0.22 or later from a wheel")
        shutil.copyfile(source / name, photographs / name)
    return photographs, questions

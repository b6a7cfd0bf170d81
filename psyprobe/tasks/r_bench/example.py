"""A small set to try things with: photographs that come with scikit-image, and our own questions about them."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

from psyprobe.errors import InputError
from psyprobe.tasks.r_bench.build import read_question_table


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

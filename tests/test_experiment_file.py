"""Experiment files: the catalogue reads, and each slip is one line with the file, the key and what
is allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_experiment import EXPERIMENT, write_experiment

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.experiment import load_experiment, load_suite
from psyprobe.human.reference import DataReference, ModelReference
from psyprobe.probes.experiments import plan
from psyprobe.stimulus.catalogue import catalogue_names, read_page
from psyprobe.stimulus.specification import level_of

SUITES = ("cai2025", "cai2025_published")
#: Experiments that ask in words, with a file format and tests of their own.
IN_WORDS = (
    "contour_jitter",
    "photograph_contrast",
    "orientation_csf",
    "equivalent_noise",
    "gabor_in_noise",
    "orientation_in_noise",
    "hernandez2025",
    "hernandez2025_published",
)
#: tests/test_own_experiments.py runs these.
OURS = (
    "orientation_discrimination",
    "frequency_discrimination",
    "contrast_discrimination",
    "contrast_discrimination_masked",
    "gabor_masked_parallel",
    "gabor_masked_orientation",
    "gabor_masked_orthogonal",
    "grating_masked_cross",
    "surround",
    "acuity_achromatic",
    "acuity_red_green",
    "acuity_yellow_violet",
)
#: tests/probes/test_clips_asked.py reads these.
IN_TIME = tuple(
    name for name in catalogue_names("experiments") if name.startswith("temporal")
)
#: tests/questions/test_planted_pages.py and test_identify.py run these.
NAMED = tuple(
    name
    for name in catalogue_names("experiments")
    if read_page("experiments", name)[1].get("probe") == "identify"
)
OTHERS = (*SUITES, *IN_WORDS, *OURS, *IN_TIME, *NAMED)


@pytest.mark.parametrize(
    "name", [name for name in catalogue_names("experiments") if name not in OTHERS]
)
def test_the_catalogue_reads(name: str) -> None:
    experiment = load_experiment(name)
    assert experiment.title and experiment.source and experiment.differences
    matching = "matching" in name
    published = name.endswith("_published")
    assert experiment.probe == ("matching" if matching else "detection")
    assert len(experiment.score.multiplier or ()) == (0 if matching else 10)
    level, contrast = experiment.levels.values()
    assert len(level) == (27 if matching else 20)
    assert len(contrast) == (40 if matching else 20)
    assert experiment.observer.input == ("raw" if published else "normalised")
    assert experiment.observer.metric_ppd == (75.4 if published else None)
    assert experiment.score.measure == ("angular_float32" if published else "angular")
    of_sensitivity = published and not isinstance(experiment.human, DataReference)
    assert experiment.score.multiplier_of == (
        "sensitivity" if of_sensitivity else "threshold"
    )


@pytest.mark.parametrize("name", SUITES)
def test_suites_hold_the_nine_tests(name: str) -> None:
    suite = load_suite(name)
    assert len(suite) == 9
    assert all(
        experiment.name.endswith("_published") == name.endswith("_published")
        for experiment in suite
    )
    with pytest.raises(InputError, match="suite of several experiments"):
        load_experiment(name)


def test_suites_of_ones_own_and_their_slips(tmp_path: Path) -> None:
    page, suite = write_experiment(tmp_path), tmp_path / "suite.toml"
    suite.write_text(
        'title = "Two"\nexperiments = ["small.toml", "area"]', encoding="utf-8"
    )
    assert [experiment.name for experiment in load_suite(suite)] == ["small", "area"]
    assert [experiment.name for experiment in load_suite(page)] == ["small"]
    for text, message in (
        ("experiments = []", "there is no 'title'"),
        ('title = "None"\nexperiments = []', "list at least one"),
        ('title = "Twice"\nexperiments = ["area", "area"]', "each once"),
        (
            'title = "More"\nprobe = "detection"\nexperiments = ["area"]',
            "unknown key 'probe'",
        ),
        ('title = "Text"\nexperiments = "area"', "give a list"),
    ):
        suite.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            load_suite(suite)


#: A Gabor on a grating, compared with measured thresholds over the contrast of the mask.
MASKED = (
    (
        'kind = "gabor"',
        'kind = "gabor"\n'
        'parts.mask = { kind = "grating", frequency = 2, contrast = 0.2 }',
    ),
    ("contrast = 0.5", "contrast = 0.2"),
)
MASKING = (
    ('model = "castle_csf"', 'data = "foley1994"'),
    ("frequency = { from = 1, to = 4", "mask_contrast = { from = 0.01, to = 0.4"),
)
MATCHING = ('probe = "detection"', 'probe = "matching"')


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((MASKING[0],), r"human\.data = 'foley1994' goes with levels of mask_contrast"),
        (
            (*MASKING, ("foley1994", "foley1995")),
            "'foley1995'; did you mean 'foley1994'",
        ),
        (
            (*MASKING, ('data = "foley1994"', 'data = "foley1994"\ntable = 3')),
            "'table'",
        ),
        (
            (*MASKING, ("[score]", '[score]\nabove = "0.01"')),
            r"score\.above is '0\.01'; give a number",
        ),
        ((*MASKING, MATCHING), "give human.data = 'georgeson_sullivan1975'"),
        (
            (*MASKING, MATCHING, ("foley1994", "georgeson_sullivan1975")),
            "goes with levels of f",
        ),
        (
            (("foley1994", "georgeson_sullivan1975"), *MASKING[1:]),
            "goes with levels of reference_contrast",
        ),
    ],
)
def test_slips_with_measured_data(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], message: str
) -> None:
    if changes[0] not in MASKING:
        changes = (MASKING[0], *changes)
    with pytest.raises(InputError, match=message):
        plan(
            load_experiment(write_experiment(tmp_path, *changes, stimulus=MASKED)),
            "pixels",
        )


def test_levels_and_units() -> None:
    experiment = load_experiment("gabor_achromatic")
    assert list(experiment.levels) == ["frequency", "contrast"]
    np.testing.assert_allclose(
        experiment.levels["frequency"], np.geomspace(0.5, 28, 20)
    )
    assert (
        level_of(load_experiment("luminance").stimulus_set.spec(), "luminance").unit
        == "cd/m²"
    )
    assert load_experiment("area").levels["area"][-1] == pytest.approx(np.pi)
    assert load_experiment("gabor_yellow_violet_published").score.below == 16


def test_own_file_by_path_with_a_stimulus_beside_it(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    experiment = load_experiment(str(path))
    assert experiment.name == "small"
    assert experiment.stimulus_set.spec().shape == (16, 16)
    assert experiment.toml == EXPERIMENT


def test_digest_is_of_content_and_not_of_spelling(tmp_path: Path) -> None:
    plain = load_experiment(write_experiment(tmp_path)).digest
    spelt = load_experiment(
        write_experiment(tmp_path, ("[levels]", "# a comment\n[levels]"))
    ).digest
    other = load_experiment(write_experiment(tmp_path, ("to = 4", "to = 5"))).digest
    stimulus = load_experiment(
        write_experiment(tmp_path, stimulus=(("radius = 0.3", "radius = 0.2"),))
    ).digest
    assert plain == spelt
    assert len({plain, other, stimulus}) == 3


def test_values_of_levels_and_linear_scale(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path,
        (
            'frequency = { from = 1, to = 4, n = 3, scale = "log" }',
            "frequency = { values = [1, 2.5, 4] }",
        ),
        ('to = 1, n = 3, scale = "log"', 'to = 0.09, n = 3, scale = "linear"'),
    )
    experiment = load_experiment(path)
    assert experiment.levels["frequency"] == (1.0, 2.5, 4.0)
    np.testing.assert_allclose(experiment.levels["contrast"], [0.01, 0.05, 0.09])


def test_human_inputs_and_table(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path,
        (
            'model = "castle_csf"',
            'model = "castle_csf"\narea = 2.0\ncontrast = "rms"\ntable = {from=1, to=4, n=9}',
        ),
    )
    human = load_experiment(path).human
    assert isinstance(human, ModelReference)
    assert (
        human.conditions == {"area": 2.0} and human.rms and human.table == (1.0, 4.0, 9)
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[score]", "[scores]", "unknown key 'scores'; did you mean 'score'"),
        (
            "multiplier =",
            "multplier =",
            r"unknown key in \[score\] 'multplier'; did you mean 'multiplier'",
        ),
        (
            "frequency = { from",
            "frequncy = { from",
            r"'frequncy'; did you mean 'frequency'",
        ),
        ("{ from = 1, to = 4", '{ from = "1 cpd", to = 4', "'1 cpd'.*without units"),
        ("{ from = 1, to = 4", "{ from = nan, to = 4", "finite"),
        ("{ from = 1, to = 4", "{ from = 0, to = 4", "> 0"),
        ("{ from = 1, to = 4", "{ from = 4, to = 1", "ascending"),
        ("from = 1, to = 4, n = 3", "from = 1, to = 4, n = 2.5", "whole number"),
        ("from = 1, to = 4, n = 3", "from = 1, to = 4, n = true", "whole number"),
        ("from = 1, to = 4, n = 3", "from = 1, to = 4, n = 1", "at least two"),
        ("from = 1, to = 4, n = 3", "from = 1, n = 3", "'to'"),
        (
            'n = 3, scale = "log" }\ncontrast',
            'n = 3, scale = "logarithmic" }\ncontrast',
            "unknown scale 'logarithmic'",
        ),
        (
            "frequency = { from",
            "loudness = { from = 1, to = 2, n = 3 }\nfrequency = { from",
            "'loudness'",
        ),
        (
            'contrast = { from = 0.01, to = 1, n = 3, scale = "log" }',
            "",
            r"\[levels\] has no 'contrast'",
        ),
        (
            'probe = "detection"',
            'probe = "detektion"',
            "unknown probe 'detektion'; did you mean 'detection'",
        ),
        ('probe = "detection"', "probe = 3", "give text"),
        ('title = "A small experiment"', "", "no 'title'"),
        ('model = "castle_csf"', 'model = "castlecsf"', "did you mean 'castle_csf'"),
        (
            'model = "castle_csf"',
            'model = "castle_csf"\nfrequency = 3',
            "is what .levels. varies",
        ),
        (
            'model = "castle_csf"',
            'model = "castle_csf"\nluminance = "bright"',
            "without the unit",
        ),
        (
            'model = "castle_csf"',
            'model = "castle_csf"\ndirection = [1, 2]',
            "three numbers",
        ),
        (
            'model = "castle_csf"',
            'model = "castle_csf"\ntable = { from = 4, to = 1, n = 9 }',
            "the second larger",
        ),
        (
            'model = "castle_csf"',
            'model = "castle_csf"\ntable = { from = 1, to = 4, n = 0 }',
            "whole number",
        ),
        ("[human]\n", "human = 3\n[other]\n", "unknown key 'other'|must be a table"),
        (
            "peak = 400",
            'peak = "400 cd/m²"',
            "display.peak is the text '400 cd/m²'; give a number",
        ),
        ("peak = 400", "peek = 400", "did you mean 'peak'"),
        ("peak = 400", "peak = -1", "peak is -1"),
        (
            "[display]",
            '[observer]\ninput = "rw"\n[display]',
            "observer.input is 'rw'; give 'normalised' or 'raw'",
        ),
        (
            "[display]",
            "[observer]\nmetric_ppd = 0\n[display]",
            r"observer.metric_ppd is 0; .*pixels per degree",
        ),
        (
            "[score]",
            '[score]\nmeasure = "cosin"',
            "score.measure is 'cosin'; give 'angular'",
        ),
        ("[score]", "[score]\nbelow = -3", "above 0"),
        ('differences = ["it is small"]', "differences = 3", "list of sentences"),
        (
            'stimulus = "small_gabors.toml"',
            'stimulus = "gabor_acromatic"',
            "did you mean 'gabor_achromatic'",
        ),
        (
            'stimulus = "small_gabors.toml"',
            'stimulus = "none.toml"',
            "none.toml cannot be read",
        ),
        ("[score]", "[score", "not valid TOML"),
    ],
)
def test_each_slip_is_one_line_that_names_it(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = write_experiment(tmp_path, (old, new))
    with pytest.raises(InputError, match=message) as caught:
        # A fault that only the probe knows is reported before anything is asked.
        plan(load_experiment(path), "pixels")
    assert "small" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_name_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gabor_achromatic'"):
        load_experiment("gabor_acromatic")
    with pytest.raises(InputError, match=r"nothing\.toml cannot be read: No such file"):
        load_experiment(tmp_path / "nothing.toml")
    (tmp_path / "latin.toml").write_bytes("title = 'é'".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        load_experiment(tmp_path / "latin.toml")


def test_display_by_name(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path,
        ("[display]\npeak = 400\n", ""),
        ("probe =", 'display = "office_lcd"\nprobe ='),
    )
    assert load_experiment(path).display.peak == 200

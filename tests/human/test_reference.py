"""What a page may name as its people: a model, measured data, a table or a function of one's
own."""

from __future__ import annotations

import csv
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import (
    castle_csf,
    load_reference,
    masking_data,
    mismatches,
    modelfest_gabors,
    watson_malo_csf,
)
from psyprobe.human.models import human_label
from psyprobe.human.reference import DataReference, human_inputs
from psyprobe.stimulus.catalogue import catalogue_folder

GABOR: dict[str, Any] = {
    "frequency": 4.0,
    "luminance": 100.0,
    "radius": 1.0,
    "direction": "achromatic",
    "size": [9, 9],
}
FREQUENCY = np.array([1.0, 4.0, 16.0])


def write(folder: Path, name: str, *lines: str) -> None:
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def data(folder: Path, *lines: str, **entry: Any) -> DataReference:
    write(folder, "mine.csv", *lines)
    reference = load_reference({"data": "mine.csv", **entry}, folder)
    assert isinstance(reference, DataReference)
    return reference


# -- models
# ------------------------------------------------------------------------------------------


def test_a_model_is_asked_about_the_stimulus() -> None:
    people = load_reference({"model": "castle_csf"}, Path())
    expected = castle_csf(
        FREQUENCY, luminance=100, area=math.pi, direction="achromatic"
    )
    np.testing.assert_array_equal(
        people.sensitivity(**human_inputs(GABOR | {"frequency": FREQUENCY})), expected
    )
    assert (
        people.measured is None
        and "eccentricity" in people.inputs
        and not people.digest
    )
    grid = people.sensitivity(
        **human_inputs(
            GABOR | {"frequency": FREQUENCY[:, None], "radius": np.array([0.5, 1.0])}
        )
    )
    np.testing.assert_array_equal(grid[:, 1], expected)


def test_what_the_page_fixes_comes_before_the_stimulus() -> None:
    people = load_reference(
        {"model": "castle_csf", "area": 2, "direction": [0, 0, 1], "contrast": "rms"},
        Path(),
    )
    expected = math.sqrt(2) * castle_csf(
        FREQUENCY, luminance=100, area=2, direction="yellow_violet"
    )
    np.testing.assert_array_equal(
        people.sensitivity(**human_inputs(GABOR | {"frequency": FREQUENCY})), expected
    )
    assert people.conditions == {"area": 2, "direction": (0, 0, 1)}
    with pytest.raises(
        InputError, match=r"human\.area is given, but area is what \[levels\] varies"
    ):
        people.sensitivity(**human_inputs(GABOR | {"area": np.array([1.0, 2.0])}))


def test_a_model_that_knows_less_is_asked_less() -> None:
    people = load_reference({"model": "watson_malo_csf"}, Path())
    np.testing.assert_array_equal(
        people.sensitivity(**human_inputs(GABOR | {"frequency": FREQUENCY})),
        watson_malo_csf(FREQUENCY),
    )
    with pytest.raises(InputError, match="knows the achromatic direction only"):
        load_reference({"model": "stela_csf"}, Path()).sensitivity(
            **human_inputs(GABOR | {"direction": "red_green"})
        )


def test_a_model_is_read_from_a_table_as_published_scores_were() -> None:
    people = load_reference(
        {"model": "castle_csf", "table": {"from": 0.5, "to": 32, "n": 5}}, Path()
    )
    table = np.geomspace(0.5, 32, 5)
    expected = np.interp(
        FREQUENCY,
        table,
        castle_csf(table, luminance=100, area=math.pi, direction="achromatic"),
    )
    np.testing.assert_array_equal(
        people.sensitivity(**human_inputs(GABOR | {"frequency": FREQUENCY})), expected
    )
    with pytest.raises(
        InputError,
        match=r"table ends at 0\.5 and 32 cpd, and levels reach from 0\.1 to 4; widen",
    ):
        people.sensitivity(**human_inputs(GABOR | {"frequency": np.array([0.1, 4])}))
    with pytest.raises(InputError, match="goes with one level of castle_csf"):
        people.sensitivity(**human_inputs(GABOR))


def test_what_a_model_lacks_and_where_it_ends_are_said() -> None:
    people = load_reference({"model": "castle_csf"}, Path())
    with pytest.raises(
        InputError,
        match=r"does not tell the human model its area; give it as human\.area",
    ):
        people.sensitivity(
            **human_inputs(
                {
                    "frequency": FREQUENCY,
                    "luminance": 100.0,
                    "radius": 1.0,
                    "window": "none",
                }
            )
        )
    people = load_reference({"model": "barten_csf"}, Path())
    with pytest.raises(
        InputError, match=r"barten_csf has no threshold at frequency 1e\+09 cpd .* is 0"
    ):
        people.sensitivity(**human_inputs(GABOR | {"frequency": np.array([4.0, 1e9])}))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "either a model or data"),
        ({"model": "castle_csf", "data": "foley1994"}, "either a model or data"),
        ({"model": 3}, "human.model is 3"),
        ({"model": "castel_csf"}, "did you mean 'castle_csf'"),
        ({"data": "foley"}, "did you mean 'foley1994'"),
        ({"data": "foley1994", "table": {}}, r"unknown key in \[human\] 'table'"),
        (
            {"model": "barten_csf", "eccentricity": 1},
            r"unknown key in \[human\] 'eccentricity'",
        ),
        (
            {"model": "castle_csf", "area": "2 deg²"},
            "human.area is '2 deg²'; give a number in deg², without the unit",
        ),
        ({"model": "castle_csf", "area": -2}, "human.area is -2"),
        (
            {"model": "castle_csf", "direction": [1, 2]},
            r"human.direction is \[1, 2\]; give a name or three numbers",
        ),
        (
            {"model": "castle_csf", "contrast": "michelson"},
            "human.contrast is 'michelson'; give 'peak' or 'rms'",
        ),
        ({"model": "castle_csf", "table": {"from": 1, "to": 2}}, "human.table is"),
        (
            {"model": "castle_csf", "table": {"from": 2, "to": 1, "n": 4}},
            "human.table goes from 2 to 1",
        ),
        (
            {"model": "castle_csf", "table": {"from": 1, "to": 2, "n": 1}},
            "human.table.n is 1",
        ),
    ],
)
def test_a_bad_page_is_one_sentence(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_reference(entry, Path())
    assert "\n" not in str(caught.value)


# -- measured
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["foley1994", "gegenfurtner_kiper1992"])
def test_masking_data_of_the_catalogue(name: str) -> None:
    people, study = load_reference({"data": name}, Path()), masking_data(name)
    assert isinstance(people, DataReference)
    np.testing.assert_array_equal(
        people.sensitivity(mask_contrast=study.mask_contrast), 1 / study.threshold
    )
    levels, sensitivity = people.within({"mask_contrast": np.array([0.01, 0.3])}, {})
    inside = (study.mask_contrast >= 0.01) & (study.mask_contrast <= 0.3)
    np.testing.assert_array_equal(levels["mask_contrast"], study.mask_contrast[inside])
    np.testing.assert_array_equal(sensitivity, 1 / study.threshold[inside])
    with pytest.raises(
        InputError,
        match=r"has no threshold at mask_contrast 0\.01; people were measured at mask_con",
    ):
        people.sensitivity(mask_contrast=0.01)
    with pytest.raises(
        InputError, match=rf"{name} was measured from .* widen the levels"
    ):
        people.within({"mask_contrast": np.array([0.9, 1.0])}, {})
    with pytest.raises(
        InputError,
        match=r"goes with levels of mask_contrast, and \[levels\] varies frequency",
    ):
        people.within({"frequency": np.array([1.0, 2.0])}, {})


def test_foleys_threshold_without_a_mask() -> None:
    people = load_reference({"data": "foley1994"}, Path())
    assert people.sensitivity(mask_contrast=0) == pytest.approx(1 / 0.0261, rel=1e-3)


def test_foleys_masks_of_other_orientations(oracle_data: Path) -> None:
    people = load_reference({"data": "foley1994_orientation"}, Path())
    assert isinstance(people, DataReference) and people.conditions["frequency"] == 2.0
    with (oracle_data / "encoder_protocol" / "foley1994_masking.csv").open(
        encoding="utf-8"
    ) as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        masked_sensitivity = people.sensitivity(
            mask_orientation=float(row["mask_orientation_deg"]),
            mask_contrast=float(row["mask_contrast"]),
        )
        assert masked_sensitivity == 1 / float(row["threshold_contrast"])
    levels, sensitivity = people.within(
        {"mask_contrast": np.array([0.01, 0.5])}, {"mask_orientation": 90.0}
    )
    assert (
        len(rows) == len(people.values) == 30
        and levels["mask_contrast"].size == sensitivity.size == 8
    )
    with pytest.raises(
        InputError,
        match=r"has 2 thresholds at mask_contrast .*; say at which mask_orientation",
    ):
        people.sensitivity(mask_contrast=0.0805229471487783)


def test_modelfest_is_told_apart_by_size() -> None:
    people, study = (
        load_reference({"data": "modelfest_gabors"}, Path()),
        modelfest_gabors(),
    )
    assert isinstance(people, DataReference)
    np.testing.assert_array_equal(
        people.sensitivity(frequency=study.frequency, radius=study.radius),
        study.sensitivity,
    )
    levels, sensitivity = people.within(
        {"frequency": np.array([1, 30])}, human_inputs({"area": math.pi / 4})
    )
    np.testing.assert_array_equal(levels["frequency"], study.frequency[:10])
    np.testing.assert_array_equal(sensitivity, study.sensitivity[:10])
    with pytest.raises(
        InputError, match="has 2 thresholds at frequency 4 cpd; say at which radius"
    ):
        people.sensitivity(frequency=4)
    with pytest.raises(
        InputError,
        match=r"no threshold at radius 2 deg; people were measured at radius 0\.03125, ",
    ):
        people.within({"frequency": np.array([1, 30])}, {"radius": 2})


def test_matches_are_no_thresholds() -> None:
    people = load_reference({"data": "georgeson_sullivan1975"}, Path())
    assert (
        people.inputs == ("reference_contrast", "frequency")
        and people.conditions["luminance"] == 10
    )
    with pytest.raises(InputError, match="holds matched contrasts"):
        people.sensitivity(frequency=5, reference_contrast=0.1)


def test_own_thresholds_of_observers_are_averaged_geometrically(tmp_path: Path) -> None:
    lines = (
        "# ours",
        "frequency,luminance,contrast,observer",
        "4, 30, 0.01, a",
        "4, 30, 0.04, b",
        "1, 30, 0.02, a",
    )
    people = data(tmp_path, *lines)
    np.testing.assert_allclose(
        people.sensitivity(frequency=np.array([1.0, 4.0])), [50, 50]
    )
    assert people.conditions == {"luminance": 30} and len(people.digest) == 64
    levels, sensitivity = people.within({"frequency": np.array([0.5, 8])}, GABOR)
    np.testing.assert_array_equal(levels["frequency"], [1, 4])
    np.testing.assert_allclose(sensitivity, [50, 50])


def test_own_thresholds_without_observers_keep_every_bit(tmp_path: Path) -> None:
    people = data(tmp_path, "frequency,sensitivity", "4,33.3", "1,0.1")
    np.testing.assert_array_equal(people.sensitivity(frequency=[1.0, 4.0]), [0.1, 33.3])


@pytest.mark.parametrize("measure", ["threshold", "sensitivity"])
def test_beside_another_measure_contrast_is_a_pedestal(
    tmp_path: Path, measure: str
) -> None:
    people = data(tmp_path, f"contrast,{measure}", "0,0.5", "0.1,0.25")
    assert people.inputs == ("contrast",)
    expected = [2, 4] if measure == "threshold" else [0.5, 0.25]
    np.testing.assert_array_equal(
        people.sensitivity(contrast=np.array([0, 0.1])), expected
    )


def test_a_second_level_and_a_column_that_the_stimulus_tells(tmp_path: Path) -> None:
    lines = (
        "frequency,orientation,luminance,threshold,direction",
        "1,0,10,0.1,red_green",
        "1,45,10,0.2,red_green",
    )
    people = data(
        tmp_path,
        *lines,
        "2,0,100,0.4,red_green",
        "2,45,10,0.5,red_green",
        "2,0,10,0.8,red_green",
    )
    levels, sensitivity = people.within(
        {"orientation": np.array([0, 90]), "frequency": np.array([1, 2])},
        {"luminance": 10},
    )
    np.testing.assert_array_equal(levels["orientation"], [0, 0, 45, 45])
    np.testing.assert_array_equal(levels["frequency"], [1, 2, 1, 2])
    np.testing.assert_array_equal(1 / sensitivity, [0.1, 0.8, 0.2, 0.5])
    assert people.conditions == {"direction": "red_green"}


@given(st.lists(st.floats(1e-4, 1), min_size=1, max_size=6), st.permutations(range(6)))
def test_the_average_does_not_depend_on_the_order_of_rows(
    thresholds: list[float], order: list[int]
) -> None:
    import tempfile

    rows = [f"4,{value!r},p{i}" for i, value in enumerate(thresholds)]
    shuffled = [rows[i] for i in order if i < len(rows)]
    with tempfile.TemporaryDirectory() as folder:
        first = data(Path(folder), "frequency,contrast,observer", *rows).sensitivity(
            frequency=4
        )
        other = data(
            Path(folder), "frequency,contrast,observer", *shuffled
        ).sensitivity(frequency=4)
    assert first == other == pytest.approx(math.exp(-np.mean(np.log(thresholds))))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["frequency,dprime", "1,2"],
            "mine.csv has no column sensitivity or threshold or contrast; its columns are freq",
        ),
        (
            ["frequency,threshold,sensitivity", "1,2,3"],
            "has the columns sensitivity and threshold",
        ),
        (["contrast", "0.1"], "no column for a level"),
        (["frequency,contrast"], "has no rows"),
        ([], "has no rows"),
        (
            ["frequency,contrast", "1,0.1", "", "2,abc"],
            "line 4: contrast is 'abc'; give a number above 0",
        ),
        (["frequency,contrast", "1,nan"], "line 2: contrast is 'nan'"),
        (
            ["frequency,contrast", "1,0"],
            "line 2: contrast is '0'; give a number above 0",
        ),
        (
            ["# a", "frequency,contrast", "-1,0.1"],
            "line 3: frequency is '-1'; give a number above 0",
        ),
        (
            ["orientation,contrast", "x,0.1"],
            "line 2: orientation is 'x'; give a finite number",
        ),
        (
            ["frequency,contrast", "1,0.1", "1,0.2"],
            "has the same condition in lines 2 and 3",
        ),
        (
            ["frequency,contrast,observer", "1,0.1,a", "1,0.2,a"],
            "the same condition of observer 'a' in lines 2 and 3",
        ),
        (
            ["frequency,contrast", "1,0.1,3"],
            "line 2 has 3 cells, and there are 2 columns",
        ),
        (["frequency,frequency,contrast", "1,1,1"], "name each, each by another name"),
        (["frequency,contrast", '"1', '2",0.1'], "cell over several lines"),
        (
            ["frequency,contrast,direction", "1,0.1,red_green", "2,0.1,achromatic"],
            "directions achromatic, red_green",
        ),
        (["frequency,contrast", '1,"0.1'], "no comma-separated text"),
    ],
)
def test_a_bad_table_is_one_sentence(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        data(tmp_path, *lines)
    assert "\n" not in str(caught.value)


def test_no_table_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file 'none\.csv'"):
        load_reference({"data": "none.csv"}, tmp_path)
    (tmp_path / "mine.csv").write_bytes(b"frequency,contrast\n1,\xff\n")
    with pytest.raises(InputError, match="in UTF-8"):
        load_reference({"data": "mine.csv"}, tmp_path)
    with pytest.raises(
        InputError,
        match=r"human\.frequency is given, and so is a column frequency of mine\.csv",
    ):
        data(tmp_path, "frequency,contrast", "1,0.1", frequency=4)


# -- a function of one's own
# ------------------------------------------------------------------------------------------


def load_own(folder: Path, *lines: str, **entry: Any) -> Any:
    write(folder, "my_csf.py", *lines)
    return load_reference({"model": "my_csf.py:csf", **entry}, folder)


def test_an_own_function_gets_what_it_takes(tmp_path: Path) -> None:
    people = load_own(
        tmp_path,
        "import numpy as np",
        "def csf(frequency, phase, luminance=50, gain=100):",
        "    return gain / frequency + phase",
    )
    assert (
        people.inputs == ("frequency", "phase", "luminance", "gain")
        and len(people.digest) == 64
    )
    conditions = human_inputs(GABOR | {"frequency": FREQUENCY, "phase": 90.0})
    np.testing.assert_array_equal(
        people.sensitivity(**conditions), 100 / FREQUENCY + 90
    )
    fixed = load_reference({"model": "my_csf.py:csf", "gain": 7}, tmp_path)
    np.testing.assert_array_equal(fixed.sensitivity(**conditions), 7 / FREQUENCY + 90)
    with pytest.raises(InputError, match="does not tell the human model its phase"):
        people.sensitivity(**human_inputs(GABOR))


def test_an_own_function_may_use_a_dataclass_and_ignore_the_levels(
    tmp_path: Path,
) -> None:
    lines = (
        "from __future__ import annotations",
        "from dataclasses import dataclass",
        "@dataclass",
        "class Eye:",
        "    gain: float = 3",
    )
    people = load_own(tmp_path, *lines, "def csf(luminance):", "    return Eye().gain")
    np.testing.assert_array_equal(
        people.sensitivity(**human_inputs(GABOR | {"frequency": FREQUENCY})), [3, 3, 3]
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["def fsc(frequency):", "    return 1"],
            "unknown function in my_csf.py 'csf'; Known: fsc",
        ),
        (["x = 1", "def csf(:"], r"cannot be loaded: my_csf\.py, line 2: SyntaxError"),
        (
            ["x = 1", "y = x / 0"],
            r"cannot be loaded: my_csf\.py, line 2: ZeroDivisionError: division by zero",
        ),
        (["raise SystemExit"], "cannot be loaded: my_csf.py, line 1: SystemExit"),
        (["import nothing_of_this_name"], "line 1: ModuleNotFoundError"),
        (["csf = 3"], "unknown function in my_csf.py 'csf'"),
        (
            ["def csf(**conditions):", "    return 1"],
            r"csf takes '\*\*conditions'; give its inputs names",
        ),
        (
            [
                "import numpy",
                "def csf(frequency):",
                "    return numpy.log(frequency, where=3)",
            ],
            "fails at my_csf.py, line 3",
        ),
        (
            ["def csf(frequency):", "    if frequency > 4: return 1"],
            "fails at my_csf.py, line 2: ValueError",
        ),
        (
            ["def csf(frequency):", "    return 'high'"],
            "gives 'high', but it must give real numbers",
        ),
        (
            ["def csf(frequency):", "    return frequency + 1j"],
            "but it must give real numbers",
        ),
        (
            ["def csf(frequency):", "    pass"],
            "gives None, but it must give real numbers",
        ),
        (
            ["def csf(frequency):", "    return frequency[:2]"],
            r"gives shape \(2,\) for \(3,\)",
        ),
        (
            ["def csf(frequency):", "    return frequency - 4"],
            "no threshold at frequency 1 cpd .* is -3",
        ),
        (
            ["def csf(frequency):", "    return frequency * float('nan')"],
            "no threshold at frequency 1 cpd .* is nan",
        ),
    ],
)
def test_a_bad_function_is_one_sentence(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_own(tmp_path, *lines).sensitivity(frequency=FREQUENCY)
    assert "\n" not in str(caught.value)


def test_no_file_and_no_function_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file 'my_csf\.py'"):
        load_reference({"model": "my_csf.py:csf"}, tmp_path)
    with pytest.raises(InputError, match=r"FILE\.py:FUNCTION"):
        load_reference({"model": "my_csf.py"}, tmp_path)


# -- where the stimulus is not what people saw
# -------------------------------------------------------------------------


def test_each_difference_is_a_line() -> None:
    people = load_reference({"data": "foley1994"}, Path())
    conditions = {
        "frequency": 2.0,
        "luminance": 32.0,
        "radius": 0.5,
        "direction": "achromatic",
        "mask": "grating",
    }
    assert mismatches(people, conditions | {"contrast": 0.1, "phase": 90}) == []
    assert mismatches(people, {"frequency": 2.01, "luminance": 31.8}) == []
    assert mismatches(
        people,
        {"frequency": 4.0, "luminance": 55.0, "radius": 1.0, "direction": "red_green"},
    ) == [
        "foley1994: people were measured at frequency 2 cpd, the stimulus has 4 cpd",
        "foley1994: people were measured at luminance 32 cd/m², the stimulus has 55 cd/m²",
        "foley1994: people were measured at radius 0.5 deg, the stimulus has 1 deg",
        "foley1994: people were measured at direction achromatic, the stimulus has red_green",
    ]
    assert mismatches(people, conditions | {"frequency": np.array([1.0, 2.0])}) == [
        "foley1994: people were measured at frequency 2 cpd, the stimulus has 1 to 2 cpd"
    ]


def test_orientations_turn_and_directions_have_no_length(tmp_path: Path) -> None:
    people = data(
        tmp_path,
        "frequency,contrast,orientation",
        "1,0.1,0",
        "2,0.1,0",
        direction=[2, -2, 0],
        area=1,
    )
    assert (
        mismatches(
            people, {"orientation": 180.0, "direction": "red_green", "area": 1.005}
        )
        == []
    )
    assert (
        len(
            mismatches(
                people, {"orientation": 90.0, "direction": (1, 1, 0), "radius": 1.0}
            )
        )
        == 3
    )
    assert mismatches(people, {"orientation": 45.0}) == [
        "mine.csv: people were measured at orientation 0 deg, the stimulus has 45 deg"
    ]


def test_beyond_a_models_range_is_said() -> None:
    people = load_reference({"model": "castle_csf", "area": 2}, Path())
    assert mismatches(people, {"frequency": FREQUENCY, "luminance": 100.0}) == []
    assert mismatches(people, {"frequency": np.array([4, 100]), "radius": 1.0}) == [
        "castle_csf: the human model is asked at area 2 deg², the stimulus has 3.142 deg²",
        "castle_csf: the model is declared for frequency 0.0625 to 64 cpd, the stimulus has 4 "
        "to 100 cpd; beyond, "
        "it is extrapolated",
    ]


@given(st.floats(0.1, 30), st.floats(-0.02, 0.02))
def test_numbers_differ_from_a_percent_on(frequency: float, by: float) -> None:
    people = DataReference("mine", {}, np.array([]), {"frequency": frequency})
    differences = mismatches(people, {"frequency": frequency * (1 + by)})
    assert bool(differences) == (abs(by) > 0.01) or abs(abs(by) - 0.01) < 1e-9


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownNameError, match="georgeson_sullivan1975, meese2007"):
        load_reference({"data": "x"}, Path())


def test_people_of_the_catalogue_have_a_name_to_read() -> None:
    pages = [
        tomllib.loads(path.read_text(encoding="utf-8"))
        for path in catalogue_folder("experiments").glob("*.toml")
    ]
    models = {
        page["human"].get("model") or page["human"]["data"]
        for page in pages
        if "human" in page
    }
    assert len(models) > 10 and not [
        name for name in models if human_label(name) == name
    ]

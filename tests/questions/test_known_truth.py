"""Issue 4, point 1: a run recovers the contrast sensitivity of an observer whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.analysis.psychometric.csf_posterior import csf_posterior
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.experiment import load_experiment
from psyprobe.stimulus.catalogue import catalogue_folder

WORDINGS = '["base", "Is a pattern visible here?", "Can you see a pattern?", "Does it show a pattern?"]'
TEN_LEVELS = ("n = 12", "n = 10")
WORDS = [
    ('readout     = "auto"', 'readout     = "text"'),
    ("temperature = 0", "temperature = 1"),
]
#: The paper's design, as far as it is known: no catch trials, and a logistic function from 0 to 1.
PAPER = [
    ("catch       = 0.1", "catch       = 0"),
    ("[display]", "[fit]\nguess = 0\nlapse = 0\n\n[display]"),
]


#: A quarter of the pixels for frequencies that need no more, and one wording.
SMALL = (
    ("values = [1, 2, 4, 8, 16, 24]", "values = [1, 2, 4, 8]"),
    ('stimulus = "noise_hernandez2025"', 'stimulus = "small.toml"'),
    (
        ', "Is a pattern visible here?", "Can you see a pattern?", "Does it show a pattern?"',
        "",
    ),
)


def deviations(
    folder: Path, *changes: tuple[str, str], observer: object = None, **mind: object
) -> np.ndarray:
    """Log10 sensitivity that was found over what is true, of all wordings and frequencies."""
    small = (catalogue_folder("stimuli") / "noise_hernandez2025.toml").read_text(
        encoding="utf-8"
    )
    small = small.replace("ppd       = 64", "ppd       = 32").replace(
        "size      = 256", "size      = 128"
    )
    (folder / "small.toml").write_text(small.split("[levels]")[0], encoding="utf-8")
    text = (catalogue_folder("experiments") / "hernandez2025.toml").read_text(
        encoding="utf-8"
    )
    for old, new in (('"hernandez2025"  ', f"{WORDINGS}  "), TEN_LEVELS, *changes):
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "known.toml"
    path.write_text(text, encoding="utf-8")
    experiment, simulated = (
        load_experiment(path),
        pp.load_observer("simulated:watson-malo", **mind),
    )
    true = [
        float(
            simulated.true_sensitivity(
                experiment.spec(frequency=frequency, contrast=0.1)
            )
        )
        for frequency in experiment.levels["frequency"]
    ]
    csf = chat_csf(pp.run(path, observer or simulated), resamples=20)
    # Ten drawn answers a level may by chance fall with contrast: then there is no threshold.
    usable = csf["usable"].values
    assert usable.mean() > 0.9
    return (-csf["log10_threshold"].values - np.log10(true))[usable]


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def test_probabilities_of_ten_levels_three_times(tmp_path: Path) -> None:
    assert rms(deviations(tmp_path, *SMALL[2:], logit_sd=0.5)) < 0.03


@pytest.mark.slow
def test_words_at_ten_levels_ten_times(tmp_path: Path) -> None:
    assert rms(deviations(tmp_path, *SMALL[:2], *WORDS)) < 0.08


@pytest.mark.slow
def test_a_bias_to_say_yes_is_told_by_catch_trials(tmp_path: Path) -> None:
    assert abs(deviations(tmp_path, *SMALL[:2], *WORDS, yes_bias=0.25).mean()) < 0.05
    assert abs(deviations(tmp_path, *SMALL, yes_bias=0.25, logit_sd=0.5).mean()) < 0.05
    # The paper's fit takes it for sensitivity.
    assert deviations(tmp_path, *SMALL, *WORDS, *PAPER, yes_bias=0.25).mean() > 0.3


@pytest.mark.slow
def test_the_same_over_http(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="the chat extra is not installed")
    from psyprobe.observers.simulated.serving import SimulatedServer

    with SimulatedServer(
        pp.load_observer("simulated:watson-malo", logit_sd=0.5)
    ) as server:
        observer = pp.load_observer(
            "openai:simulated:watson-malo", base_url=server.base_url
        )
        assert (
            rms(deviations(tmp_path, *SMALL[2:], observer=observer, logit_sd=0.5))
            < 0.03
        )


@pytest.mark.slow
def test_choosing_one_of_two_images_needs_no_catch_trials(tmp_path: Path) -> None:
    two_images = [
        ('probe    = "yes_no"', 'probe    = "two_interval"'),
        (WORDINGS, '"two_image"'),
        ("catch       = 0.1", "catch       = 0"),
        # An observer that sees nothing is right half of the time, and the file need not say so.
        # With three, the images that chance drew decide by how much it is off: 0.02 to 0.045.
        ("p_yes = 3", "p_yes = 9"),
    ]
    assert rms(deviations(tmp_path, *SMALL[:2], *two_images, logit_sd=0.3)) < 0.025


#: Settings of `orientation_csf`: in which of four directions do stripes run, in words at 4 cpd.
DIRECTIONS = {
    "probe": "orientation_4",
    "asking.prompts": "orientation_4",
    "asking.readout": "text",
    "asking.temperature": 1.0,
    "levels.contrast.from": 0.004,
    "levels.contrast.to": 0.1,
}


def test_four_directions_give_the_threshold_back() -> None:
    constant = {
        "asking.design": "constant",
        "asking.options": {},
        "asking.repeats": {"text": 4, "p_yes": 1},
    }
    levels = {"levels.frequency.values": [4], "levels.contrast.n": 8}
    experiment = load_experiment("orientation_csf").with_settings(
        DIRECTIONS | constant | levels
    )
    simulated = pp.load_observer("simulated:watson-malo")
    result = pp.run(experiment, simulated, progress=False)
    # Eight contrasts, each four times in each of four directions.
    assert trials(result).sizes["trial"] == 8 * 4 * 4
    csf = chat_csf(result, resamples=20).isel(frequency=0)
    low, high = (float(csf[f"mean_sensitivity_{end}"]) for end in ("low", "high"))
    true = float(
        simulated.true_sensitivity(experiment.spec(frequency=4.0, contrast=0.1)).item()
    )
    assert low < true < high < 2 * low


def test_an_adaptive_design_is_told_each_of_four_directions_by_itself() -> None:
    options = {"prior": "any", "stop": 0, "n_max": 40}
    experiment = load_experiment("orientation_csf").with_settings(
        DIRECTIONS | {"asking.options": options, "levels.frequency.values": [1, 4]}
    )
    simulated = pp.load_observer("simulated:watson-malo")
    result = pp.run(experiment, simulated, progress=False)
    assert trials(result).sizes["trial"] == 4 * 40
    csf = chat_csf(result, resamples=20)
    true = [
        float(
            simulated.true_sensitivity(
                experiment.spec(frequency=f, contrast=0.1)
            ).item()
        )
        for f in (1.0, 4.0)
    ]
    low, high = (csf[f"mean_sensitivity_{end}"].values for end in ("low", "high"))
    assert ((low < true) & (true < high) & (high < 2 * low)).all()
    # The posterior of 160 answers, and not of 40 shares of them; of four images not quite the same
    # contrast arrives.
    posterior = csf_posterior((1.0, 4.0), (0.004, 0.1), 0.25)
    table = trials(result)
    columns = (
        table[name].values for name in ("frequency", "delivered_contrast", "response")
    )
    for frequency, contrast, response in zip(*columns, strict=True):
        posterior.tell(
            (1.0, 4.0).index(frequency), float(np.log10(contrast)), float(response)
        )
    posterior = posterior.refined(posterior.csf)
    log_sensitivity = np.log10(csf["mean_sensitivity"].values)
    np.testing.assert_allclose(
        log_sensitivity, [-posterior.mean(0), -posterior.mean(1)], atol=1e-3
    )

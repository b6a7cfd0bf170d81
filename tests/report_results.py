"""Results for reports, made in a moment: ten observers on nine tests, questions in words, and
hostile text."""

from __future__ import annotations

import numpy as np
import xarray as xr
from chat_results import chat_result
from detection_results import simulated_result
from matching_results import simulated_matching

HOSTILE = (
    "</script><script>document.title='broken'</script><img src=x "
    "onerror=\"document.title='broken'\">\u202e\x1b[31m"
)
PAGE = """title = {title}
source = "Cai et al. (2025)"
stimulus = "gabor_achromatic"
probe = "detection"
[levels]
frequency = {{ from = 0.5, to = 28, n = 20, scale = "log" }}
contrast = {{ from = 0.001, to = 1, n = 20, scale = "log" }}
[human]
model = "castle_csf"
"""
ABOUT = {
    "observer_card": '{"ability": "features", "paper": "A paper (2020)", "device": "cpu", '
    '"weights": "none"}',
    "display": '{"peak": 400.0, "black": 0.0, "ambient": 0.0, "eotf": "srgb"}',
    "software": '{"numpy": "2.0"}',
    "psyprobe_version": "0.1.0",
    "ppd": 60.0,
    "size": "[224, 224]",
}


def with_run_attributes(
    result: xr.Dataset, experiment: str, observer: str
) -> xr.Dataset:
    """The result with what every run tells."""
    page = PAGE.format(title=f'"The test {experiment}"')
    names = {
        "experiment": experiment,
        "experiment_digest": experiment,
        "experiment_toml": page,
        "observer": observer,
    }
    return result.assign_attrs(**ABOUT, **names)


def contours(
    observer: str, experiment: str = "gabor_achromatic", seed: int = 0
) -> xr.Dataset:
    """A band-pass observer with noise, so that no number compresses for being round."""
    rng = np.random.default_rng(seed)
    peak, gain = 2.0 + rng.uniform(0, 6), 0.05 + 0.2 * rng.random()

    def response(f: np.ndarray, c: np.ndarray) -> np.ndarray:
        tuned = np.exp(-((np.log(f / peak)) ** 2) / 2)
        return (
            gain
            * tuned
            * c
            * np.exp(0.05 * rng.standard_normal(np.broadcast(f, c).shape))
        )

    return with_run_attributes(simulated_result(response), experiment, observer)


def matches(
    observer: str, experiment: str = "contrast_matching", seed: int = 0
) -> xr.Dataset:
    slope = 0.5 + 0.1 * seed
    return with_run_attributes(
        simulated_matching(lambda f, c: 0.3 * c**slope / (1 + 0.02 * f)),
        experiment,
        observer,
    )


def words(observer: str, guess: float = 0.0) -> xr.Dataset:
    result = chat_result(
        observer=observer, guess=guess, frequencies=(1.0, 4.0), repeats=5, catch=10
    )
    return with_run_attributes(result, "hernandez2025", observer)


def ten_on_nine() -> list[xr.Dataset]:
    """Seven tests with contours and two of matching."""
    results = []
    for i in range(10):
        name = f"zoo:an_encoder_with_a_long_name_{i}.and_its_weights"
        results += [contours(name, f"test_{k}", seed=10 * k + i) for k in range(7)]
        results += [matches(name, f"matching_{k}", seed=i) for k in range(2)]
    return results

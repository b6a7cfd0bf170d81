"""External noise for people: the page gets the pixels of the specification, at the screen's own size."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from seated import screen, seated
from simulated_person import SimulatedPerson

from psyprobe.errors import GamutError, InputError
from psyprobe.experiment import load_experiment
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.patterns import shader_values, target_of
from psyprobe.observers.people.server import PersonServer
from psyprobe.probes import load_probe
from psyprobe.stimulus.specification import Specification
from psyprobe.tasks.people.patterns import PatternSession
from psyprobe.tasks.remote_study.study import export_study

SHORT = load_experiment("orientation_in_noise").with_settings(
    {"asking.options.n_max": 3, "levels.frequency.values": [2, 4]}
)


def field_of(values: dict[str, object], side: int) -> np.ndarray:
    """Contrast of each pixel as the page adds it, the highest row first."""
    steps = np.frombuffer(base64.b64decode(str(values["pixels"])), "<i2")
    return np.asarray(
        steps.reshape(side, side)[::-1] / 32767 * float(str(values["pixel_scale"]))
    )


def page_values(spec: Specification) -> dict[str, object]:
    return shader_values(spec.to_dict(), screen().uniforms(), screen())


def test_the_page_gets_the_noise_of_the_specification() -> None:
    probe = load_probe("orientation")
    scene = probe.plan(SHORT, PersonObserver("ANNA", "", screen())).scene
    (spec,) = scene.plan_trial(4.0, 0.05, 0, 1).specs
    assert spec.ppd == pytest.approx(screen().ppd)
    values = page_values(spec)
    assert values["contrast"] == 0.05
    field = field_of(values, spec.shape[0])
    noise = spec.reference().draw().luminance / spec.luminance - 1
    np.testing.assert_allclose(field, noise, atol=2e-5)
    assert field.var() / spec.ppd**2 == pytest.approx(2.78e-6, rel=0.05)
    # A blank is the noise alone.
    blank = page_values(spec.reference())
    assert blank["contrast"] == 0.0
    assert blank["pixels"] == values["pixels"]
    assert target_of(spec.to_dict())["orientation"] == 90.0


def test_no_noise_is_sent_where_there_is_none() -> None:
    spec = load_experiment("orientation_csf").spec()
    assert not {"pixels", "pixel_scale"} & page_values(spec).keys()


def test_a_session_in_noise(tmp_path: Path) -> None:
    session = PatternSession(SHORT, "ANNA", tmp_path / "runs.sqlite")
    with PersonServer(session) as server:
        person = SimulatedPerson(server.address, seed=3)
        end = person.sit(person.begin())
    assert end["phase"] == "done", end


def test_attempts_of_a_level_have_noise_of_their_own(tmp_path: Path) -> None:
    result = seated(tmp_path / "runs.sqlite", "ANNA", 3, experiment=SHORT)
    assert int((result["trial_number"] >= 0).sum()) == 6


def test_what_a_page_cannot_draw_is_refused() -> None:
    probe = load_probe("orientation")
    masked = load_experiment("gabor_masked_parallel").spec()
    with pytest.raises(InputError, match=r"alone or in noise.*gabor \+ grating"):
        screen().drawn(masked, masked)
    # A fine screen needs more than the light that there is.
    with pytest.raises(InputError, match="fewer pixels per degree"):
        probe.plan(SHORT, PersonObserver("ANNA", "", screen(distance=3000.0)))
    with pytest.raises(GamutError, match="five standard deviations"):
        probe.plan(SHORT, PersonObserver("ANNA", "", screen(distance=1600.0)))
    with pytest.raises(InputError, match=r"has \[noise\]"):
        export_study(
            SHORT.with_settings({"asking.design": "constant", "asking.options": {}}),
            "study",
        )

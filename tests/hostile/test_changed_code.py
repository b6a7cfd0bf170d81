"""Fourteen ways to change what answers under one name: none is used for the other in silence.

After each change the same run either asks everything anew, and ends as in a new store, or is
refused by one sentence that says how to tell the two apart.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_server import listed, local
from small_experiment import write_experiment
from small_questions import write_questions

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, PsyprobeError, StoreError
from psyprobe.files.images import encode_png
from psyprobe.files.programs import package_digest
from psyprobe.observers.registry import loaded_as
from psyprobe.running.jobs import ObserverRecipe, _load
from psyprobe.stimulus.registry import KINDS

OBSERVER_PACKAGE = """
from psyprobe.observers import ObserverKind, observer

def load(name):
    return observer(lambda images: images.mean(axis=2) ** POWER, name=f"powers:{name}")

KIND = ObserverKind("powers", load, form="powers:NAME", summary="powers")
"""
STIMULUS_PACKAGE = """
from typing import Any
import numpy as np
from psyprobe.stimulus import Modulation, parameter, pattern

class Stripes(Modulation):
    frequency: Any = parameter("cpd", "Frequency", low=0, above=True)
    contrast_kind = "michelson"

    def unit(self):
        x = pattern.pixel_positions(self.shape[1], self.ppd)
        wave = [np.sin(2 * np.pi * f * x) ** POWER for f in self.per_image("frequency")]
        return np.stack([np.broadcast_to(row, self.shape) for row in wave])
"""
NETWORK = """
import helper

def build():
    return helper.Net()
"""
HELPER = """
import torch

class Net(torch.nn.Module):
    def forward(self, images):
        return images.mean(dim=2).flatten(1) ** POWER
"""
PHOTO = """
from pathlib import Path
from typing import Any
import numpy as np
from psyprobe.files.images import decode_image
from psyprobe.stimulus import Modulation, file_parameter, parameter

class Photo(Modulation):
    frequency: Any = parameter("cpd", "Frequency", low=0, above=True)
    FIELD
    contrast_kind = "michelson"

    def unit(self):
        codes = decode_image(Path(PATH).read_bytes(), "photo")
        plane = codes[..., 0] / 127.5 - 1
        return np.stack([plane] * max(1, int(np.prod(self.batch))))
"""
#: How a page of the small experiment names a kind of one's own.
OWN_KIND = (('kind = "gabor"', 'kind = "KIND"'), ("radius = 0.3\n", ""))


class Setup:
    """A folder in which something changes, as in the next process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.page = write_experiment(folder)
        self.observer: Any = "pixels"
        self._monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(self, name: str, text: str) -> None:
        """Write a file and forget what was imported, as a new process would."""
        (self.folder / name).write_text(text, encoding="utf-8")
        for module in ("powers", "stripes", "helper"):
            sys.modules.pop(module, None)
        KINDS.pop("stripes", None)
        importlib.invalidate_caches()

    def install(self, group: str, name: str, value: str) -> None:
        package = self.folder / f"{name}-1.0.dist-info"
        package.mkdir(exist_ok=True)
        (package / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        (package / "entry_points.txt").write_text(
            f"[psyprobe.{group}]\n{name} = {value}\n"
        )

    def use_kind(self, kind: str, *further: tuple[str, str]) -> None:
        kind_changes = [(old, new.replace("KIND", kind)) for old, new in OWN_KIND]
        human = ('model = "castle_csf"', 'model = "castle_csf"\narea = 1.0')
        self.page = write_experiment(
            self.folder, human, stimulus=(*kind_changes, *further)
        )


def plug_in_observer(setup: Setup, changed: bool) -> None:
    setup.install("observers", "powers", "powers:KIND")
    setup.write("powers.py", OBSERVER_PACKAGE.replace("POWER", "3" if changed else "1"))
    setup.observer = "powers:all"


def plug_in_stimulus(setup: Setup, changed: bool) -> None:
    setup.install("stimuli", "stripes", "stripes:Stripes")
    setup.write(
        "stripes.py", STIMULUS_PACKAGE.replace("POWER", "3" if changed else "1")
    )
    setup.use_kind("stripes")


def imported_helper(setup: Setup, changed: bool) -> None:
    pytest.importorskip("torch", reason="the encoders extra is not installed")
    setup.write("helper.py", HELPER.replace("POWER", "3" if changed else "1"))
    setup.write("net.py", NETWORK)
    setup.observer = f"torch:{setup.folder / 'net.py'}:build"


def network(**settings: Any) -> Any:
    """A module whose attribute, buffer, precision or forward can be another."""
    torch = pytest.importorskip("torch", reason="the encoders extra is not installed")

    class Net(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            with torch.random.fork_rng():
                torch.manual_seed(1)
                self.layer = torch.nn.Conv2d(3, 6, 4, stride=4)
            self.power = settings.get("power", 1)
            scale = torch.full((1,), settings.get("scale", 1.0))
            self.register_buffer("scale", scale, persistent=False)

        def forward(self, images: Any) -> Any:
            with torch.autocast("cpu", torch.bfloat16, settings.get("short", False)):
                maps = self.layer(images)
            features = (maps.float() + self.scale) ** self.power
            return torch.tanh(features) if settings.get("squashed") else features

    return Net()


def attribute(setup: Setup, changed: bool) -> None:
    setup.observer = pp.observer(network(power=3 if changed else 1), name="net")


def buffer(setup: Setup, changed: bool) -> None:
    setup.observer = pp.observer(network(scale=0.5 if changed else 1.0), name="net")


def forward(setup: Setup, changed: bool) -> None:
    setup.observer = pp.observer(network(squashed=changed), name="net")


def hook(setup: Setup, changed: bool) -> None:
    module = network()
    if changed:
        module.layer.register_forward_hook(lambda layer, images, maps: maps**3)
    setup.observer = pp.observer(module, name="net")


def autocast(setup: Setup, changed: bool) -> None:
    setup.observer = pp.observer(network(short=changed), name="net")


def training(setup: Setup, changed: bool) -> None:
    """One observer, whose module is trained between two runs."""
    if setup.observer == "pixels":
        setup.module = network()  # type: ignore[attr-defined]
        setup.observer = pp.observer(setup.module, name="net")  # type: ignore[attr-defined]
    elif changed:
        setup.module.layer.weight.data.mul_(0.5)  # type: ignore[attr-defined]


def function(setup: Setup, changed: bool) -> None:
    def mean_colour(images: FloatArray) -> FloatArray:
        return images.mean(axis=2) ** (3 if changed else 1)

    setup.observer = pp.observer(mean_colour)


def lambdas(setup: Setup, changed: bool) -> None:
    power = 3 if changed else 1
    setup.observer = pp.observer(
        lambda test, reference: (np.abs(test - reference) ** power).mean((1, 2, 3)),
        name="metric",
    )


def picture(setup: Setup, changed: bool, *, declared: bool = True) -> None:
    """A kind that draws a picture, which is replaced."""
    code = np.random.default_rng(2 if changed else 1).integers(
        0, 256, (16, 16, 1), np.uint8
    )
    (setup.folder / "photo.png").write_bytes(encode_png(np.repeat(code, 3, axis=-1)))
    field = 'picture: str = file_parameter("Picture")' if declared else ""
    path = "self.picture" if declared else repr(str(setup.folder / "photo.png"))
    setup.write("photo.py", PHOTO.replace("FIELD", field).replace("PATH", path))
    line = 'picture = "photo.png"\n' if declared else ""
    setup.use_kind("photo.py:Photo", ("contrast = 0.5\n", f"contrast = 0.5\n{line}"))


#: Each is called for what stands before, and again for what stands after the change.
WAYS: dict[str, Callable[[Setup, bool], None]] = {
    "plug-in observer edited": plug_in_observer,
    "plug-in stimulus edited": plug_in_stimulus,
    "imported helper edited": imported_helper,
    "Python attribute": attribute,
    "non-persistent buffer": buffer,
    "forward edited": forward,
    "forward hook": hook,
    "autocast inside": autocast,
    "weights changed after wrapping": training,
    "two functions of one name": function,
    "two lambdas of one name": lambdas,
    "picture replaced": picture,
}
#: These two servers, too, make fourteen; the list of each names no more than was asked for.
SERVERS = {
    "two servers list one name": ({"model": "llama-A"}, {"model": "qwen-B"}),
    "model behind an alias": ({"model": "local-1"}, {"model": "local-2"}),
}


def responses(setup: Setup, store: Path | None) -> FloatArray:
    result = pp.run(setup.page, setup.observer, store=store, progress=False)
    measure = next(name for name in result if name.startswith("response_"))
    values: FloatArray = result[measure].values
    return values


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_changed_code_is_noticed_or_asked_anew(
    change: Callable[[Setup, bool], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = Setup(tmp_path, monkeypatch)
    store = tmp_path / "runs.sqlite"
    change(setup, False)
    before = responses(setup, store)
    change(setup, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConditionWarning)
        np.testing.assert_array_equal(responses(setup, store), before)
    change(setup, True)
    after = responses(setup, None)
    assert not np.allclose(after, before, rtol=1e-6)
    try:
        repeated = responses(setup, store)
    except StoreError as refusal:
        assert "version=" in str(refusal) and "new store" in str(refusal)
    else:
        np.testing.assert_array_equal(repeated, after)


@pytest.mark.parametrize(("before", "after"), SERVERS.values(), ids=SERVERS)
def test_another_model_is_noticed_though_all_is_stored(
    before: dict[str, str], after: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("aiohttp", reason="the chat extra is not installed")
    page = write_questions(tmp_path)
    store = tmp_path / "runs.sqlite"

    def ask(server: Any) -> Any:
        observer = pp.load_observer("openai:m", base_url=server.url, retries=1)
        return pp.run(page, observer, store=store, progress=False)

    with local("Yes", listed("m"), **before) as server:
        ask(server)
        questions = len(server.requests)
        ask(server)
        # A second look at the list, and one small question.
        assert len(server.requests) == questions + 2
    with (
        local("No", listed("m"), **after) as other,
        pytest.raises(StoreError, match="server=NAME"),
    ):
        ask(other)
    assert len(other.requests) == 2


def test_a_server_that_names_nothing_is_told_before_answers_mix(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="the chat extra is not installed")
    store = tmp_path / "runs.sqlite"

    def ask(page: Path) -> None:
        with local("Yes", listed("m")) as server:
            observer = pp.load_observer("openai:m", base_url=server.url, retries=1)
            pp.run(page, observer, store=store, progress=False)

    page = write_questions(tmp_path)
    ask(page)
    # Nothing new is asked, so nothing mixes.
    ask(page)
    longer_page = write_questions(tmp_path, ("[2, 4]", "[2, 3, 4]"), name="more")
    with pytest.warns(
        ConditionWarning, match="says no more of the model than this name"
    ):
        ask(longer_page)


def test_a_picture_that_nobody_declared_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Setup(tmp_path, monkeypatch)
    picture(setup, changed=False, declared=False)
    responses(setup, tmp_path / "runs.sqlite")
    picture(setup, changed=True, declared=False)
    with pytest.raises(StoreError, match="what a stimulus reads has changed"):
        responses(setup, tmp_path / "runs.sqlite")


def test_sources_are_followed_through_a_package_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "labplug/__init__.py": "from .core import look\n",
        "labplug/core.py": "def look():\n    from labplug.parts import deep\n",
        "labplug/parts/__init__.py": "",
        "labplug/parts/deep.py": "from ..tools import POWER\nimport numpy, labother\n",
        "labplug/tools.py": "POWER = 1\n",
        "labplug/unrelated.py": "",
        "labother.py": "",
    }
    monkeypatch.syspath_prepend(str(tmp_path))

    def digest() -> str | None:
        for name in [name for name in sys.modules if name.startswith("lab")]:
            del sys.modules[name]
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        importlib.invalidate_caches()
        importlib.import_module("labplug")
        return package_digest("labplug")

    before = digest()
    for name in files:
        text = files[name]
        files[name] = text + "# edited\n"
        is_part = name not in ("labplug/unrelated.py", "labother.py")
        assert (digest() != before) == is_part, name
        files[name] = text
    # Imported code counts as it was at its import.
    assert digest() == before
    (tmp_path / "labplug" / "core.py").write_text("")
    assert package_digest("labplug") == before


def test_a_worker_does_not_take_the_observer_of_another_code(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    name = f"{path}:look"
    source = "def look(images):\n    return images.mean(axis=2) ** POWER\n"
    path.write_text(source.replace("POWER", "1"))
    before = pp.load_observer(name)
    path.write_text(source.replace("POWER", "3"))
    after = pp.load_observer(name)
    recipe = ObserverRecipe(after.card.to_dict(), loaded_as(after))
    assert _load(recipe, before).card.digest == after.card.digest
    assert _load(recipe, after) is after


def test_what_is_asked_again_is_one_batch_and_nothing_for_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_sizes = []

    def mean_colour(images: FloatArray) -> FloatArray:
        batch_sizes.append(len(images))
        return images.mean(axis=2)

    setup = Setup(tmp_path, monkeypatch)
    setup.observer = pp.observer(mean_colour)
    store = tmp_path / "runs.sqlite"
    responses(setup, store)
    first = sum(batch_sizes)
    batch_sizes.clear()
    pp.plan(setup.page, setup.observer, store=store)
    assert not batch_sizes
    pp.run(setup.page, setup.observer, store=store, batch_size=None, progress=False)
    assert 0 < sum(batch_sizes) <= first
    batch_sizes.clear()
    responses(setup, tmp_path / "another.sqlite")
    assert sum(batch_sizes) == first


def test_an_observer_that_answers_at_random_is_told_and_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(1)

    def noisy(images: FloatArray) -> FloatArray:
        rows = images.mean(axis=2)
        return rows + generator.normal(0, 0.1, rows.shape).astype("float32")

    setup = Setup(tmp_path, monkeypatch)
    setup.observer = pp.observer(noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        before = responses(setup, tmp_path / "runs.sqlite")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConditionWarning)
        np.testing.assert_array_equal(
            responses(setup, tmp_path / "runs.sqlite"), before
        )
    assert any("differently each time" in str(warning.message) for warning in caught)


def test_a_file_of_a_kind_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    way_kind = PHOTO.replace("FIELD", 'picture: str = file_parameter("Picture")')
    (tmp_path / "photo.py").write_text(way_kind.replace("PATH", "self.picture"))
    page = write_experiment(
        tmp_path,
        stimulus=(
            ('kind = "gabor"', 'kind = "photo.py:Photo"'),
            ("radius = 0.3\n", ""),
            ("contrast = 0.5\n", 'contrast = 0.5\npicture = "gone.png"\n'),
        ),
    )
    with pytest.raises(PsyprobeError, match=r"picture is .*gone\.png.*give the path"):
        pp.run(page, "pixels", progress=False)

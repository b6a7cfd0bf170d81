"""The package as users get it: light to import, complete in the wheel, honest about its public
names."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import psyprobe as pp

ROOT = Path(__file__).resolve().parents[1]


def test_importing_psyprobe_loads_nothing_heavy() -> None:
    code = "import sys, psyprobe; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stdout.split()
    assert not {
        "torch",
        "matplotlib",
        "colour",
        "scipy",
        "xarray",
        "pandas",
        "numpy",
        "timm",
    } & set(loaded)


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["run", "--help"], ["serve-simulated", "--help"]],
)
def test_help_waits_for_nothing_heavy(words: list[str]) -> None:
    code = f"""import sys
from psyprobe.cli import main
try:
    main({words!r})
except SystemExit:
    pass
print(*sorted({{name.split('.')[0] for name in sys.modules}}), file=sys.stderr)"""
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stderr.split()
    assert not {
        "numpy",
        "pandas",
        "xarray",
        "scipy",
        "matplotlib",
        "torch",
        "colour",
        "PIL",
    } & set(loaded)


@pytest.mark.parametrize(
    ("module", "late"),
    [
        # They take as long to load as kept fits to score; only ideal observers need them.
        ("psyprobe.analysis.words.score", {"scipy.stats", "scipy.optimize"}),
        ("psyprobe.probes", {"numpy"}),
        ("psyprobe.stimulus", {"PIL"}),
    ],
)
def test_what_few_need_is_loaded_late(module: str, late: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stdout.split()
    assert not late & set(loaded)


def test_every_public_name_is_there() -> None:
    for name in pp.__all__:
        assert getattr(pp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pp.nonsense


def test_every_package_folder_is_listed_for_the_wheel() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    folders = {
        ".".join(p.parent.relative_to(ROOT).parts)
        for p in (ROOT / "psyprobe").rglob("__init__.py")
    }
    assert (
        folders | {"psyprobe._catalogue.stimuli", "psyprobe._catalogue.experiments"}
        == listed
    )


@pytest.mark.slow
def test_an_installed_wheel_lists_and_runs_far_from_the_checkout(
    tmp_path: Path,
) -> None:
    # Built from a copy: the build leaves folders behind, and must not find those of an earlier one.
    source = tmp_path / "source"
    for name in ("psyprobe", "stimuli", "experiments"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            tmp_path,
            source,
        ],
        check=True,
        capture_output=True,
        timeout=1200,
    )
    (wheel,) = tmp_path.glob("*.whl")
    environment = tmp_path / "environment"
    # The fresh environment sees the libraries of this one, but not this checkout.
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stdout.strip()
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-e", wheel, site],
        check=True,
        timeout=1200,
    )
    libraries = {str(Path(p)) for p in sys.path if Path(p).name == "site-packages"}
    (Path(site) / "libraries.pth").write_text(
        "\n".join(sorted(libraries)), encoding="utf-8"
    )
    away = tmp_path / "away"
    away.mkdir()
    # It would put this checkout before the wheel.
    variables = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    }

    def psyprobe(*arguments: str) -> str:
        process = subprocess.run(
            [python, "-m", "psyprobe", *arguments],
            cwd=away,
            env=variables,
            capture_output=True,
            text=True,
            timeout=1200,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    where = subprocess.run(
        [python, "-c", "import psyprobe; print(psyprobe.__file__)"],
        cwd=away,
        env=variables,
        capture_output=True,
        text=True,
        timeout=1200,
    ).stdout
    assert where.startswith(site)
    assert "gabor_achromatic" in psyprobe("list", "stimuli")
    assert "gabor_achromatic_published" in psyprobe("list", "experiments")
    (away / "small.toml").write_text(
        (ROOT / "experiments" / "gabor_achromatic.toml")
        .read_text(encoding="utf-8")
        .replace("n = 20", "n = 3"),
        encoding="utf-8",
    )
    psyprobe("run", "small.toml", "--observer", "pixels", "--output", "results")
    result = json.loads(psyprobe("score", "results/runs.sqlite", "--json"))
    assert result
    # The published scores and the human data are tables inside the package.
    tables = (
        "pp.analysis.published_scores(), pp.human.masking_data('foley1994'), "
        "pp.human.matching_data(), "
        "pp.human.thresholds(), pp.human.observers()"
    )
    subprocess.run(
        [python, "-c", f"import psyprobe as pp; {tables}"],
        cwd=away,
        env=variables,
        check=True,
        timeout=1200,
    )


def test_constraints_are_within_what_psyprobe_asks_for() -> None:
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().split("\n")
        if "==" in line
    )
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = [
        parser["options"]["install_requires"],
        *parser["options.extras_require"].values(),
    ]
    requirements = [
        Requirement(line) for text in listed for line in text.split("\n") if line
    ]
    assert all(
        requirement.specifier.contains(pinned[requirement.name])
        for requirement in requirements
        if requirement.name in pinned
    )
    assert {
        "numpy",
        "scipy",
        "pandas",
        "xarray",
        "torch",
        "timm",
        "statsmodels",
        "colour-science",
    } <= set(pinned)
    assert "-c constraints.txt" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_place_names_one_version_and_the_same_requirements() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert parser["metadata"]["version"] == pp.__version__
    assert (
        f'version = "{pp.__version__}"' in recipe
        and f"\nversion: {pp.__version__}\n" in citation
    )
    requirements = {
        Requirement(line)
        for line in parser["options"]["install_requires"].split("\n")
        if line
    }
    # conda has matplotlib without its windows under another name.
    expected = {
        f"{requirement.name.replace('matplotlib', 'matplotlib-base')} {requirement.specifier}"
        for requirement in requirements
    }
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    assert {line.strip(" -") for line in run.split("\n")} == expected | {
        f"python {parser['options']['python_requires']}"
    }


def test_imports_of_a_command_are_kept_without_looking_for_garbage(
    tmp_path: Path,
) -> None:
    (tmp_path / "heavy.py").write_text("import gc; looked = gc.isenabled()", "utf-8")
    code = (
        "import gc; from psyprobe.files.lazy import import_for_good as load; "
        "print(load('heavy').looked, gc.isenabled(), gc.get_freeze_count() > 0); "
        "gc.unfreeze(); load('heavy'); print(gc.get_freeze_count())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stdout
    assert printed.split() == ["False", "True", "True", "0"]

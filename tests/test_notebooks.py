"""The notebooks run from top to bottom, and come with what they gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_comes_with_its_outputs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    code = [
        cell
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code"
    ]
    outputs = [output for cell in code for output in cell.outputs]
    assert len(outputs) >= len(code) / 2 and not [
        output for output in outputs if output.output_type == "error"
    ]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    text = path.read_text(encoding="utf-8")
    plain_text = re.sub(r'"image/png": "[^"]*"|base64,[A-Za-z0-9+/=]+', "", text)
    assert len(text) < 1_000_000 and not re.search(
        r"/(root|home|work|tmp)/", plain_text
    )


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """One kernel for all notebooks: torch takes seconds to import."""
    manager = pytest.importorskip("jupyter_client").KernelManager(kernel_name="python3")
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the notebook client's own libraries warn
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path: Path, kernel: Any) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for package in ("timm", "torch"):
        pytest.importorskip(package)
    notebook = nbformat.read(path, as_version=4)
    # Names of the notebook before are forgotten.
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=1200)
    try:
        client.execute()
    finally:
        client.kc.stop_channels()

"""A network in an ONNX file as an encoder: "onnx:FILE", run by onnxruntime, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError, check_known
from psyprobe.files.images import file_digest
from psyprobe.observers.encoders.network import (
    chosen_layers,
    explained,
    weights_file,
)
from psyprobe.observers.images import (
    as_numpy,
    check_finite,
    check_images,
    checked_size,
    drive_range,
    size_text,
    three_channels,
)
from psyprobe.observers.protocol import Card

#: The axes of channels, height and width.
_LAYOUTS = {"NCHW": (1, 2, 3), "NHWC": (3, 1, 2)}


@dataclass(frozen=True)
class OnnxOptions:
    """Options of an observer made of a network in an ONNX file.

    Parameters
    ----------
    input : {"normalised", "raw"}
        Whether `mean` and `std` are applied to the drive, or it goes in as it is.
    layers : "all" or iterable of str, optional
        Names of tensors of the graph in the order wanted, those between its nodes too; "all" is
        every output of the graph, None its first.
    device : str, optional
        "cpu", on which it computes.
    mean, std : tuple of float
        The normalisation that the network was trained with, a value a channel, for drive in [0, 1]:
        of codes from 0 to 255, divide both by 255.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px, where the graph takes several; any size if neither says.
    layout : {"NCHW", "NHWC"}, optional
        The order of the input's axes; by default the one that puts three channels where the graph
        has three.
    """

    input: str = "normalised"
    layers: str | Iterable[str] | None = None
    device: str | None = None
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    input_size: int | tuple[int, int] | None = None
    layout: str | None = None


class OnnxObserver:
    """An observer that encodes images by an ONNX graph.

    Parameters
    ----------
    file : str
        Its file; tensors that it keeps in files beside it are found there.
    options : OnnxOptions
        How it is looked through.
    """

    def __init__(self, file: str, options: OnnxOptions) -> None:
        import onnx

        name = f"onnx:{file}"
        path = weights_file(file, name)
        if options.device not in (None, "cpu"):
            raise InputError(
                f"{name} cannot run on device {options.device!r}: ONNX files run on the "
                "processor, device=cpu"
            )
        # Whatever protobuf stumbles over.
        with explained(f"{name}: {path} is no ONNX file", Exception):
            model = onnx.load(str(path), load_external_data=False)
        input_tensor = _input(name, model.graph)
        self._input = input_tensor.name
        axes = [axis.dim_value for axis in input_tensor.type.tensor_type.shape.dim]
        self._format = _input_dtype(name, input_tensor)
        layout = _find_layout(name, axes, options.layout)
        _, high, wide = _LAYOUTS[layout]
        self._channels_last = layout == "NHWC"
        self._at_once = axes[0]
        outputs = tuple(tensor.name for tensor in model.graph.output)
        tensors = (tensor for node in model.graph.node for tensor in node.output)
        features = chosen_layers(
            name,
            outputs[:1] if options.layers is None else options.layers,
            outputs,
            filter(None, tensors),
        )
        self._session = _session(name, path, model, features)
        self.card = Card(
            name=name,
            ability="features",
            features=features,
            input_size=_size(name, (axes[high], axes[wide]), options.input_size),
            input="raw" if options.input == "raw" else "normalised",
            mean=three_channels(name, "mean", options.mean),
            std=three_channels(name, "std", options.std),
            dtype=str(self._format),
            weights=f"file {path}",
            weights_digest=_digest(path, model.graph),
            options={"layout": layout},
            software={package: version(package) for package in ("onnx", "onnxruntime")},
        )

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Compute features of images from one run of the graph; maps and tokens are flattened.

        Raises
        ------
        InputError
            If the images are not of the size or format that the graph looks at, or a tensor is not
            one row an image.
        PsyprobeError
            If onnxruntime fails, or a feature is not finite.
        """
        batch = self._hand_over(images)
        step = self._at_once or len(batch)
        parts = [
            self._run(batch[first : first + step], step)
            for first in range(0, len(batch), step)
        ]
        features = {
            name: np.concatenate([part[name] for part in parts])
            for name in self.card.features
        }
        check_finite(self.card, features)
        return features

    def _hand_over(self, images: Array) -> FloatArray:
        """Normalise images in float32, and cast them to the graph's dtype."""
        card = self.card
        images = check_images(
            images,
            card.name,
            input_size=card.input_size,
            pixel_range=drive_range(card),
            colour=True,
        )
        pixels: FloatArray = np.asarray(as_numpy(images, card.name), dtype=np.float32)
        if card.input == "normalised":
            mean, std = (
                np.asarray(values, dtype=np.float32) for values in (card.mean, card.std)
            )
            pixels = np.divide(pixels - mean, std)
        order = pixels if self._channels_last else pixels.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(order, dtype=self._format)

    def _run(self, batch: FloatArray, step: int) -> dict[str, FloatArray]:
        """Run the graph on at most `step` images at a time, and return rows by feature.

        The batch is filled up with copies of the last image.
        """
        full = np.concatenate([batch, np.repeat(batch[-1:], step - len(batch), axis=0)])
        message = (
            f"{self.card.name}: onnxruntime cannot run it on a batch of {full.shape}"
        )
        # onnxruntime has no common class of its own.
        with explained(message, Exception, error=PsyprobeError):
            tensors = self._session.run(list(self.card.features), {self._input: full})
        return {
            name: self._flatten_output(name, tensor, step)[: len(batch)]
            for name, tensor in zip(self.card.features, tensors, strict=True)
        }

    def _flatten_output(self, name: str, tensor: Any, count: int) -> FloatArray:
        """Flatten an output of the graph to one row an image, refusing any other form."""
        description = type(tensor).__name__
        if isinstance(tensor, np.ndarray):
            is_row = tensor.ndim > 1 and len(tensor) == count
            if is_row and tensor.dtype.kind == "f":
                return tensor.reshape(count, -1).astype(np.float32)
            description = f"{tensor.shape} of {tensor.dtype}"
        raise InputError(
            f"{self.card.name}: {name!r} gives {description} for {count} images; wanted is one "
            "row or map an image"
        )


def _input(name: str, graph: Any) -> Any:
    """Find the one input tensor of a graph that takes images."""
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [tensor for tensor in graph.input if tensor.name not in stored]
    if len(inputs) != 1 or len(inputs[0].type.tensor_type.shape.dim) != 4:
        inputs_and_axes = ", ".join(
            f"{input_.name} of {len(input_.type.tensor_type.shape.dim)} axes"
            for input_ in inputs
        )
        raise InputError(
            f"{name} takes {inputs_and_axes or 'nothing'}; wanted is one batch of images, of 4 axes"
        )
    return inputs[0]


def _input_dtype(name: str, input_tensor: Any) -> np.dtype[Any]:
    """Return the dtype of the graph's input, refusing whole numbers."""
    import onnx

    dtype: np.dtype[Any] = np.dtype(
        onnx.helper.tensor_dtype_to_np_dtype(input_tensor.type.tensor_type.elem_type)
    )
    if dtype.kind != "f":
        raise InputError(
            f"{name} takes {dtype} and nothing is rounded to codes here: export the network "
            "with floating-point input"
        )
    return dtype


def _find_layout(name: str, axes: list[int], layout_option: str | None) -> str:
    """Find where an input's channels are ("NCHW" or "NHWC"), or check the layout given."""
    if layout_option is not None:
        check_known("layout", [layout_option], _LAYOUTS)
    candidates = [
        layout for layout, (channels, *_) in _LAYOUTS.items() if axes[channels] == 3
    ]
    shape = " x ".join(str(length or "any") for length in axes)
    if layout_option is None:
        if len(candidates) != 1:
            raise InputError(
                f"{name} takes {shape}, which leaves open where the channels are: give "
                "layout=NCHW or NHWC"
            )
        return candidates[0]
    if axes[_LAYOUTS[layout_option][0]] not in (0, 3):
        raise InputError(
            f"{name} takes {shape}, which has no three channels where the layout "
            f"{layout_option} has them"
        )
    return layout_option


def _size(
    name: str, graph_size: tuple[int, int], size_option: int | tuple[int, int] | None
) -> tuple[int, int] | None:
    """Choose the image size: that of the graph, or the option's where the graph leaves it open."""
    size = None if size_option is None else checked_size(size_option)
    if size is None:
        return checked_size(graph_size) if all(graph_size) else None
    if any(
        side not in (0, chosen_side)
        for side, chosen_side in zip(graph_size, size, strict=True)
    ):
        graph_size_text = size_text(tuple(side or "any" for side in graph_size))
        raise InputError(
            f"{name} looks at images of {graph_size_text} alone, and input_size asks for "
            f"{size_text(size)}"
        )
    return size


def _session(name: str, path: Path, model: Any, features: tuple[str, ...]) -> Any:
    """Open an ONNX session that outputs the named tensors, also those inside the graph."""
    import onnx
    import onnxruntime

    outputs = {output.name for output in model.graph.output}
    model.graph.output.extend(
        onnx.ValueInfoProto(name=feature)
        for feature in features
        if feature not in outputs
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path",
        str(path.parent.resolve()),
    )
    # onnxruntime has no common class of its own.
    with explained(f"{name}: onnxruntime cannot load it", Exception):
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )


def _digest(path: Path, graph: Any) -> str:
    """Hash an ONNX file and the files beside it that hold its tensors, SHA-256."""
    places = {
        entry.value
        for tensor in graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    files = [path, *(path.parent / place for place in sorted(places))]
    digests = "".join(map(file_digest, files))
    return hashlib.sha256(digests.encode()).hexdigest() if places else digests

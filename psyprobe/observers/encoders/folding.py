"""Fold batch norms into the convolutions before them, and on a CPU activations after them too."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray

if TYPE_CHECKING:
    import torch

#: How far a feature may move, over the largest number in it.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class _Call:
    """One call of a layer during a pass."""

    layer: Any
    input: torch.Tensor
    #: Sum of the input when the layer got it: others may add to it in place.
    input_sum: float
    output: torch.Tensor
    output_sum: float


@dataclass(frozen=True)
class _Chain:
    """A convolution, the batch norm of its output, and an activation that can be taken along."""

    convolution: Any
    norm: Any
    activation: Any


def fold_batch_norms(
    module: torch.nn.Module, compute: Callable[[], Mapping[str, FloatArray]]
) -> bool:
    """Fold a network's batch norms into its convolutions, and tell whether its features stayed.

    On a CPU a convolution then applies the activation as well, so that a map is written once and
    not three times. Layers keep their names. If a feature moves by more than `TOLERANCE` (a layer
    within is asked for, or its map is used twice), the network is left as it was.

    Parameters
    ----------
    module : torch.nn.Module
        The network, in evaluation mode, float32.
    compute : callable
        Compute features of some image by the network.
    """
    import torch

    if not any(isinstance(layer, torch.nn.BatchNorm2d) for layer in module.modules()):
        return False
    chains: list[_Chain] = []
    weights: list[tuple[Any, Any]] = []
    try:
        with _recorded_calls(module) as calls:
            expected = compute()
        chains = _chains(calls)
        calls.clear()
        weights = [
            (chain.convolution.weight, chain.convolution.bias) for chain in chains
        ]
        for chain in chains:
            _join(chain)
        if chains and _agree(expected, compute()):
            return True
    except Exception:
        # Each network raises its own; the plain pass is tried again when features are asked for.
        pass
    for chain, (weight, bias) in zip(chains, weights, strict=True):
        chain.convolution.weight = weight
        chain.convolution.bias = bias
        for layer in (chain.convolution, chain.norm, chain.activation):
            vars(layer).pop("forward", None)
    return False


def _agree(
    expected: Mapping[str, FloatArray], features: Mapping[str, FloatArray]
) -> bool:
    """Tell whether every feature is within the tolerance of what is expected."""
    return all(
        np.abs(features[name] - values).max() <= TOLERANCE * np.abs(values).max()
        for name, values in expected.items()
    )


@contextmanager
def _recorded_calls(module: torch.nn.Module) -> Iterator[list[_Call]]:
    """Record the calls of convolutions, batch norms and activations within the block."""
    calls: list[_Call] = []
    sums: dict[Any, float] = {}

    def begin(layer: Any, inputs: Any) -> None:
        sums[layer] = float(inputs[0].sum())

    def end(layer: Any, inputs: Any, output: Any) -> None:
        call = _Call(layer, inputs[0], sums[layer], output, float(output.sum()))
        calls.append(call)

    hooks = [
        hook
        for layer in module.modules()
        if _is_norm(layer) or _is_convolution(layer) or _operation(layer)
        for hook in (
            layer.register_forward_pre_hook(begin),
            layer.register_forward_hook(end),
        )
    ]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def _chains(calls: Sequence[_Call]) -> list[_Chain]:
    """List the batch norms that take a convolution's output, each with what stands beside it."""
    import torch

    count = Counter(call.layer for call in calls)
    once = [call for call in calls if count[call.layer] == 1]
    convolutions = {
        id(call.output): call.layer for call in once if _is_convolution(call.layer)
    }
    activations = {
        (id(call.input), call.input_sum): call.layer
        for call in once
        if _operation(call.layer)
    }
    nothing = torch.nn.Identity()
    chains = []
    for call in once:
        if id(call.input) in convolutions and _is_norm(call.layer):
            own = getattr(call.layer, "act", nothing)  # timm's hold their activation
            if not _operation(own) or count[own] != 1:
                after = (id(call.output), call.output_sum)
                own = activations.get(after, nothing)
            chains.append(_Chain(convolutions[id(call.input)], call.layer, own))
    return chains


def _is_norm(layer: Any) -> bool:
    """Tell whether a layer normalises by statistics of training, as torch or timm do."""
    import torch

    return (
        isinstance(layer, torch.nn.BatchNorm2d)
        and type(layer).__name__ in ("BatchNorm2d", "BatchNormAct2d")
        and layer.running_var is not None
    )


def _is_convolution(layer: Any) -> bool:
    """Tell whether a layer convolves by its weights as they are, over a margin of zeros."""
    import torch

    plain = getattr(type(layer), "forward", None) is torch.nn.Conv2d.forward
    return (
        (plain or _is_same(layer))
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
    )


def _is_same(layer: Any) -> bool:
    """Tell whether a layer is timm's convolution that pads as TensorFlow does."""
    layers = sys.modules.get("timm.layers")
    return layers is not None and type(layer) is layers.Conv2dSame


def _operation(activation: Any) -> tuple[str, list[float]] | None:
    """Return how oneDNN calls an activation, with its numbers; None if it has none."""
    from torch import nn

    operations: dict[Any, tuple[str, list[float]]] = {
        nn.ReLU: ("relu", []),
        nn.ReLU6: ("hardtanh", [0.0, 6.0]),
        nn.SiLU: ("swish", []),
        nn.Hardswish: ("hardswish", []),
    }
    return operations.get(type(activation))


def _join(chain: _Chain) -> None:
    """Put the batch norm of a chain into its convolution, and on a CPU the activation too."""
    import torch

    convolution, norm = chain.convolution, chain.norm
    weight = convolution.weight

    def exact(numbers: Any) -> Any:
        return None if numbers is None else numbers.detach().cpu().double()

    folded = torch.nn.utils.fuse_conv_bn_weights(
        exact(weight),
        exact(convolution.bias),
        exact(norm.running_mean),
        exact(norm.running_var),
        norm.eps,
        exact(norm.weight),
        exact(norm.bias),
    )
    convolution.weight, convolution.bias = (
        torch.nn.Parameter(numbers.to(weight), requires_grad=False)
        for numbers in folded
    )
    # A module itself would become a part of the norm.
    norm.forward = functools.partial(getattr(norm, "act", _unchanged))
    if convolution.weight.is_cpu and torch.backends.mkldnn.is_available():
        operation = _operation(chain.activation) or ("none", [])
        convolution.forward = functools.partial(_convolve, convolution, operation)
        chain.activation.forward = _unchanged


def _unchanged(maps: torch.Tensor) -> torch.Tensor:
    """Return maps as they are."""
    return maps


def _convolve(
    convolution: Any, operation: tuple[str, list[float]], maps: torch.Tensor
) -> torch.Tensor:
    """Convolve maps and apply an activation in one call of oneDNN."""
    import torch

    weight = convolution.weight
    padding = list(convolution.padding)
    if _is_same(convolution):
        # TensorFlow pads a side that needs an odd number by one more at its end. So do zeros in
        # front of the kernel, without a copy of the maps.
        missing = _missing(convolution, maps.shape[2:])
        padding = [(number + 1) // 2 for number in missing]
        front = [number % 2 for number in missing]
        if any(front):
            weight = torch.nn.functional.pad(weight, (front[1], 0, front[0], 0))
    return torch.ops.mkldnn._convolution_pointwise(
        maps,
        weight,
        convolution.bias,
        padding,
        list(convolution.stride),
        list(convolution.dilation),
        convolution.groups,
        *operation,
        "",
    )


def _missing(convolution: Any, size: Sequence[int]) -> list[int]:
    """Compute how many rows and columns the last steps of a convolution lack."""
    steps = zip(
        size,
        convolution.kernel_size,
        convolution.stride,
        convolution.dilation,
        strict=True,
    )
    return [
        max((-(-side // stride) - 1) * stride + (kernel - 1) * dilation + 1 - side, 0)
        for side, kernel, stride, dilation in steps
    ]

"""A torch network as an observer: its options, weights and layers, and one exact forward pass."""

from __future__ import annotations

import dataclasses
import difflib
import gc
import hashlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import (
    ConditionWarning,
    InputError,
    PsyprobeError,
    UnknownNameError,
    WeightsError,
    check_known,
    unknown_name,
)
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.lazy import import_for_good
from psyprobe.observers.encoders.folding import fold_batch_norms
from psyprobe.observers.images import (
    check_finite,
    check_images,
    checked_size,
    drive_range,
)
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")
BATCH_NORMS = ("folded", "separate")
TOKENS = ("cls", "patches")
#: Random weights are the same ones everywhere.
SEED = 0
RANDOM = f"random numbers, seed {SEED}: not a trained network"
#: How long, in s, the model hub may take to answer before its caches must do.
PATIENCE = 5.0


@dataclass(frozen=True)
class NetworkOptions:
    """Options of an observer made of a network.

    Parameters
    ----------
    input : {"normalised", "raw"}
        Whether the network's mean and standard deviation are applied to the drive, or it goes in as
        it is (as in Cai et al. 2025).
    layers : "all" or iterable of str, optional
        Names of layers ("blocks.3"), tokens of a layer ("blocks.3:cls", "blocks.3:patches") or the
        main feature, in the order wanted, all from one pass; "all" is every stage and then the main
        feature; None the main feature alone.
    device : str, optional
        A torch device; by default "cuda" where there is one, else "cpu".
    dtype : {"float32", "bfloat16", "float16"}
        The format that the network computes in. The shorter ones round the pixels too.
    batch_norm : {"folded", "separate"}
        Whether batch norms of a library's network are folded into its convolutions, in float32 and
        where features stay the same to 1e-5 of the largest, or computed as they come.
    """

    input: str = "normalised"
    layers: str | Iterable[str] | None = None
    device: str | None = None
    dtype: str = "float32"
    batch_norm: str = "folded"


_USUAL = NetworkOptions()


@dataclass(frozen=True)
class HubOptions(NetworkOptions):
    """Options of an encoder whose weights a library fetches.

    Parameters
    ----------
    random_weights : bool
        Random numbers, always the same ones, instead of trained weights: for tests of the
        machinery. The card says so.
    """

    random_weights: bool = False


@dataclass(frozen=True)
class EncoderOptions(HubOptions):
    """Options of an encoder that can be loaded for several sizes of images.

    Parameters
    ----------
    input_size : int or tuple of int, optional
        Side, or (height, width), in px to draw at instead of the native size. A vision transformer
        gets its position table resampled by its library as it loads; a convolutional network takes
        any size as it is.
    """

    input_size: int | tuple[int, int] | None = None

    def size(self, native: int | Sequence[int]) -> tuple[int, int]:
        """Return the (height, width), px, of images: as asked for, or else the native size."""
        return checked_size(native if self.input_size is None else self.input_size)


@dataclass(frozen=True)
class FileOptions(EncoderOptions):
    """Options of an encoder whose weights may lie in a file of the user's.

    Parameters
    ----------
    weights : str or Path, optional
        The file, in any form that the library reads; by default the library's own cache and hub.
    """

    weights: str | Path | None = None


@dataclass(frozen=True)
class Network:
    """A torch network, with its layers, input and origin.

    Parameters
    ----------
    name : str
        The observer's name.
    module : torch.nn.Module
        Its layers are named as in ``module.named_modules()``.
    embed : callable
        From a tensor of shape (N, 3, H, W) to the main feature, (N, ...); with `extract`, from what
        that gives.
    main : str
        The name of what `embed` returns.
    stages : tuple of str
        The layers that ``layers="all"`` stands for.
    tokens : tuple of int, optional
        How many class and register tokens, the class token first, and then how many patch tokens a
        layer gives; None where layers give no class token.
    input_size : tuple of int, optional
        (height, width) in px; None for any.
    resizable : bool
        Whether it can be loaded for another size.
    mean, std : tuple of float
        Its normalisation, for drive in [0, 1].
    weights, weights_digest, licence, paper, options
        As in `Card`; without a digest, that of the module's state is taken.
    packages : tuple of str
        Whose versions belong in the card.
    nodes : tuple of str
        What layers are called where they are nodes of a traced graph, and not modules.
    extract : callable, optional
        With `nodes`: from names of layers to a module that gives them by name, and what `embed`
        needs, from one pass.
    channels_last : bool
        Whether weights of convolutions, and with them its maps, may lie in memory with channels
        last, and batch norms be folded into them. On a CPU such a pass is faster; a module that
        takes views of its maps may fail.
    """

    name: str
    module: torch.nn.Module
    embed: Callable[[torch.Tensor], torch.Tensor]
    main: str = "embedding"
    stages: tuple[str, ...] = ()
    tokens: tuple[int, int] | None = None
    input_size: tuple[int, int] | None = None
    resizable: bool = False
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    weights: str = "given by the caller"
    weights_digest: str | None = None
    licence: str | None = None
    paper: str | None = None
    options: JsonMapping = field(default_factory=dict)
    packages: tuple[str, ...] = ("torch",)
    nodes: tuple[str, ...] = ()
    extract: Callable[[tuple[str, ...]], torch.nn.Module] | None = None
    channels_last: bool = False


class NetworkObserver:
    """An observer that encodes images by a torch network.

    Normalisation is done in float32 and any cast to a shorter format comes after it, so that small
    contrasts survive; the pass runs in evaluation mode, without gradients and without
    TensorFloat-32.

    Parameters
    ----------
    network : Network
        The network.
    options : NetworkOptions
        How it is looked through.

    Examples
    --------
    >>> import torch
    >>> mean = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
    >>> observer = NetworkObserver(Network("mean colour", mean, mean), NetworkOptions(device="cpu"))
    >>> observer.features(np.full((2, 8, 8, 3), 0.5, "float32"))["embedding"]
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]], dtype=float32)
    """

    def __init__(self, network: Network, options: NetworkOptions = _USUAL) -> None:
        import torch

        check_known("dtype", [options.dtype], DTYPES)
        check_known("batch_norm", [options.batch_norm], BATCH_NORMS)
        self._device = checked_device(network.name, options.device)
        self._dtype = getattr(torch, options.dtype)
        self._network = network
        features = _check_layers(network, options.layers)
        digest = network.weights_digest or state_digest(network.module.state_dict())
        module = network.module
        if network.extract is not None:
            module = network.extract(
                tuple(
                    name.partition(":")[0] for name in features if name != network.main
                )
            )
        self._module = module.eval().to(device=self._device, dtype=self._dtype)
        if network.channels_last and self._device.type == "cpu":
            self._module.to(memory_format=torch.channels_last)
        raw = options.input == "raw"
        self._mean = self._per_channel((0.0, 0.0, 0.0) if raw else network.mean)
        self._std = self._per_channel((1.0, 1.0, 1.0) if raw else network.std)
        #: Images that memory holds at once, once it was found not to hold all.
        self._at_once: int | None = None
        self._lock = threading.Lock()  # the watched layers belong to one pass at a time
        is_random = isinstance(options, HubOptions) and options.random_weights
        self.card = Card(
            name=network.name,
            input_size=network.input_size,
            weights=RANDOM if is_random else network.weights,
            licence=network.licence,
            paper=network.paper,
            ability="features",
            features=features,
            input="raw" if raw else "normalised",
            mean=tuple(network.mean),
            std=tuple(network.std),
            dtype=options.dtype,
            device=str(self._device),
            weights_digest=digest,
            random_weights=is_random,
            options=dict(network.options),
            software={package: version(package) for package in network.packages},
        )
        if (
            network.channels_last
            and (options.dtype, options.batch_norm) == ("float32", "folded")
            and fold_batch_norms(self._module, self._features_of_noise)
        ):
            folded = {**self.card.options, "batch_norm": "folded"}
            self.card = dataclasses.replace(self.card, options=folded)

    def _features_of_noise(self) -> dict[str, FloatArray]:
        """Compute features of an image of noise, always the same one."""
        noise = np.random.default_rng(SEED).random(
            (1, *(self.card.input_size or (224, 224)), 3), np.float32
        )
        return self._one_pass(self._hand_over(noise))

    def _per_channel(self, values: tuple[float, ...]) -> Any:
        """Build a tensor of one value a channel that broadcasts over (C, H, W)."""
        import torch

        return torch.tensor(values, dtype=torch.float32, device=self._device)[
            :, None, None
        ]

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Compute features of images by layer in one pass; maps and tokens are flattened.

        Raises
        ------
        InputError
            If the images are not of the size or format that the network looks at.
        PsyprobeError
            If a feature is not finite.
        """
        batch = self._hand_over(images)
        with self._lock:
            features = self._in_parts(batch)
        check_finite(self.card, features)
        return features

    def _in_parts(self, batch: Any) -> dict[str, FloatArray]:
        """Compute all features of a batch, in several passes if memory is short."""
        import torch

        while True:
            count = min(self._at_once or len(batch), len(batch))
            try:
                parts = [
                    self._one_pass(batch[first : first + count])
                    for first in range(0, len(batch), count)
                ]
            except torch.cuda.OutOfMemoryError:
                self._at_once = self._fewer(count, tuple(batch.shape[2:]))
                continue
            if len(parts) == 1:
                return parts[0]
            return {
                name: np.concatenate([part[name] for part in parts])
                for name in self.card.features
            }

    def _one_pass(self, batch: Any) -> dict[str, FloatArray]:
        """Compute the features of a batch in one forward pass."""
        import torch

        network = self._network
        count = len(batch)
        with torch.inference_mode(), exact_arithmetic(self._device):
            if network.extract is not None:
                nodes = self._module(batch)
                nodes[network.main] = network.embed(nodes)
                return {
                    name: _rows(network, name, nodes[name.partition(":")[0]], count)
                    for name in self.card.features
                }
            with self._watching(count) as features:
                features[network.main] = _rows(
                    network, network.main, network.embed(batch), count
                )
        for name in self.card.features:
            if name not in features:
                raise InputError(
                    f"{network.name}: the layer {name!r} takes no part in the forward pass"
                )
        return {name: features[name] for name in self.card.features}

    def _fewer(self, count: int, size: tuple[int, ...]) -> int:
        """Compute how many images to try at once after memory ran out."""
        import torch

        if count == 1:
            raise PsyprobeError(
                f"{self.card.name}: one image of {size[0]} x {size[1]} px does not fit into "
                "what is free of the memory "
                f"of {self._device}; free some, or take another device or a smaller input_size"
            )
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        fewer = -(-count // 2)
        warnings.warn(
            f"{self.card.name}: the memory of {self._device} ran out with {count} images at "
            f"once; {fewer} are taken "
            "from now on, which can move numbers by rounding; for one size throughout, run "
            f"with --batch-size {fewer}",
            ConditionWarning,
            stacklevel=4,
        )
        return fewer

    def _hand_over(self, images: Array) -> Any:
        """Normalise images and convert them to the network's input tensor (N, 3, H, W)."""
        import torch

        size = self.card.input_size
        hint = (
            ", or load the observer with input_size=(height, width)"
            if self._network.resizable
            else ""
        )
        images = check_images(
            images,
            self.card.name,
            input_size=size,
            hint=hint,
            pixel_range=drive_range(self.card),
            colour=True,
        )
        planes = ImagePlanes.of(images).planes
        if isinstance(planes, np.ndarray):
            planes = torch.from_numpy(np.array(planes, np.float32))
        channels_first = planes.permute(0, 3, 1, 2).to(self._device, torch.float32)
        # A grey plane is normalised into three.
        normalised = channels_first.contiguous() - self._mean
        return normalised.div_(self._std).to(self._dtype)

    @contextmanager
    def _watching(self, count: int) -> Iterator[dict[str, FloatArray]]:
        """Catch the outputs of the layers on the card during one forward pass."""
        network = self._network
        features: dict[str, FloatArray] = {}

        def catch(name: str, module: Any, inputs: Any, output: Any) -> None:
            if name in features:
                raise InputError(
                    f"{network.name}: the layer {name!r} runs more than once a pass: name one that "
                    "runs once"
                )
            # Later layers may work in place.
            features[name] = _rows(network, name, output, count).copy()

        with ExitStack() as hooks:
            for name in self.card.features:
                if name != network.main:
                    layer = self._module.get_submodule(name.partition(":")[0])
                    hook = layer.register_forward_hook(partial(catch, name))
                    hooks.enter_context(hook)
            yield features


def _tokens(network: Network, name: str, output: Any) -> Any:
    """Select the class or patch tokens of a layer's output, if its name asks for them."""
    _, _, token = name.partition(":")
    if not token:
        return output
    prefix, patches = network.tokens or (0, 0)
    if output.ndim != 3 or output.shape[1] != prefix + patches:
        raise InputError(
            f"{network.name}: the layer of {name!r} gives {tuple(output.shape)}, which is not "
            f"{prefix} + {patches} "
            "tokens an image: name the layer without a token"
        )
    return output[:, :1] if token == "cls" else output[:, prefix:]


def _rows(network: Network, name: str, output: Any, count: int) -> FloatArray:
    """Flatten a layer's output to one float32 row an image."""
    import torch

    if not hasattr(output, "detach"):
        raise InputError(
            f"{network.name}: {name!r} gives a {type(output).__name__}, not one tensor"
        )
    output = _tokens(network, name, output)
    if output.ndim < 2 or len(output) != count:
        raise InputError(
            f"{network.name}: {name!r} gives {tuple(output.shape)} for {count} images; wanted is "
            "one row or map an image"
        )
    return np.asarray(output.detach().flatten(1).to("cpu", torch.float32).numpy())


def _check_layers(
    network: Network, layers: str | Iterable[str] | None
) -> tuple[str, ...]:
    """Resolve and check the names of the layers to read, with their tokens ("LAYER:cls")."""
    if layers == "all" and not network.stages:
        raise InputError(
            f"{network.name} names no layers: it gives {network.main!r} alone"
        )
    modules = (name for name, _ in network.module.named_modules() if name)
    names = chosen_layers(
        network.name,
        network.main if layers is None else layers,
        (*network.stages, network.main),
        network.nodes or modules,
        separator=":",
    )
    for name in names:
        layer, _, token = name.partition(":")
        if token and (token not in TOKENS or network.tokens is None):
            has = " or ".join(TOKENS) if network.tokens else "it has none"
            raise InputError(
                f"{network.name} has no token {token!r} in {layer!r}: {has}"
            )
    return names


def chosen_layers(
    observer: str,
    layers: str | Iterable[str],
    stages: tuple[str, ...],
    further_names: Iterable[str] = (),
    separator: str = "\n",
) -> tuple[str, ...]:
    """Resolve the layers that are asked for ("all", names), each once, refusing unknown ones.

    Parameters
    ----------
    observer : str
        The observer's name.
    layers : "all" or iterable of str
        Their names; "all" for `stages`.
    stages : tuple of str
        The layers that an error lists.
    further_names : iterable of str
        Names of the others.
    separator : str
        What separates the name of a layer from that of a token; no name has a line break.

    Raises
    ------
    UnknownNameError
        The observer lacks one; those with similar names are listed first.
    InputError
        There are none, or one is named twice.
    """
    if layers == "all":
        return stages
    names = (layers,) if isinstance(layers, str) else tuple(layers)
    known_names = dict.fromkeys([*stages, *further_names])
    for name in names:
        if name.partition(separator)[0] in known_names:
            continue
        near_names = difflib.get_close_matches(name, known_names, cutoff=0.5)
        guess = f"did you mean {near_names[0]!r}? " if near_names else ""
        raise UnknownNameError(
            f"unknown layer of {observer} {name!r}; {guess}It has "
            f"{', '.join(dict.fromkeys([*near_names, *stages]))}"
        )
    if not names or len(set(names)) != len(names):
        raise InputError(
            f"layers {list(names)} of {observer}: name at least one, and each once"
        )
    return names


def check_architecture(
    observer: str, name: str, architectures: Sequence[str], ending: str = ""
) -> None:
    """Refuse an architecture that a library lacks, listing those with similar names."""
    if name not in architectures:
        kind = observer.partition(":")[0]
        near_names = difflib.get_close_matches(name, architectures, n=5, cutoff=0.5)
        names = [f"{kind}:{match}{ending}" for match in near_names or architectures]
        raise unknown_name("observer", observer, names)


def checked_device(name: str, device: str | None) -> Any:
    """Return the torch device of a name, or the best there is without one.

    Raises
    ------
    InputError
        If this machine has no such device.
    """
    import torch

    if device is None:
        return torch.device(best_device())
    refusals = (RuntimeError, AssertionError, NotImplementedError)
    with explained(f"{name} cannot run on device {device!r}", *refusals):
        checked = torch.device(device)
        torch.empty(0, device=checked)
    return checked


def best_device() -> str:
    """Return the device to compute on by default: a GPU if there is one."""
    drivers = (
        path
        for pattern in ("nvidia*", "kfd", "dxg")
        for path in Path("/dev").glob(pattern)
    )
    # Without any there is no accelerator, and torch takes seconds to say so.
    if sys.platform == "linux" and not any(drivers):
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def exact_arithmetic(device: Any) -> Iterator[None]:
    """Turn off TensorFloat-32 within the block, so that float32 multiplies exactly."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    exact = torch.backends.cudnn.flags(deterministic=True, allow_tf32=False)
    try:
        with exact if device.type == "cuda" else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def state_digest(state: JsonMapping) -> str:
    """Hash named tensors, SHA-256, hexadecimal: names, dtypes, shapes and bytes."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def module_digest(module: torch.nn.Module) -> str:
    """Hash a torch module, SHA-256, hexadecimal: its layers, their state and all buffers."""
    # A state leaves out buffers that are not persistent.
    buffers = dict(module.named_buffers(remove_duplicate=False))
    text = f"{module}{state_digest(buffers | module.state_dict())}"
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def seeded() -> Iterator[None]:
    """Seed the random weights of networks built within the block, restoring the random state."""
    if gc.get_freeze_count():
        # A process that keeps its imports for good, such as a command, keeps torch too; triton,
        # which the libraries of networks import, complains at the end if it is kept.
        import_for_good("torch")
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield


def weights_file(path: str | Path, name: str) -> Path:
    """Return the path of a weights file, refusing one that does not exist."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise WeightsError(f"{name}: there is no weights file {str(path)!r}")
    return file


def own_weights(name: str, options: FileOptions) -> Path | None:
    """Return the user's weights file, or None; refuse it together with random weights."""
    if options.weights is None:
        return None
    if options.random_weights:
        raise InputError(
            f"{name}: ask for random_weights or for weights={str(options.weights)!r}, not for both"
        )
    return weights_file(options.weights, name)


def first_line(problem: BaseException) -> str:
    """Return the first line of a library's error message."""
    return str(problem).strip().partition("\n")[0]


@contextmanager
def explained(
    message: str,
    *problems: type[Exception],
    error: type[PsyprobeError] = InputError,
) -> Iterator[None]:
    """Turn a library's failure within the block into an error with a given message.

    Parameters
    ----------
    message : str
        What went wrong; the library's first line follows.
    *problems : type of Exception
        What the library may raise.
    error : type of PsyprobeError
        What is raised in its place.
    """
    try:
        yield
    except PsyprobeError:
        raise
    except problems as problem:
        raise error(f"{message}: {first_line(problem):.200}") from problem


def read_weights(name: str, file: str | Path) -> AbstractContextManager[None]:
    """Turn an error within the block into one about a weights file that does not fit."""
    # Each library raises its own of a damaged file.
    return explained(f"{name}: {str(file)!r} does not hold its weights", Exception)


@contextmanager
def hub_weights(name: str) -> Iterator[None]:
    """Turn errors of downloading weights within the block into one plain error.

    A library without a network tries for most of a minute. So the model hub is asked once whether
    it is there; if not, the library is told to make do with its cache, and answers at once.
    """
    from huggingface_hub import constants

    asked_offline = constants.HF_HUB_OFFLINE
    reached = not asked_offline and _hub_answers()
    constants.HF_HUB_OFFLINE = not reached
    try:
        yield
    except PsyprobeError:
        raise
    except Exception as problem:  # each library and transport raises its own
        hub = "the model hub cannot be reached"
        if asked_offline:
            hub = "the model hub is switched off (HF_HUB_OFFLINE)"
        elif reached:
            hub = f"the model hub answered but did not give them ({type(problem).__name__})"
        raise WeightsError(
            f"{name}: no weights in the cache {constants.HF_HUB_CACHE}, and {hub}; copy a cache "
            "that holds them here, "
            "name a file with weights=FILE, or take an encoder of list_observers('packaged:*'), "
            "which need no download"
        ) from problem
    finally:
        constants.HF_HUB_OFFLINE = asked_offline


def _hub_answers() -> bool:
    """Tell whether the Hugging Face hub answers within the allowed time."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE)
    except Exception:  # whatever the transport in use raises: there is no hub for us
        return False
    return True

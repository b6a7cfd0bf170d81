"""What questions to a paid model cost: the prices of a file of yours, and a budget that is kept to.

psyprobe ships no prices: they change, and those of a contract of yours are nobody else's.
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, UnfinishedError, unknown_name
from psyprobe.files.parsing import parse_toml, read_text
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.protocol import PaidObserver

#: Names the file of prices; the file without it.
VARIABLE = "PSYPROBE_PRICES"
PLACE = "~/.config/psyprobe/prices.toml"
#: Of what servers tell by themselves.
USD = "USD"
#: A price that nobody means.
_MOST = 1e6
_KEYS = ("input", "output", "cached_input", "image", "batch")


@dataclass(frozen=True)
class Price:
    """What a model costs.

    Parameters
    ----------
    input, output : float
        Per million tokens of questions and of answers, thinking among them.
    cached_input : float, optional
        Per million tokens of questions that the server tells it had cached; by default as all
        others.
    image : float
        An image, besides the tokens that the server counts; or a patch of one.
    patch : int, optional
        Pixels of a side of what `image` is the price of; an image begun is a patch.
    batch : float
        Share of all this that is paid in a batch.
    currency : str
        Of all this.

    Examples
    --------
    >>> round(Price(2.0, 8.0, image=0.001, patch=512).of(1000, 50, [(512, 600)]), 6)
    0.0044
    """

    input: float
    output: float
    cached_input: float | None = None
    image: float = 0.0
    patch: int | None = None
    batch: float = 1.0
    currency: str = USD

    def in_batch(self) -> Price:
        """The same in a batch."""
        share = self.batch
        return replace(
            self,
            input=share * self.input,
            output=share * self.output,
            cached_input=None if self.cached_input is None else share * self.cached_input,
            image=share * self.image,
            batch=1.0,
        )

    def of(
        self,
        tokens_in: float,
        tokens_out: float,
        images: Iterable[tuple[int, int]] = (),
        cached: float = 0,
    ) -> float:
        """The price of a question.

        Parameters
        ----------
        tokens_in, tokens_out : float
            Of the question, images included, and of its answer.
        images : iterable of (int, int)
            Pixels (height, width) of each image.
        cached : float
            Of `tokens_in`, those that the server had cached.
        """
        side = self.patch
        pieces = (
            1 if side is None else math.ceil(rows / side) * math.ceil(columns / side)
            for rows, columns in images
        )
        again = self.input if self.cached_input is None else self.cached_input
        tokens = (tokens_in - cached) * self.input + cached * again + tokens_out * self.output
        return tokens / 1e6 + sum(pieces) * self.image

    def of_answer(self, answer: Answer, images: Iterable[tuple[int, int]]) -> float | None:
        """The price of an answer; None where the server does not tell the tokens that are paid
        for.
        """
        counts = (answer.tokens_in, answer.tokens_out)
        if any(
            count is None and price
            for count, price in zip(counts, (self.input, self.output), strict=True)
        ):
            return None
        return self.of(counts[0] or 0, counts[1] or 0, images, answer.tokens_cached or 0)


@dataclass(frozen=True)
class Prices:
    """The prices of a file."""

    #: By the model's name, as the server calls it.
    models: Mapping[str, Price] = field(default_factory=dict)
    currency: str = USD
    #: Where they were read; empty where there is no file.
    path: str = ""
    #: Whether that file was named for this run, so that it is meant to hold every model of it.
    named: bool = False

    def of(self, observer: str) -> Price | None:
        """The price of an observer's model, "openai:" before its name or not; None where the file
        does not tell.

        Raises
        ------
        InputError
            The file was named for this run, and has no such model.
        """
        model = observer.partition(":")[2] if observer.startswith("openai:") else observer
        if model in self.models:
            return self.models[model]
        if not self.named:
            return None
        near = difflib.get_close_matches(model, self.models, n=1)
        guess = f"did you mean {near[0]!r}? It has" if near else "it has"
        known = ", ".join(map(repr, self.models)) or "none"
        raise InputError(
            f"{self.path} has no price of {model!r}; {guess} {known:.120}; add "
            f"[models.{model!r}] with input and "
            "output, both 0 for a server of yours"
        )


def read_prices(path: str | Path | None = None) -> Prices:
    r"""The prices of a TOML file.

    Parameters
    ----------
    path : str or Path, optional
        By default the file that PSYPROBE_PRICES names, or else ``~/.config/psyprobe/prices.toml``
        where there is one.

    Raises
    ------
    InputError
        There is no such file, or what it says is no price.

    Examples
    --------
    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp()) / "prices.toml"
    >>> _ = page.write_text('currency = "EUR"\n[models."a-model"]\ninput = 2\noutput = 8\n')
    >>> read_prices(page).of("openai:a-model").of(1_000_000, 500_000)
    6.0
    """
    named = path is not None
    if path is None:
        path = os.environ.get(VARIABLE) or None
    if path is None:
        path = Path(PLACE).expanduser()
        if not path.is_file():
            return Prices()
    page = parse_toml(read_text(path), str(path))
    for key, value in page.items():
        if isinstance(value, dict) and {"input", "output"} <= value.keys():
            raise InputError(
                f"{path}: the prices of {key!r:.60} stand in no [models]; write "
                f"[models.{json.dumps(key):.60}]"
            )
        if key not in ("currency", "models"):
            raise unknown_name(f"key of prices in {path}", key, ["currency", "models"])
    currency = page.get("currency", USD)
    models = page.get("models", {})
    if not (isinstance(currency, str) and 1 <= len(currency) <= 8 and currency.isprintable()):
        raise InputError(
            f"{path}: currency is {currency!r:.40}; give up to 8 letters, such as 'USD'"
        )
    if not isinstance(models, dict):
        raise InputError(
            f"{path}: models is {models!r:.40}; write a table [models.NAME] for each model"
        )
    found = {
        name: _price(row, f"{path}: models.{name!r}", currency) for name, row in models.items()
    }
    return Prices(found, currency, str(path), named)


def _price(row: Any, where: str, currency: str) -> Price:
    if not isinstance(row, dict):
        raise InputError(
            f"{where} is {row!r:.40}; give a table with input and output, per million tokens"
        )
    for key in row:
        if key not in _KEYS:
            raise unknown_name(f"price in {where}", key, _KEYS)
    values = dict(row)
    image = row.get("image", 0.0)
    if isinstance(image, dict):
        if (
            image.keys() != {"patch", "price"}
            or type(image["patch"]) is not int
            or image["patch"] < 1
        ):
            raise InputError(
                f"{where}.image is {image!r:.80}; give a price, or {{ patch = 512, price = "
                f"0.001 }}: pixels of a side, "
                "and what a patch costs"
            )
        values |= {"image": image["price"], "patch": image["patch"]}
    for key in ("input", "output"):
        if key not in values:
            raise InputError(f"{where} has no {key!r}; give the price of a million tokens, or 0")
    for key, value in values.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= (1 if key == "batch" else _MOST):
            allowed = "a share from 0 to 1" if key == "batch" else f"a price from 0 to {_MOST:g}"
            raise InputError(f"{where}.{key} is {value!r:.40}; give {allowed}")
    return Price(**values, currency=currency)


class Budget:
    """What may be spent: a question is sent only while it fits beside those that are under way.

    Each is taken to cost as much as the dearest so far. So the budget is passed only by as much as
    questions under way cost more than any before them.

    Parameters
    ----------
    budget : float
        In `currency`.
    currency : str
        Of the prices.

    Raises
    ------
    InputError
        The budget is no amount.

    Examples
    --------
    >>> budget = Budget(0.05)
    >>> budget.take(), budget.settle(0.03)
    (None, None)
    >>> budget.take()
    Traceback (most recent call last):
    psyprobe.errors.UnfinishedError: the budget of 0.05 USD is spent: 0.03 USD, and another question may cost ...
    """

    def __init__(self, budget: float, currency: str = USD) -> None:
        number = isinstance(budget, int | float) and not isinstance(budget, bool)
        if not number or not (math.isfinite(budget) and budget > 0):
            raise InputError(f"the budget is {budget!r} {currency}; give an amount above 0")
        self.budget = float(budget)
        self.currency = currency
        #: What was paid, and how much of it at most for one question.
        self.spent = self.dearest = 0.0
        self._under_way = 0
        self._unknown = ""

    def take(self) -> None:
        """Send another question; whatever comes of it, `settle` follows.

        Raises
        ------
        UnfinishedError
            It may not fit into the budget, or what questions cost is not known.
        """
        if self._unknown:
            raise UnfinishedError(
                f"the budget of {self} cannot be kept, since {self._unknown}; give the prices "
                "of the model "
                "(--prices FILE); what is answered is kept"
            )
        if (
            self.spent + (self._under_way + 1) * self.dearest > self.budget
            or self.spent >= self.budget
        ):
            beside = f" beside {self._under_way} under way" if self._under_way else ""
            raise UnfinishedError(
                f"the budget of {self} is spent: {money(self.spent, self.currency)}, and "
                "another question may cost "
                f"{money(self.dearest, self.currency)}{beside}; what is answered is kept, and "
                "the same command goes on "
                "with a new budget"
            )
        self._under_way += 1

    def settle(self, cost: float | None, currency: str = USD, *, answered: bool = True) -> None:
        """Take account of a question that was sent.

        Parameters
        ----------
        cost : float or None
            What it cost; None where that is not known.
        currency : str
            Of the cost.
        answered : bool
            Whether there is an answer; what broke off is taken to cost nothing.
        """
        self._under_way -= 1
        if not answered:
            return
        if cost is None:
            self._unknown = "the server tells no price of its answers"
        elif cost and currency != self.currency:
            self._unknown = f"the server tells its price in {currency}"
        else:
            self.spent += cost
            self.dearest = max(self.dearest, cost)

    def __str__(self) -> str:
        return money(self.budget, self.currency)


def charge(observers: Iterable[PaidObserver], prices: Prices, budget: Budget | None) -> None:
    """Let observers that are paid for know what they cost and what may be spent on them."""
    for observer in observers:
        observer.price = prices.of(observer.card.name)
        observer.budget = budget


def money(amount: float, currency: str) -> str:
    """An amount as one reads it: to the hundredth, or to two digits where that is more.

    Examples
    --------
    >>> money(3.14159, "USD"), money(0.00123456, "EUR"), money(0, "USD")
    ('3.14 USD', '0.0012 EUR', '0.00 USD')
    """
    places = 2 if amount >= 0.1 or amount <= 0 else 1 - math.floor(math.log10(amount))
    whole, _, rest = f"{amount:,.{places}f}".partition(".")
    return f"{whole}.{rest.rstrip('0').ljust(2, '0')} {currency}"


def priced(answer: Answer, price: Price | None, inquiry: Inquiry) -> Answer:
    """An answer with what it cost by the prices of its model; without them, with what the server
    itself told.
    """
    if price is None:
        return answer
    shown = (*(image for example in inquiry.examples for image in example.images), *inquiry.images)
    sizes = [(int(image.shape[0]), int(image.shape[1])) for image in shown]
    return replace(answer, cost=price.of_answer(answer, sizes), currency=price.currency)

"""Read what a paid model costs from a file of yours, and keep questions within a budget.

psyprobe ships no prices: they change, and those of your contract are nobody else's.
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

from psyprobe.errors import InputError, UnfinishedError, check_known
from psyprobe.files.parsing import parse_toml, read_text
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.protocol import PaidObserver

#: The environment variable that names the file of prices, and the file where it is not set.
VARIABLE = "PSYPROBE_PRICES"
PLACE = "~/.config/psyprobe/prices.toml"
#: The currency in which servers say what an answer costs.
USD = "USD"
#: The highest price that may be given.
_MOST = 1e6
_PARTS = ("input", "output", "cached_input", "image")
_KEYS = (*_PARTS, "batch")


@dataclass(frozen=True)
class Price:
    """The price of a model.

    Parameters
    ----------
    input, output : float
        Price of a million tokens of questions and of answers, thinking included.
    cached_input : float, optional
        Price of a million tokens of questions that the server had cached; by default that of all
        others.
    image : float
        Price of an image, or of a patch of one, besides the tokens that the server counts.
    patch : int, optional
        Side of such a patch, in pixels; an incomplete patch counts as one.
    batch : float
        Share of these prices that is paid in a batch.
    currency : str
        Currency of these prices.

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
        """Return the lower price of questions that are sent in a batch."""
        prices = {
            name: self.batch * price
            for name in _PARTS
            if (price := getattr(self, name)) is not None
        }
        return replace(self, **prices, batch=1.0)

    def of(
        self,
        tokens_in: float,
        tokens_out: float,
        images: Iterable[tuple[int, int]] = (),
        cached: float = 0,
    ) -> float:
        """Compute the cost of a question with its answer from tokens and image sizes.

        Parameters
        ----------
        tokens_in, tokens_out : float
            Tokens of the question, images included, and of its answer.
        images : iterable of (int, int)
            Pixels (height, width) of each image.
        cached : float
            How many of `tokens_in` the server had cached.
        """
        side = self.patch
        patches = (
            1 if side is None else math.ceil(height / side) * math.ceil(width / side)
            for height, width in images
        )
        cached_price = self.input if self.cached_input is None else self.cached_input
        tokens = (
            (tokens_in - cached) * self.input
            + cached * cached_price
            + tokens_out * self.output
        )
        return tokens / 1e6 + sum(patches) * self.image

    def of_answer(
        self, answer: Answer, images: Iterable[tuple[int, int]]
    ) -> float | None:
        """Compute the cost of an answer; None where the server does not count its tokens."""
        tokens_in = answer.tokens_in
        tokens_out = answer.tokens_out
        if (tokens_in is None and self.input) or (tokens_out is None and self.output):
            return None
        cached = answer.tokens_cached or 0
        return self.of(tokens_in or 0, tokens_out or 0, images, cached)


@dataclass(frozen=True)
class Prices:
    """The prices of a file."""

    #: Prices by the server's name for the model.
    models: Mapping[str, Price] = field(default_factory=dict)
    currency: str = USD
    #: The file; empty where there is none.
    path: str = ""
    #: Whether the file must hold every model, since it was given for this run.
    must_hold_all: bool = False

    def of(self, observer: str) -> Price | None:
        """Look up the price of an observer's model; None if the list lacks it.

        Parameters
        ----------
        observer : str
            The model's name, with or without "openai:" before it.

        Raises
        ------
        InputError
            The file was given for this run, and has no such model.
        """
        model = observer.removeprefix("openai:")
        if model in self.models or not self.must_hold_all:
            return self.models.get(model)
        matches = difflib.get_close_matches(model, self.models, n=1)
        guess = f"did you mean {matches[0]!r}? It has" if matches else "it has"
        names = ", ".join(map(repr, self.models)) or "none"
        raise InputError(
            f"{self.path} has no price of {model!r}; {guess} {names:.120}; add "
            f"[models.{model!r}] with input and output, both 0 for a server of yours"
        )


def read_prices(path: str | Path | None = None) -> Prices:
    r"""Read a price list from a TOML file, by default the packaged one.

    Parameters
    ----------
    path : str or Path, optional
        By default the file that PSYPROBE_PRICES names, or else ``~/.config/psyprobe/prices.toml``
        where there is one.

    Raises
    ------
    InputError
        There is no such file, or it holds something else than prices.

    Examples
    --------
    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp()) / "prices.toml"
    >>> _ = page.write_text('currency = "EUR"\n[models."a-model"]\ninput = 2\noutput = 8\n')
    >>> read_prices(page).of("openai:a-model").of(1_000_000, 500_000)
    6.0
    """
    must_hold_all = path is not None
    if path is None:
        path = os.environ.get(VARIABLE) or Path(PLACE).expanduser()
        if isinstance(path, Path) and not path.is_file():
            return Prices()
    page = parse_toml(read_text(path), str(path))
    for key, value in page.items():
        if isinstance(value, dict) and {"input", "output"} <= value.keys():
            raise InputError(
                f"{path}: the prices of {key!r:.60} stand in no [models]; write "
                f"[models.{json.dumps(key):.60}]"
            )
    check_known(f"key of prices in {path}", page, ("currency", "models"))
    currency = page.get("currency", USD)
    models = page.get("models", {})
    if not (
        isinstance(currency, str) and 1 <= len(currency) <= 8 and currency.isprintable()
    ):
        raise InputError(
            f"{path}: currency is {currency!r:.40}; give up to 8 letters, such as 'USD'"
        )
    if not isinstance(models, dict):
        raise InputError(
            f"{path}: models is {models!r:.40}; write a table [models.NAME] for each model"
        )
    prices = {
        name: _price(table, f"{path}: models.{name!r}", currency)
        for name, table in models.items()
    }
    return Prices(prices, currency, str(path), must_hold_all)


def _price(table: Any, source: str, currency: str) -> Price:
    """Check a model's table of prices and build its price."""
    if not isinstance(table, dict):
        raise InputError(
            f"{source} is {table!r:.40}; give a table with input and output, per million tokens"
        )
    check_known(f"price in {source}", table, _KEYS)
    values = dict(table)
    image = table.get("image")
    if isinstance(image, dict):
        patch = image.get("patch")
        if image.keys() != {"patch", "price"} or type(patch) is not int or patch < 1:
            raise InputError(
                f"{source}.image is {image!r:.80}; give a price, or {{ patch = 512, price = "
                "0.001 }: pixels of a side, and what a patch costs"
            )
        values |= {"image": image["price"], "patch": patch}
    for key in _PARTS[:2]:
        if key not in values:
            raise InputError(
                f"{source} has no {key!r}; give the price of a million tokens, or 0"
            )
    for key, value in values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        highest = 1 if key == "batch" else _MOST
        if not is_number or not 0 <= value <= highest:
            kind = "share" if key == "batch" else "price"
            raise InputError(
                f"{source}.{key} is {value!r:.40}; give a {kind} from 0 to {highest:g}"
            )
    return Price(**values, currency=currency)


class Budget:
    """An amount that may be spent; each question under way counts as much as the dearest so far.

    So the budget is exceeded only if questions under way cost more than any before them.

    Parameters
    ----------
    budget : float
        The amount in `currency`.
    currency : str
        Currency of the prices.

    Raises
    ------
    InputError
        The budget is no amount.

    Examples
    --------
    >>> budget = Budget(0.05)
    >>> budget.take(), budget.settle(Answer("Yes", cost=0.03))
    (None, None)
    >>> budget.take()
    Traceback (most recent call last):
    psyprobe.errors.UnfinishedError: the budget of 0.05 USD is spent: 0.03 USD, and
    another question may cost ...
    """

    def __init__(self, budget: float, currency: str = USD) -> None:
        is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
        if not is_number or not 0 < budget < math.inf:
            raise InputError(
                f"the budget is {budget!r} {currency}; give an amount above 0"
            )
        self.budget = float(budget)
        self.currency = currency
        #: The amount that was spent, and how much of it at most on one question.
        self.spent = 0.0
        self.dearest = 0.0
        self._under_way = 0
        #: Why the costs of questions are not known; empty where they are.
        self._obstacle = ""

    def take(self) -> None:
        """Reserve the estimated cost of another question, refusing one beyond the budget.

        Raises
        ------
        UnfinishedError
            It may not fit into the budget, or the costs of questions are not known.
        """
        if self._obstacle:
            raise UnfinishedError(
                f"the budget of {self} cannot be kept, since {self._obstacle}; give the prices "
                "of the model (--prices FILE); what is answered is kept"
            )
        reserved = (self._under_way + 1) * self.dearest
        if self.spent + reserved > self.budget or self.spent >= self.budget:
            under_way = (
                f" beside {self._under_way} under way" if self._under_way else ""
            )
            raise UnfinishedError(
                f"the budget of {self} is spent: {money(self.spent, self.currency)}, and "
                f"another question may cost {money(self.dearest, self.currency)}{under_way}; what "
                "is answered is kept, and the same command goes on with a new budget"
            )
        self._under_way += 1

    def settle(self, answer: Answer | None) -> None:
        """Replace the reserved cost of a question by that of its answer, or by nothing."""
        self._under_way -= 1
        if answer is None:
            return
        if answer.cost is None:
            self._obstacle = "the server tells no price of its answers"
        elif answer.cost and answer.currency != self.currency:
            self._obstacle = f"the server tells its price in {answer.currency}"
        else:
            self.spent += answer.cost
            self.dearest = max(self.dearest, answer.cost)

    def __str__(self) -> str:
        return money(self.budget, self.currency)


def charge(
    observers: Iterable[PaidObserver], prices: Prices, budget: Budget | None
) -> None:
    """Set the price of each paid observer, and the budget they share."""
    for observer in observers:
        observer.price = prices.of(observer.card.name)
        observer.budget = budget


def money(amount: float, currency: str) -> str:
    """Format an amount of money to the hundredth, or finer for small ones.

    Examples
    --------
    >>> money(3.14159, "USD"), money(0.00123456, "EUR"), money(0, "USD")
    ('3.14 USD', '0.0012 EUR', '0.00 USD')
    """
    places = 2 if amount >= 0.1 or amount <= 0 else 1 - math.floor(math.log10(amount))
    units, _, fraction = f"{amount:,.{places}f}".partition(".")
    return f"{units}.{fraction.rstrip('0').ljust(2, '0')} {currency}"


def priced(answer: Answer, price: Price | None, inquiry: Inquiry) -> Answer:
    """Set the cost of an answer by its model's price; without one the server's cost stays."""
    if price is None:
        return answer
    sizes = [(int(image.shape[0]), int(image.shape[1])) for image in inquiry.all_images]
    return replace(answer, cost=price.of_answer(answer, sizes), currency=price.currency)

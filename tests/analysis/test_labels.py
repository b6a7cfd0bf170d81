"""Replies that name one of several labels, confusions, and the choice model, against the tables of
tests/data/letters."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.analysis.efficiency.ideal_observer import (
    d_prime_at,
    proportion_correct,
)
from psyprobe.analysis.identification.confusions import (
    ChoiceModel,
    Confusions,
    bias_intervals,
    choice_model,
    estimate_bias,
    fit_choice_model,
)
from psyprobe.analysis.identification.replies import OTHERS, read_label
from psyprobe.errors import InputError


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "letters" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_replies_are_read_as_they_are_meant(oracle_data: Path) -> None:
    table = rows(oracle_data, "replies.csv")
    assert len(table) > 40
    for row in table:
        text = row["alternatives"]
        labels = text.split(",") if "," in text else list(text)
        assert read_label(row["reply"], labels) == row["read"], row


@pytest.mark.parametrize(
    ("reply", "labels", "meant"),
    [
        ("I can't see it clearly, but my guess is K.", "CDHKNORSVZ", "K"),
        ("It looks like a letter.", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "invalid"),
        ("e.g. K", "CDHKNORSVZ", "K"),
        ("The letter is C or O.", "CDHKNORSVZ", "ambiguous"),
        ("The letter isn't C.", "CDHKNORSVZ", "invalid"),
        ('{"answer": "K"}', "CDHKNORSVZ", "K"),
        ("E", "CDHKNORSVZ", "outside"),
        ("It is an E.", "CDHKNORSVZ", "outside"),
        ("I don't know.", "CDHKNORSVZ", "refusal"),
        ("Uniform.", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "invalid"),
        ("K\n\nThe letter has a stem like an H, with two arms.", "CDHKNORSVZ", "K"),
        ("The stripes run vertically.", ["vertical", "horizontal"], "vertical"),
        ("A dog.", ["cat", "dog"], "dog"),
        ("There are two dogs.", ["cat", "dog"], "dog"),
        ("N/A", "CDHKNORSVZ", "invalid"),
        ("I see the letter A in the image.", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A"),
        ("The letter is C. No wait, it is O.", "CDHKNORSVZ", "O"),
        ("Neither C nor O; it is D.", "CDHKNORSVZ", "D"),
        ("The letter could be B, D, or O. I would go with D.", "CDHKNORSVZ", "D"),
        ("It is neither left nor right, but up", ["right", "up", "left", "down"], "up"),
        ("I'm not sure whether it is K.", "CDHKNORSVZ", "invalid"),
        ("The gap is at the top right.", ["right", "up", "left", "down"], "outside"),
        ("bottom", ["right", "up", "left", "down"], "down"),
        ("upper-left", ["upper left", "upper right", "left", "right"], "upper left"),
    ],
)
def test_further_replies(reply: str, labels: list[str], meant: str) -> None:
    assert read_label(reply, labels) == meant


def test_words_of_ones_own_are_read_and_no_label_is_made_up() -> None:
    assert read_label("It says bow", ["arc", "line"], {"arc": ["bow"]}) == "arc"
    for reply in ("", "\n", "?" * 3000, "**", "((((", "\\boxed{", "\ud800", "'" * 99):
        assert read_label(reply, "CDHKNORSVZ") in OTHERS


def test_d_prime_of_m_alternatives(oracle_data: Path) -> None:
    for row in rows(oracle_data, "m_alternatives.csv"):
        m, d_prime, share = (float(row[name]) for name in ("m", "d_prime", "p_correct"))
        proportion = float(proportion_correct(d_prime, int(m)))
        assert proportion == pytest.approx(share, abs=1e-9)
        if 1.1 / m < share < 0.95:
            # Elsewhere ten digits of the share tell d' less well.
            assert d_prime_at(share, int(m)) == pytest.approx(d_prime, abs=1e-8)


def test_bias_and_similarity_come_back_from_confusions(oracle_data: Path) -> None:
    table = rows(oracle_data, "choice.csv")
    for case in sorted({row["case"] for row in table}):
        by_label: dict[str, dict[str, dict[str, str]]] = {}
        for row in table:
            if row["case"] == case:
                by_label.setdefault(row["shown"], {})[row["said"]] = row
        for row_of_label in by_label.values():
            strength = [
                float(row["similarity"]) * float(row["bias_of_said"])
                for row in row_of_label.values()
            ]
            shares = np.array(strength) / np.sum(strength)
            expected_shares = [float(row["p"]) for row in row_of_label.values()]
            np.testing.assert_allclose(shares, expected_shares, rtol=0, atol=1e-8)
        # Only some rows are here: similarity is known among them, and bias up to a factor.
        expected_values = {
            name: np.array(
                [
                    [float(by_label[stimulus][response][name]) for response in by_label]
                    for stimulus in by_label
                ]
            )
            for name in ("p", "similarity", "bias_of_said")
        }
        model = choice_model(expected_values["p"])
        np.testing.assert_allclose(
            model.similarity, expected_values["similarity"], atol=1e-8
        )
        bias = expected_values["bias_of_said"][0]
        np.testing.assert_allclose(model.bias, bias / bias.sum(), rtol=1e-7)


def test_biases_of_26_letters_come_back_from_few_and_from_many_answers() -> None:
    random = np.random.default_rng(2)
    names = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    weights = np.ones(26)
    weights[:2] = 6, 3
    similarity = np.ones((26, 26))
    similarity[2, 3] = similarity[3, 2] = 6
    guesses = ChoiceModel(weights, similarity).probabilities()
    # Each letter once at eight contrasts, as the page alphabet_26 asks.
    seen = 1 - 0.5 ** ((2.0 ** np.arange(-3, 5) / 1.25) ** 3.5)
    shares = seen[:, None, None] * np.eye(26) + (1 - seen)[:, None, None] * guesses
    truth = choice_model(shares.mean(axis=0)).bias
    unequal = shares.mean(axis=0) * random.uniform(1e8, 2e8, (26, 1))
    np.testing.assert_allclose(estimate_bias(unequal), truth, rtol=1e-4)
    inside = []
    ratios = []
    for _ in range(8):
        counts = random.multinomial(1, shares).sum(axis=0)
        confusions = Confusions(names, np.pad(counts, ((0, 0), (0, len(OTHERS)))))
        bias, low, high = bias_intervals(confusions, confidence=0.95)
        inside.append((low <= truth) & (truth <= high))
        ratios.append(bias[:2] / truth[:2])
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.25)
    assert np.mean(inside) > 0.9 and np.mean(inside, axis=0)[:2].min() > 0.7


@pytest.mark.parametrize(("m", "repeats"), [(10, 640), (26, 128)])
def test_similarities_come_back_from_many_answers(m: int, repeats: int) -> None:
    """Within 0.12 log10 (RMSE), without bias; of few answers too the mean has hardly any."""
    random = np.random.default_rng(3)
    upper = np.triu(10 ** random.normal(0, 0.35, (m, m)), 1)
    readiness = np.append([6.0, 3.0], np.ones(m - 2))
    guesses = ChoiceModel(readiness, upper + upper.T + np.eye(m)).probabilities()
    seen = 1 - 0.5 ** ((2.0 ** np.arange(-3, 5) / 1.25) ** 3.5)
    shares = seen[:, None, None] * np.eye(m) + (1 - seen)[:, None, None] * guesses
    truth = choice_model(shares.mean(axis=0)).similarity
    pairs = np.triu_indices(m, 1)

    def errors(counts: FloatArray) -> FloatArray:
        model = fit_choice_model(Confusions((*map(str, range(m)),), counts))
        np.testing.assert_array_equal(model.similarity, model.similarity.T)
        return np.log10(model.similarity / truth)[pairs]

    many = errors(random.multinomial(repeats, shares).sum(axis=0))
    assert abs(many.mean()) < 0.03 and np.sqrt(np.mean(many**2)) < 0.12
    few = [errors(random.multinomial(1, shares).sum(axis=0)) for _ in range(10)]
    assert abs(np.mean(few)) < 0.1
    # Without sampling error: any number of trials a letter, confused both ways.
    endless = shares.mean(axis=0) * random.uniform(1e8, 2e8, (m, 1))
    np.testing.assert_allclose(errors(endless), 0, atol=1e-4)


def test_a_choice_model_is_its_own_inverse() -> None:
    random = np.random.default_rng(1)
    upper = np.triu(random.uniform(0.05, 0.5, (26, 26)), 1)
    bias = random.dirichlet(np.full(26, 5.0))
    model = ChoiceModel(bias, upper + upper.T + np.eye(26))
    refitted = choice_model(model.probabilities())
    np.testing.assert_allclose(refitted.bias, bias, rtol=1e-10)
    np.testing.assert_allclose(refitted.similarity, model.similarity, rtol=1e-10)
    with pytest.raises(InputError, match="all above 0"):
        choice_model([[1, 0], [0, 1]])

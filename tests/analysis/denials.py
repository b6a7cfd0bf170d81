"""Sentences about an image from templates, and their negations."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

SUBJECTS = ("the image", "the picture", "it", "this", "the whole field")
FLAT = (
    "uniform",
    "blank",
    "flat",
    "a plain gray image",
    "completely uniform",
    "featureless",
    "a single color",
    "a uniform shade of gray",
    "all gray",
    "uniformly gray",
    "a solid gray square",
)
BEING = (
    ("is", "is not"),
    ("is", "isn't"),
    ("is", "is by no means"),
    ("is", "is no longer"),
    ("is", "is far from"),
    ("is", "is anything but"),
    ("is", "is not, in my view,"),
    ("looks", "does not look"),
    ("appears to be", "doesn't appear to be"),
    ("seems", "does not seem"),
    ("can be called", "cannot be called"),
)
PATTERNS = (
    "a pattern",
    "stripes",
    "a faint grating",
    "visible lines",
    "some texture",
    "a regular structure",
)
HAVING = (
    ("has", "does not have"),
    ("shows", "doesn't show"),
    ("contains", "never contains"),
    ("exhibits", "fails to exhibit"),
    ("has", "does not really have"),
)
PERCEPTIONS = (
    ("{0} can be seen", "{0} cannot be seen"),
    ("{0} can be seen", "{0} can't be seen"),
    ("there is {0}", "there is not {0}"),
    ("I see {0}", "I do not see {0}"),
    ("I can see {0}", "I can't see {0}"),
    ("I notice {0} in the image", "I don't notice {0} in the image"),
    ("{0} can be made out in the image", "{0} can never be made out in the image"),
)
#: Patterns that deny a whole sentence.
WHOLE = (
    "I don't think {0}",
    "I do not think that {0}",
    "I don't believe {0}",
    "I doubt that {0}",
    "I would not say {0}",
    "I wouldn't say that {0}",
    "it is not true that {0}",
    "it is not the case that {0}",
    "it is false that {0}",
    "it's wrong to say that {0}",
    "I disagree that {0}",
    "I can't agree that {0}",
    "no way {0}",
    "that {0} is not true",
    "that {0} is false",
)
#: Words before or after a sentence that take no side.
HEDGES = (
    "{0}",
    "I think {0}",
    "well, {0}",
    "in my opinion, {0}",
    "{0}, I believe",
    "looking closely, {0}",
    "{0} here",
)


@dataclass(frozen=True)
class Sentence:
    """A sentence about an image, and one that denies it."""

    affirmed: str
    denied: str
    #: Whether it says that there is a pattern.
    patterned: bool


def _sentences() -> list[Sentence]:
    flat = [
        Sentence(f"{subject} {verb} {word}", f"{subject} {negated} {word}", False)
        for subject, (verb, negated), word in product(SUBJECTS, BEING, FLAT)
    ]
    having = [
        Sentence(f"{subject} {verb} {word}", f"{subject} {negated} {word}", True)
        for subject, (verb, negated), word in product(SUBJECTS, HAVING, PATTERNS)
    ]
    perceptions = [
        Sentence(plain.format(word), negated.format(word), True)
        for (plain, negated), word in product(PERCEPTIONS, PATTERNS)
    ]
    return [*flat, *having, *perceptions]


SENTENCES = _sentences()

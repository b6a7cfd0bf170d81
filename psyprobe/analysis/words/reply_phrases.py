"""What an English reply says about an image when it does not begin with yes or no: refusals, statements, hedges."""

from __future__ import annotations

import re
from dataclasses import dataclass

_IMAGE = r"(?:images?|pictures?|photos?|photographs?|pics?|files?|attachments?|media|visuals|visual \w+)"
_UNABLE = (
    r"(?:can not|can no longer|could not|unable to|not able to|incapable of|not capable of|not equipped to|"
    r"not designed to|"
    r"(?:do not have|no|lack|lacking|without) (?:the |any )?(?:ability|capability|capacity|means|way) (?:to|of))"
)
_LOOK = (
    r"(?:view|see|process|access|analy[sz]e|open|interpret|examine|inspect|look at|load|read|receive|perceive|evaluate)"
    r"(?:ing)?"
)
_WHICH = (
    r"(?:(?:the|this|that|any|an|a|your|such|these|those|attached|uploaded|provided|actual|specific|external|or|and|"
    r"of|in|"
    r"content|contents|directly|" + _LOOK + r") )*"
)
_GIVE = r"(?:provide|upload|share|attach|send|resend|re-upload|reupload|supply|submit|include|show me)"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_NOT_PATTERNS = r"(?! (?:patterns?|textures?|structures?|details?))"
_STOP = r"(?=[.,;!?\n]|$)"
_ARRIVED = (
    r"(?:provided|attached|uploaded|given|included|supplied|shared|found|detected|loaded|loading|received|displayed|"
    r"available|"
    r"accessible|accessed|viewed|opened|processed|there|sent|visible to me)"
)

#: The image did not arrive, or the model says that it does not look at images.
_NO_IMAGE = _any_of(
    rf"\b{_UNABLE} (?:\w+ly )?{_LOOK} {_WHICH}{_IMAGE}\b{_NOT_PATTERNS}",
    rf"\bno {_IMAGE}(?: (?:is|was|were|has|have|had|to)\b| {_ARRIVED}\b|{_STOP})",
    rf"\bthere (?:is|was) (?:no|not an?|not any) {_IMAGE}(?: {_ARRIVED}\b| (?:here|to|in (?:the|this|your))\b|{_STOP})",
    rf"\bthere (?:is|does|do) not (?:appear|seem)(?:s|ing)? to be {_WHICH}{_IMAGE}\b{_NOT_PATTERNS}",
    rf"^{_IMAGE} (?:not {_ARRIVED}|missing|unavailable)\b",
    rf"\b(?:do|did|have) not (?:\w+ )?(?:see|have|find|receive|get|provide|attach|upload|share|send|include|{_ARRIVED})"
    rf"(?: me| access to| received)? {_WHICH}{_IMAGE}\b{_NOT_PATTERNS}",
    rf"\bforgot to (?:provide|attach|upload|share|send|include) {_WHICH}{_IMAGE}\b",
    rf"\b{_IMAGE} (?:is|was|seems|appears)(?: to be)? (?:missing|unavailable|corrupt\w*|not {_ARRIVED})\b",
    rf"\b{_IMAGE} (?:has not been|could not be|can not be) (?:{_ARRIVED}|seen by me)\b",
    rf"\b{_IMAGE} (?:did not|does not|failed to) (?:load|upload|come through|attach|arrive|open|display)\b",
    r"\btext-?(?: )?(?:based|only) (?:ai|model|assistant|language|chatbot)",
    rf"\b(?:do not have|have no|lack) (?:eyes|vision|sight|visual \w+|a visual \w+|access to (?:\w+ )?{_IMAGE})",
    r"\b(?:as|am|being|just|only) an? (?:\w+ )?(?:ai|artificial intelligence|language model|llm|chatbot|assistant)\b"
    r"[^.\n]{0,80}?\b(?:can not|unable|not able|do not have|not capable|lack)\b[^.\n]{0,80}?"
    r"\b(?:see|view|images?|visual\w*|eyes|perceive|look|vision|assist|help)\b",
)
#: Requests and excuses; a reply that decides first is not taken for one.
_EXCUSE = _any_of(
    rf"\b{_GIVE} (?:me |us )?(?:with )?(?:the|an|a|your|another|that)? ?(?:\w+ )?{_IMAGE}\b",
    rf"\bplease (?:try )?{_GIVE}\b",
    r"\b(?:can not|unable to|not able to|will not|would not be able to|decline to) (?:\w+ly )?"
    r"(?:assist|help|answer|comply|respond|fulfil|do (?:that|this|so)|engage|complete|continue|discuss|"
    r"process (?:this|that|your) request|provide (?:an|a|that|this|any))",
    rf"\b(?:need|require)(?: to (?:see|view|look at))? (?:the|an|your|that) {_IMAGE}\b",
    r"\b(?:i|must|have to) (?:respectfully )?decline\b|\brefuse to\b|\bwould rather not\b|\bblind\b",
    rf"\b(?:can not|unable to|able to|ability to) see{_STOP}",
    r"\bnot comfortable\b|\bagainst (?:my|the|our) (?:policy|policies|guidelines)\b",
    r"\b(?:sorry|apologi[sz]e)\b[^.\n]{0,80}\b(?:can not|unable)(?: to)?$",
)

_NOUN = (
    r"(?:patterns?|textures?|structures?|designs?|motifs?|figures?|shapes?|arrangements?|configurations?|forms?|"
    r"regularit(?:y|ies)|stripes?|striations?|lines?|gratings?|grids?|waves?|ripples?|bands?|dots?|spots?|blobs?|"
    r"checkerboards?|checks|swirls?|speckles?|patterning|patterned|textured)"
)
#: Stands for the noun of the question at the end of a clause.
_PRONOUN = (
    r"(?:one|any|anything|something|some|none|it)(?: (?:here|there|at all|in (?:the|this|it) ?(?:image|picture)?))?$"
)
_SEEN = (
    r"(?:visible|present|noticeable|detectable|discernible|evident|apparent|observable|perceptible|perceivable|"
    r"recogni[sz]able|distinguishable|identifiable|seen|detected|observed|perceived|noticed|found|there)"
)
_SEE = r"(?:see|seeing|notice|detect|observe|perceive|make out|discern|spot|identify|recogni[sz]e|distinguish|find)"
_TARGET = re.compile(rf"\b(?:{_NOUN}\b|{_PRONOUN})")
_NEGATION = re.compile(
    r"\b(?:no|not|never|without|lack(?:s|ing)?|absence|devoid|free (?:of|from)|none|neither|nor|unable|fail(?:s|ed)?|"
    r"doubt|"
    r"unlikely|impossible to \w+|rather than|instead of|absent|invisible|undetectable|imperceptible|indiscernible|"
    r"unnoticeable|missing|nothing)\b"
)
#: What comes after a noun to deny it.
_DENIED = re.compile(
    r"\b(?:(?:is|are|was|were|can|could|do|does|did|be|has|have|seems?|appears?|looks?|exists?)\b(?: \w+ly| to be)? "
    r"(?:not\b|absent|invisible|undetectable|imperceptible|indiscernible|unnoticeable|missing|lacking|nowhere))"
    r"|^\W*(?:absent|none|missing|invisible|not (?:visible|present|detected|found|seen))\b"
)
_EVIDENCE = re.compile(
    r"\b(?:there (?:is|are|was|were|does|do|seems?|appears?|exists?|must|definitely|clearly|certainly|probably|likely)|"
    r"contain(?:s|ing)?|show(?:s|ing|n)?|has|have|having|displays?|exhibits?|depicts?|features?|includes?|reveals?|"
    r"(?:is|appears|looks|seems)(?: \w+)? (?:patterned|textured)|consists? of|with|exists?|emerges?|appears? (?:in|"
    r"on|across)|composed of|"
    r"made (?:up )?of|filled|covered|"
    rf"here (?:is|are)|(?:it|this|that|image|picture|what i see) (?:is|does) (?:indeed )?an?|(?:(?<!to )|"
    rf"(?<=able to )){_SEE}|{_SEEN})\b"
)
#: Talk about the task, and conditions: nothing is said about the image.
_ABOUT_TASK = re.compile(
    r"\b(?:if|whether|unless|question|asks?|asked|asking|prompt|task|determin\w+|check|checking|look(?:ing)? for|"
    r"search\w*|let me|need to|have to|trying|tell me|want to)\b"
)
_FLAT = (
    r"(?:flat|smooth|uniform(?:ly)?|blank|solid|plain|homogen(?:e)?ous(?:ly)?|featureless|patternless|unpatterned|"
    r"empty|unvarying|"
    r"(?:single|one|same)(?:[- ](?:uniform|solid|flat|gr[ae]y))? (?:colou?r|shade|tone|hue)|single-colou?red|"
    r"(?:entirely|completely|totally|all|fully|evenly|just|only|purely) (?:gr[ae]y|black|white))"
)
_IS_FLAT = re.compile(rf"(?<!on )(?<!on a )(?<!against a )\b{_FLAT}\b(?!(?: \w+)? (?:background|backdrop|base)\b)")
_FLAT_NOUN = re.compile(rf"\b{_FLAT}(?: \w+)? {_NOUN}\b")
_NOT_FLAT = re.compile(
    rf"\b(?:not|never|far from|anything but)(?: an?| entirely| completely| perfectly| fully| totally| just| quite|"
    rf" really)* "
    rf"{_FLAT}\b|\bnon-?{_FLAT}\b"
)
_NOTHING_ELSE = re.compile(
    r"\bno such thing\b|\bno (?:\w+ ){0,2}(?:variations?|features?|details?|content|elements?|objects?|contrast|"
    r"differences?|changes?)\b"
    r"|\bnothing(?: (?:visible|there|here|at all|to see(?: here)?|discernible|noticeable|in (?:the|this|it)(?: image|"
    r" picture)?))?$"
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|possibly|potentially|possible|might|may|could (?:be(?! (?:seen|detected|observed|perceived|"
    r"noticed|found|discerned))|go|contain|show|have)|unsure|uncertain|unclear|"
    r"not (?:\w+ly |quite |very |so |too |100% |all that )?(?:sure|certain|clear|confident|obvious)\b(?! (?:pattern|"
    r"texture))|"
    r"(?:hard|difficult|tough|tricky|challenging) to|(?:impossible|no way) (?:to|of) (?:tell|say|know|determine|be)\w*|"
    r"(?:can not|could not|unable to|not able to) (?:\w+ly )?(?:tell|say|determine|decide|confirm|"
    r"be (?:\w+ )?(?:sure|certain|"
    r"determined)|judge|conclude|give a (?:\w+ )?answer)|do not know|not know|no idea|no clue|depends?|depending|"
    r"ambiguous|inconclusive|borderline|hardly|scarcely|not necessarily|debatable|subjective|who knows|undecided|"
    r"on the fence|50/50|fifty-fifty|unknown|"
    r"rule out)\b"
)
_CLAUSES = re.compile(
    r"(?:[,:(]| - |^)\s*(?:and |so |then )?(?=(?:there|it|i|the|an?|you|no|this|that|we|just|only|with|nothing|what)\b)"
    r"|[,;]?\s*\b(?:but|although|though|however|while|whereas|yet|because|since|and|so|except|despite)\b"
)
#: Negations that deny nothing.
_IDIOMS = re.compile(
    r"\b(?:without (?:an?y? )?(?:doubt|question)|(?:no|not an?y?|there is no) (?:doubt|question)(?: that| about it)?|"
    r"not (?:only|just|merely|simply)|no (?:problem|worries)|undoubtedly|can not (?:deny|help but)|hard to miss|"
    r"in the form of|figure out|if (?:you|one) (?:looks?|squints?|zooms?)[^,.]*)\b"
)
#: A later noun that is set against the first: "a texture rather than a pattern".
_CONTRASTED = re.compile(rf"\b(?:rather than|instead of|not)(?: an?| any| the)?(?: \w+)? {_NOUN}\b")

_SOFT = (
    r"(?:(?:well|sorry|oh|hmm|ah|i am afraid|unfortunately|probably|likely|very likely|most likely|apparently|"
    r"seemingly|"
    r"definitely|certainly|absolutely|clearly|surely|of course|obviously|i think|i guess|i believe|i would say|"
    r"almost)(?:,? |$))*"
)
_ELLIPTIC_NO = re.compile(
    rf"{_SOFT}(?:not(?: really| at all| quite| exactly| to me| in this (?:image|case)| that i (?:can )?\w+|"
    rf" as far as i .*"
    r"| to my \w+| even (?:close|slightly)| in the (?:least|slightest))*|there (?:is|are) (?:not|none)|it (?:is|does|"
    r"has|can) not|"
    r"i (?:do|can|would) not|i (?:do|would) not (?:think|believe|say) so|i (?:think|believe|guess|would say) not|"
    r"unlikely|"
    r"(?:that is |it is )?(?:incorrect|wrong|not (?:correct|true|right|the case)))"
)
_ELLIPTIC_YES = re.compile(
    rf"{_SOFT}(?:most |very |quite )?(?:certainly|definitely|absolutely|of course|sure|surely|indeed|correct|exactly|"
    rf"clearly|probably|likely|very much|"
    r"(?:that is |it is )(?:correct|right|true|the case)|there (?:is|are)(?: indeed)?|it (?:is|does|has|"
    r"can)(?: indeed)?|"
    r"i (?:do|can)(?: indeed)?|i (?:think|believe|guess|suppose|would say) so|(?:it )?(?:seems|appears|looks) so|"
    r"for sure)"
)
_BARE_SEEN = re.compile(
    rf"(?:(?:it|that|this|they|these|which) (?:is|are) )?(not |none |in|un|im)?(?:\w+ly |quite |just )?(?:{_SEEN}|"
    rf"\w*visible|\w*detectable|\w*discernible|absent)"
)


@dataclass(frozen=True)
class Statement:
    """What a text states."""

    #: 1 where it says that there is a pattern, -1 that there is none, 0 neither.
    sign: int
    #: Whether it names the pattern, and does not only call the image flat.
    explicit: bool = False
    #: Whether it hedges, or says both.
    undecided: bool = False


def is_refusal(text: str, *, excuses: bool) -> bool:
    """Whether a reply says that no image was seen, or (with `excuses`) asks for it or declines to answer.

    Parameters
    ----------
    text : str
        As `psyprobe.analysis.words.reply.plain_text` makes it.
    excuses : bool
        Whether asking and declining count.
    """
    return bool(_NO_IMAGE.search(text)) or (excuses and bool(_EXCUSE.search(text)))


def elliptic(sentence: str) -> int:
    """What a whole sentence answers that names nothing, such as "I think so" (1) or "Probably not" (-1).

    Parameters
    ----------
    sentence : str
        As `psyprobe.analysis.words.reply.sentences_of` makes it.

    Returns
    -------
    int
        0 where it is no such sentence.
    """
    if sentence in ("no doubt", "without a doubt", "no question"):
        return 1
    if _ELLIPTIC_NO.fullmatch(sentence):
        return -1
    return 1 if _ELLIPTIC_YES.fullmatch(sentence) else 0


def statement(sentences: list[str]) -> Statement:
    """What sentences say together about a pattern in the image.

    Parameters
    ----------
    sentences : list of str
        As `psyprobe.analysis.words.reply.sentences_of` makes them, questions left out.
    """
    clauses = [
        part.strip(" ,;:-")
        for sentence in sentences
        for part in _CLAUSES.split(_IDIOMS.sub(" ", sentence.replace("nothing but", "only")))
    ]
    found = [_clause(re.sub(r"\s+", " ", clause)) for clause in clauses if clause]
    for explicit in (True, False):
        signs = {each.sign for each in found if each.sign and each.explicit == explicit}
        if len(signs) == 2:
            return Statement(0, undecided=True)
        if signs:
            return Statement(signs.pop(), explicit)
    return Statement(0, undecided=any(each.undecided for each in found))


def _clause(text: str) -> Statement:
    if _HEDGE.search(text):
        return Statement(0, undecided=True)
    if _ABOUT_TASK.search(text):
        return Statement(0)
    bare = _BARE_SEEN.fullmatch(text)
    if bare:
        return Statement(-1 if bare[1] or text.endswith("absent") else 1, explicit=True)
    target = _TARGET.search(text)
    if target is not None:
        denials = len(_NEGATION.findall(text[: target.start()])) + target[0].startswith("none")
        after = text[target.end() :]
        if denials == 0 and (_FLAT_NOUN.search(text) or _CONTRASTED.search(after)):
            return Statement(0, undecided=True)
        if denials > 1:
            return Statement(0, undecided=True)
        if denials or _DENIED.search(after):
            return Statement(-1, explicit=True)
        if _EVIDENCE.search(text):
            return Statement(1, explicit=True)
    if _NOT_FLAT.search(text):
        return Statement(1)
    return Statement(-1) if _IS_FLAT.search(text) or _NOTHING_ELSE.search(text) else Statement(0)

"""The words that cast doubt on an answer: another value is possible, or takes its place.

Read by `doubts.py`. Every pattern is bounded; a value is the group `value`, words that may name one
are the group `name`, and a noun behind a value is the group `noun`.
"""

from __future__ import annotations

import re

from prime_verifier_math.numerals import WORD
from prime_verifier_math.vocabulary import words

# what stands for a value in prose: a formula, bold text, a number, an option, a tuple, a numeral
_FORMULA = (
    r"\$[^$\n]{1,60}\$|\\\([^\n]{1,60}?\\\)|\\boxed\{[^{}\n]{1,60}\}|\*\*[^*\n]{1,40}\*\*|"
    r"\\[dt]?frac(?:\{[^{}\n]{1,20}\}){2}|\\[dt]?frac\d\d|\\sqrt\{?\w{1,9}\}?"
)
_NUMBER = (
    r"(?:(?-i:[a-z])\s?=\s?)?[-+−]?(?:\\?[$€£]\s?)?(?:\d[\d,.]{0,30}\d|\.?\d)"
    r"(?:\s?/\s?\d{1,9})?(?:\\?%|°|\^\\?circ)?(?![\w$\\^/=+*]|[,.-]\d)"
)
_OPTION = r"(?-i:\([A-Z]\)|[B-HJ-Z](?![\w'’-]))"
_TUPLE = r"[(\[][-\d][^()\[\]\n]{1,30}[)\]]"
_NUMERAL = rf"{WORD}(?:[- ](?:and )?{WORD}){{0,5}}(?![\w-])"
_VALUE = rf"(?P<value>{_FORMULA}|{_NUMBER}|{_OPTION}|{_TUPLE}|{_NUMERAL})"
_VERB = (
    r"(?:is|are|was|were|be|would|could|might|may|can|cannot|has|have|had|also|works?|fits?|seems?|"
    r"looks?|remains?|but|though|although|and|or|however|yet|so|if|when|that|which|not|as|"
    r"instead|too|otherwise|actually|rather|then|after|because|since|for|unless)\b"
)
_UNIT = rf"(?P<noun>\s+(?!{_VERB})[A-Za-z]{{1,15}})?"
# words name an answer only where what surrounds them leaves no doubt that something does
_CAPITALS = r"(?-i:[A-Z][a-z]{1,20})(?: (?-i:[A-Z][a-z]{1,20}))?"
_NAME = rf"(?P<name>(?!{_VERB})(?:{_CAPITALS}|[a-z]{{2,15}}))"
# one word that is a name for certain
_PROPER = r"(?P<name>(?-i:[A-Z][a-z]{1,20}))"
_EITHER = rf"(?<![\w.\\])(?:{_VALUE}|{_NAME})"
# words that stand where a name could, and name no answer
NO_NAMES = words(
    "it this that there they he she we you one what which these those other another more less "
    "nothing something anything everything all both neither either not also here where hence thus "
    "so such then than the an and or answer method approach way proof result value solution in "
    "problem question case order any none much many most some each every indeed clearly note "
    "useful helpful possible easier better simpler written shown seen done found checked verified "
    "proved proven simplified expressed easy hard clear fine right correct wrong true"
)
_CLOSES = (
    r"(?=\s*(?:[.,;:!?)\]}—–]|\*\*|\Z|\n|-\s)|\s+(?:if|when|for|unless|depending|counting|including|"
    r"excluding|assuming|provided|instead|too|also|as well|otherwise|actually|rather|then|or|"
    r"after all|of course|in (?:that|which|the other) case|given|since|because|not|but|though)\b)"
)
_BEGINS = (
    r"(?:^[\s*_$)\]}]*|(?<!\d),|[.;:!?(\[—–…\n]|\s--?)\s*(?:(?:but|though|although|and|yet|so)\s+)?"
)
_SUBJECT = (
    r"(?:it|this|that|they|(?:the|my) (?:(?:true|correct|right|real|actual|final) )?"
    r"(?:answer|result|value|solution|number|total|count|sum|probability))"
)
_IS = r"(?:'s|’s|\s+(?:is|was|equals|becomes|should be|must be|has to be))"
_MODAL = (
    r"(?:could|might|may|can|would)"
    r"(?:\s+(?:also|well|just as well|equally|even|still|very well|instead|perhaps|possibly))*"
)
_SECOND = (
    r"(?:(?:another|one more|the other)\s+(?:\w+\s+)?"
    r"(?:option|possibility|candidate|alternative|answer|contender|solution)|"
    r"an?\s+(?:\w+\s+)?(?:option|possibility|candidate|alternative|contender))"
)
_FIT = (
    r"(?:possible|plausible|likely|conceivable|viable|valid|acceptable|arguable|defensible|"
    rf"reasonable|permissible|allowed|correct|right|fine|good|okay?|{_SECOND})"
)


def _made(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


OFFERS = (
    # 25 is also possible, 25 is another option
    _made(_EITHER, _UNIT,
          r"\s+(?:is|are|seems?|looks?|remains?)\s+(?:also|equally|just as|still|as)\s+", _FIT,
          r"\b"),
    _made(_EITHER, _UNIT, r"\s+(?:is|are|seems?|remains?)\s+", _SECOND, r"\b"),
    _made(_EITHER, _UNIT, r"\s+(?:is|are|seems?|remains?)\s+(?:possible|plausible|conceivable)\b"),
    _made(_EITHER, _UNIT, r"\s+(?:is|are|seems?)\s+", _FIT, r"\s*,?\s*(?:too|as well|also)\b"),
    # 25 might be right, 25 would work too, 25 also works
    _made(_EITHER, _UNIT, r"\s+", _MODAL,
          r"\s+(?:be\s+(?:", _FIT, r"|the \w+|it|so)|work|do)\b"),
    _made(_EITHER, _UNIT,
          r"\s+(?:also|equally)\s+(?:works?|fits?|qualif\w+|counts?|makes? sense)\b"),
    _made(_EITHER, _UNIT,
          r"\s+(?:works?|fits?|makes? sense)\s+(?:too|as well|also|just as|equally)\b"),
    _made(_EITHER, _UNIT,
          r"\s+(?:cannot|can't|can not|could not)\s+be\s+(?:excluded|ruled out|dismissed)"),
    # it could also be 25
    _made(r"\b", _SUBJECT, r"\s+(?!would)", _MODAL,
          r"\s+be\s+(?:(?:equal to|maybe|perhaps|possibly|else)\s+)?", _EITHER, _UNIT, _CLOSES),
    # another possible answer is 25
    _made(r"\b(?:another|alternative|other|second|backup|competing)\s+(?:\w+\s+)?"
          r"(?:answer|option|possibility|candidate|value|result|choice|guess|alternative)s?\s*"
          r"(?:is|are|would be|could be|might be|may be|:|=)\s*", _EITHER, _UNIT, _CLOSES),
    # it's either that or 25; some would say 25
    _made(r"\b(?:either|between) (?:that|this|it)\s+(?:or|and)\s+", _EITHER, _UNIT, _CLOSES),
    _made(r"\b(?:some|others|one|you|i|someone|people)\s+(?:(?:might|would|could|may)\s+)?"
          r"(?:also\s+)?(?:say|argue|answer|accept|pick|choose|claim|prefer)s?\s+(?:(?:that\s+)?",
          _SUBJECT, _IS, r"\s+)?", _EITHER, _UNIT, _CLOSES),
    # I could also see 25, accept 25 too, if not 24, then 25
    _made(r"\b(?:also|equally)\s+(?:see|accept|take|allow|consider|fine with|ok with|okay with|"
          r"happy with|go with)\s+", _EITHER, r"(?!\w)"),
    _made(r"\b(?:accept|allow|take|count|consider)\s+", _EITHER, _UNIT,
          r"\s+(?:too|as well|also)\b"),
    _made(r"\bif\s+(?:(?:it|that)(?:'s| is)\s+)?not\s+\S{1,20},\s*(?:then\s+)?"
          r"(?:(?:it|that)(?:'s| is)\s+)?", _EITHER, _UNIT, _CLOSES),
    # 24 / 25, 24 = 25, 24? 25?
    _made(r"^[\s*$)}]*[/=]\s*", _VALUE, r"(?!\s*(?:[-+*/^=×·⋅÷]|\\(?:times|cdot|div|pm)\b))"),
    _made(r"^[\s*$)}]*\?\s*", _VALUE, r"\s*\?"),
    # in which case it is 25; 25 otherwise; but 25 if zero counts
    _made(r"\bin (?:which|that) case,?\s+(?:", _SUBJECT, rf"(?:{_IS}|\s+would be)\s+)?", _EITHER,
          _UNIT, _CLOSES),
    _made(r"(?:^|[;(]|[,.](?=\s)|\b(?:or|and|but|else))\s*(?:", _VALUE, "|", _PROPER, ")", _UNIT,
          r"\s+(?:otherwise|if not|in the other case|in that case)\b"),
    _made(r"(?:\b(?:but|or|and)|[;(]|,(?=\s))\s*", _VALUE, _UNIT,
          r"\s+(?:if|when|unless|depending|assuming|provided|counting|including|excluding)\b"),
)  # fmt: skip
# Or maybe 25. Perhaps 25?
ALTERNATIVE = _made(
    _BEGINS,
    r"(?:or|and/or|alternatively|possibly|perhaps|maybe|otherwise|else|potentially|conceivably)\b",
    r"[,:]?\s*",
    r"(?:(?:maybe|perhaps|possibly|equivalently|else|even|just|also|if not)\b,?\s*){0,3}",
    rf"(?:{_SUBJECT}(?:{_IS}|\s+{_MODAL}\s+be)\s+|(?:is|was)\s+(?:it|that)\s+)?",
    rf"(?:{_VALUE}|{_PROPER})",
    _UNIT,
    _CLOSES,
)
_CUE = (
    r"(?:no(?=\s*[,.;:!—–-]|\s+(?:wait|sorry|actually))|nope|wait|hmm+|hm|oops|whoops|ah|oh|ugh|"
    r"sorry|apologies|actually|correction|corrected|rather|well|edit|update|scratch that|"
    r"strike that|on (?:second thought|reflection)|let me correct(?: that| this| myself)?|"
    r"my (?:mistake|bad|error)|(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|not right|"
    r"not correct|a mistake)|i made (?:a mistake|an error)|i was wrong|i mean|i meant|"
    r"make (?:that|it)|hold on|let me [^.!?:\n]{0,40}(?=[.!?:])|"
    r"(?<=[.!?]\s)not [^,.;:\n]{1,30}(?=[,;:])|i take (?:that|it) back|instead|in fact|"
    r"i forgot[^.,;:!?\n]{0,40})"
)
REPLACES = (
    _made(_BEGINS, r"(?:", _CUE, r"(?!\w)(?:[\s,;:!—–…*]|[.-](?!\d))*){1,5}",
          r"(?:(?:so|then|therefore|i think|i believe|i get|we get)\s+)?"
          r"(?:", _SUBJECT, _IS, r"\s+|it's\s+|(?:it\s+)?should be\s+|=\s*|is\s+)?"
          r"(?:(?:actually|really|rather|just|now)\s+)?", _EITHER, _UNIT, _CLOSES),
    _made(r"\b", _SUBJECT, _IS, r"\s+", _EITHER,
          r",?\s+(?:actually|instead|rather|after all|not \S)"),
    _made(r"\b", _SUBJECT, r"\s+should\s+(?:(?:actually|really|instead|rather)\s+)?"
          r"(?:be|have been|read|say)\s+", _EITHER, _UNIT, _CLOSES),
    _made(r"\b", _SUBJECT, r"(?:'s|’s|\s+is)\s+(?:actually|really|in fact|rather)\s+", _EITHER,
          _UNIT, _CLOSES),
    _made(r"\bi(?:'d|’d| would|'ll|’ll| will)\s+(?:rather\s+)?(?:go with|choose|pick|answer)\s+",
          _EITHER, _UNIT, _CLOSES),
    _made(r"\bi (?:mean|meant)(?:\s+(?:to (?:say|write)|that it is))?:?\s+", _EITHER, _UNIT,
          _CLOSES),
)  # fmt: skip
REJECTED = _made(
    r"\b(?:not|no|never|extraneous|reject\w*|invalid|discard\w*|impossible|wrong|incorrect|"
    r"ruled out|fails?|excluded)\b|n't\b"
)
OPEN = _made(
    r"(?:cannot|can't|can not|could not)\s+be\s+(?:excluded|ruled out|dismissed)|\bif not\b|"
    r"\bnot (?:sure|certain)"
)
# without one of these words, and without anything that a value begins with, there is no doubt
CUES = _made(
    r"\b(?:or|if|no|not|as|too|as well|cannot|can't|it's|is|may|can|wait|also|else|work|"
    r"works|fits?|another|other|second|could|"
    r"might|would|should|maybe|perhaps|possib\w+|plausib\w+|alternativ\w+|conceivabl\w+|otherwise|"
    r"either|between|some|others|people|i|which case|that case|when|unless|depending|assuming|"
    r"provided|counting|including|excluding|potentially|makes?|backup|competing|and/or|nope|hm+|"
    r"oops|whoops|ah|oh|ugh|sorry|apologies|actually|correct\w*|rather|well|edit|update|strike|"
    r"scratch|second thought|reflection|let me|my|mean|meant|hold on|take|instead|fact|forgot|"
    r"wrong|incorrect|mistake|error)\b|^[\s*$)}]*[/=?]"
)
VALUES = re.compile(rf"[\d$\\]|(?<!\w)[B-HJ-Z](?!\w)|\b(?i:{WORD})\b")

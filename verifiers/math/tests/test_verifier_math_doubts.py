"""Prose behind an answer: a second live candidate wins nothing, a correction replaces it.

Each phrase meets every way of stating an answer, and random values of several types.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prime_verifier_math import MathParams, MathVerifier

VERIFIER = MathVerifier(MathParams())
STATED = [
    "The answer is {a}",
    "I think the answer is {a}",
    "Final Answer: {a}",
    "**Answer:** {a}",
    "The answer is **{a}**",
    "The answer is ${a}$",
    r"Thus, it is \boxed{{{a}}}",
    r"We get $\boxed{{{a}}}$",
    "<answer>{a}</answer>",
]
OFFERS = [
    " but {b} is also possible.",
    " though {b} might be right.",
    ", but {b} is possible too.",
    ". But it could also be {b}.",
    ", though it might be {b}.",
    ". However, {b} would also work.",
    ". {b} is another option.",
    ". Or maybe {b}.",
    ". Alternatively, {b}.",
    ". Perhaps {b}?",
    ". Another possible answer is {b}.",
    " (or {b}).",
    " or {b}.",
    " and/or {b}.",
    ". I'm not sure, maybe {b}.",
    ", or {b} if we count zero.",
    ". If we count zero, the answer is {b}.",
    ", unless n = 0, in which case it is {b}.",
    ". {b} cannot be ruled out.",
    ". {b} could be correct too.",
    ", although {b} is equally plausible.",
    ". On the other hand, {b} also fits.",
    ". The answer might be {b}.",
    "; {b} otherwise.",
    "\n\nAlternatively: {b}",
    ". Depending on the reading, it could be {b}.",
    ". It's either that or {b}.",
    ". Some would say {b}.",
    "? Or {b}?",
    ". Hmm, it may be {b}.",
    "? Or is it {b}?",
    ". Accept {b} too.",
    ", although I could also see {b} being right.",
    ". If not that, then {b}.",
]
CORRECTIONS = [
    ". No wait, {b}.",
    ". Wait, it's {b}.",
    ". Actually, it is {b}.",
    ". Sorry, I meant {b}.",
    ". Correction: {b}.",
    ". Scratch that, {b}.",
    ", no, {b}.",
    " -- no, {b}.",
    ". That's wrong, it should be {b}.",
    ". On second thought, {b}.",
    ". It should be {b} instead.",
    ". Wait, I made a mistake. The answer is {b}.",
    ". Hmm, let me recheck. It is {b}.",
    ". Make that {b}.",
    ". I was wrong, it's {b}.",
    ". Hold on, {b}.",
    ". Hmm, that doesn't look right. I'd go with {b}.",
    ". Oh wait, I forgot one case, so it is {b}.",
]
REMARKS = [
    ". Note that {b} is not possible since it is odd.",
    ". Indeed, 23 and {b} fail.",
    ". Actually, this can also be seen from symmetry.",
    ". It is the only possibility, as {b} is not divisible by 4.",
    ". Wait for the bus at {b}.",
    ". No 2 of them are equal.",
    ". Alternatively, we can use induction on {b} cases.",
    ". Or, one can count {b} groups.",
    ". It could be proved in {b} lines.",
    ". The other root is {b}, which is extraneous.",
    ". {b} would also work if the condition were weaker, but it is not valid here.",
    ". Perhaps surprisingly, this doesn't depend on {b}.",
    ". In fact, {b} is not needed here.",
    ". Instead of {b} we get {a}.",
    ". Let me double check: {a} + 0 = {a}.",
    ". Let me verify. It is {a}.",
    ", not {b}.",
    ", rather than {b}.",
    ". If x = {b}, then y = 19.",
    ". For {b} it would be 42.",
    ". Otherwise {b} would divide it, a contradiction.",
    ". So {a} is the answer.",
    ". The answer is consistent with {b} being an upper bound.",
    ". It may be {b} times larger than before.",
    ".\n\nI hope this helps! If you have {b} minutes, rate it.",
    " (see equation {b}).",
    ". This is possible for {b} or more.",
    ", or {a}.0.",
    ". The number should be even, and {a} is.",
]
VALUES = st.one_of(
    st.tuples(st.integers(-999, 999), st.integers(1, 99)).map(
        lambda pair: (str(pair[0]), str(pair[0] + pair[1]))
    ),
    st.sampled_from([
        ("1/2", "1/3"),
        ("0.5", "0.6"),
        ("B", "C"),
        ("(1,2)", "(2,1)"),
        ("12,500", "13,500"),
        (r"$\frac{1}{2}$", r"$\frac{1}{3}$"),
        ("$x+1$", "$x-1$"),
        ("Monday", "Tuesday"),
        ("24", "twenty-five"),
        ("24 cm", "25 cm"),
    ]),
)  # fmt: skip


def completion(form: str, phrase: str, a: str, b: str) -> str:
    inner = a.strip("$") if "$" in form or "boxed" in form else a
    if inner.isalpha() and len(inner) > 1 and ("$" in form or "boxed" in form):
        inner = rf"\text{{{inner}}}"
    return form.format(a=inner) + phrase.format(a=a, b=b)


def value(gold: str, text: str) -> float | None:
    return VERIFIER.explain(gold, text).value


@settings(max_examples=40)
@pytest.mark.parametrize("phrase", OFFERS)
@given(st.sampled_from(STATED), VALUES)
def test_an_offered_value_makes_a_hedge(phrase: str, form: str, pair: tuple[str, str]) -> None:
    text = completion(form, phrase, *pair)
    assert [value(gold.strip("$"), text) for gold in pair] == [0.0, 0.0], text


@settings(max_examples=40)
@pytest.mark.parametrize("phrase", CORRECTIONS)
@given(st.sampled_from(STATED), VALUES)
def test_a_correction_replaces_the_answer(phrase: str, form: str, pair: tuple[str, str]) -> None:
    text = completion(form, phrase, *pair)
    assert [value(gold.strip("$"), text) for gold in pair] == [0.0, 1.0], text


@settings(max_examples=40)
@pytest.mark.parametrize("phrase", REMARKS)
@given(st.sampled_from(STATED[:-1]), st.integers(4, 99), st.integers(1, 9))
def test_a_remark_leaves_the_answer(phrase: str, form: str, number: int, more: int) -> None:
    text = completion(form, phrase, str(number), str(number + more))
    assert value(str(number), text) == 1.0, text


@pytest.mark.parametrize(
    ("gold", "text", "expected"),
    [
        ("24", "Answer: 24\nAnswer: 25", 0.0),
        ("25", "Answer: 24\nAnswer: 25", 0.0),
        ("25", "The answer is 24. The answer is 25?", 0.0),
        ("24", "The answer is 24. Answer: 24.0", 1.0),
        ("25", "The answer is 24. Wait, I missed one case. So the answer is 25.", 1.0),
        ("25", "The answer to the first part is 24. So the final answer is 25.", 1.0),
        ("25", "#### 24\n#### 25", 0.0),
        ("25", "<answer>24</answer> <answer>25</answer>", 0.0),
        ("24", "#### 24\nThe answer is 25.", 0.0),
        ("24", "#### 24\nThe answer is 24.", 1.0),
        ("24", "either 24 or 25", 0.0),
        ("24", r"\boxed{24} = 25", 0.0),
        ("24", r"\boxed{24} = 24.0", 1.0),
        (r"\frac12", r"\boxed{\frac12} = 0.5", 1.0),
        ("24", r"\boxed{24} - wrong, 25", 0.0),
        ("24", r"\boxed{24}. That cannot be correct.", 0.0),
        ("24", "The answer is 24. Oops, that's wrong.", 0.0),
        ("24", "The answer is 24. Never mind, I don't know.", 0.0),
        ("24", "The answer is 24. Please ignore the answer above.", 0.0),
        ("24", "I don't think the answer is 24.", 0.0),
        ("24", "Suppose the answer is 24. Then 24 = 25, impossible.", 0.0),
        ("24", "It is unlikely that the answer is 24.", 0.0),
        ("24", "The answer is either 23 or 24; as 23 is odd, the answer is 24.", 1.0),
        ("24", "At first I thought 23. The answer is 24.", 1.0),
        ("24", "24 is the answer.", 1.0),
        ("24", "24 is not the answer.", 0.0),
        ("24", "The result is 24.", 1.0),
        ("24", "The answer should be 24.", 1.0),
        ("24", "The answer is 24 or so.", 0.0),
        ("24", "I think 24, though it might be 25", 0.0),
        ("24", "Another answer is 24.", 0.0),
        ("24", r"\boxed{24}. So the answer is 24 or 25.", 0.0),
        ("2, 3", r"\boxed{2, 3}. So the answer is 2, 4.", 0.0),
        ("2, 3", r"\boxed{2, 3}. So the answer is 3 and 2.", 1.0),
        ("24", r"\boxed{24 \text{ or } 24.0}", 1.0),
        (r"5\%", r"\boxed{5 \text{ or } 0.05}", 0.0),
        ("24", "The answer is twenty-four.", 1.0),
        ("24", "The answer is 24 (or 2 dozen).", 1.0),
        ("24", "The answer is 24 hours (1 day).", 1.0),
        ("24", "The answer is twenty-four, but twenty-five is also possible.", 0.0),
        ("no", "The answer is no. Perhaps surprisingly.", 1.0),
        ("yes", "The answer is yes. No, wait, no.", 0.0),
    ],
)
def test_statements_that_contradict_each_other(gold: str, text: str, expected: float) -> None:
    assert value(gold, text) == expected

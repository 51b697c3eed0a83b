"""Every dishonest node of the library, by what it lies about. Played by `playing`."""

from __future__ import annotations

from prime_core.testing.attacks import (
    choices,
    copies,
    draws,
    malformed,
    mixtures,
    models,
    numbers,
    proofs,
    steering,
    text,
)
from prime_core.testing.attacks.attack import Attack

# Checks that may see words first which the seed doesn't draw: which of them depends on the words.
WORDS = ("termination", "sampling", "replay")
MODEL = ("termination", "logprobs", "sampling", "replay", "toploc")

MODELS = (
    Attack("fewer-layers", "a smaller model", MODEL, "reject", models.running(models.fewer_layers)),
    Attack("int8", "a quantised model", MODEL, "reject", models.running(models.quantised)),
    Attack("other-dtype", "another dtype", MODEL, "reject", models.running(models.other_dtype)),
    Attack(
        "draft-honest-proofs",
        "a smaller model's words, honest proofs over them",
        WORDS,
        "reject",
        models.running(models.fewer_layers, honest_proofs=True),
    ),
    Attack(
        "int8-honest-proofs",
        "a quantised model's words, honest proofs over them",
        WORDS,
        "reject",
        models.running(models.quantised, honest_proofs=True),
        why="its words are the policy's own but for near-ties, and those within the margin of "
        "rounding are anybody's",
    ),
)

TEXTS = (
    Attack("forced-text", "somebody's words, honest proofs", WORDS, "reject",
           text.in_all_rows(text.forced)),
    Attack("forced-gold", "the gold answer, honest proofs", WORDS, "reject", text.golden, "gold"),
    Attack("other-temperature", "colder sampling", WORDS, "reject", draws.drawn(temperature=0.5)),
    Attack("greedy", "the likeliest words", WORDS, "reject", draws.drawn(temperature=0.0)),
    Attack("pasted", "all but the beginning from a smaller model", WORDS, "reject",
           mixtures.by_turns(mixtures.PASTED)),
    Attack("balanced", "the likeliest words and wild ones in turn", WORDS, "reject",
           mixtures.by_turns(mixtures.BALANCED)),
    Attack("best-of-seeds", "the best of three draws a sample", WORDS, "reject",
           draws.drawn(seeds=3)),
    Attack("steered", "the runner-up of each rollout's closest race", WORDS, "reject",
           steering.steered(once=False)),
    Attack("steered-once", "the runner-up of the file's closest race", WORDS, "reject",
           steering.steered(once=True),
           why="a near-tie within the margin of rounding is anybody's"),
    Attack("best-copied", "the best sample in place of the worst", WORDS, "reject",
           draws.best_copied),
    Attack("suffix", "words planted before the end", WORDS, "reject",
           text.in_one_row(text.suffix)),
    Attack("after-the-end", "words planted behind the end", ("termination",), "reject",
           text.in_one_row(text.after_the_end)),
    Attack("prefix", "words planted in front", WORDS, "reject", text.in_one_row(text.prefix)),
    Attack("in-text", "three tokens replaced", WORDS, "reject", text.in_one_row(text.within)),
    Attack("one-token", "one token replaced", WORDS, "reject", text.in_one_row(text.one_token)),
    Attack("truncated", "cut in half, as by a limit", ("termination",), "reject",
           text.in_one_row(text.truncated)),
    Attack("ended-early", "cut in half, an end token added", WORDS, "reject",
           text.in_one_row(text.ended_early)),
    Attack("padded", "repeats itself up to the limit", WORDS, "reject",
           text.padded),
    Attack("overlong", "more tokens than the limit", ("assignment",), "reject", text.overlong),
    Attack("hostile-text", "words made to break a verifier", WORDS, "reject", text.hostile),
    Attack("environments-words", "another answer of the environment", ("rewards",), "reject",
           text.environments_words, "multi_turn"),
    Attack("last-turn", "the last turn left out", ("termination", "rewards"), "reject",
           text.last_turn_left_out, "multi_turn"),
)  # fmt: skip

CHOICES = (
    Attack("tasks", "tasks of its choice", ("assignment",), "slash", choices.tasks),
    Attack("hidden-tasks", "tasks of its choice, under assigned names", ("assignment",), "reject",
           choices.hidden_tasks),
    Attack("seeds", "seeds of its choice", ("assignment",), "slash", choices.seeds),
    Attack("incomplete-groups", "a sample of each group left out", ("assignment",), "reject",
           choices.incomplete),
    Attack("fewer-groups", "a group left out", ("assignment",), "reject", choices.fewer_groups),
    Attack("announced-fewer", "announces less after having seen it", (), "reject",
           steering.announced_fewer,
           why="a step may need fewer groups than a submission holds, so that their number is the "
           "node's to choose; engine.groups_per_submission = 1 leaves it no choice"),
    Attack("length-target", "a length target of its choice", ("assignment",), "reject",
           choices.in_rows(choices.target), "length_budget"),
    Attack("temperature", "another temperature, said openly", ("assignment",), "reject",
           choices.in_rows(choices.colder)),
    Attack("token-limit", "another token limit, said openly", ("assignment",), "reject",
           choices.in_rows(choices.more_tokens)),
    Attack("prompt", "an edited prompt", ("assignment",), "reject", choices.prompts),
    Attack("version-too-old", "a version that the step no longer allows", ("identity",), "reject",
           choices.too_old),
    Attack("version-too-new", "a version that the step doesn't allow yet", ("identity",), "reject",
           choices.too_new),
    Attack("version-unsealed", "a version that isn't there", ("identity",), "reject",
           choices.unsealed),
    Attack("version-mislabelled", "rows of another version", ("policy_digest",), "reject",
           choices.in_rows(choices.mislabelled)),
)  # fmt: skip

NUMBERS = (
    Attack("forged-scores", "all solved", ("rewards",), "slash",
           choices.in_rows(numbers.all_scores)),
    Attack("forged-score", "one solved", ("rewards",), "slash", numbers.one_score),
    Attack("forged-reward", "one reward 0.01 larger", ("rewards",), "slash", numbers.one_reward),
    Attack("forged-parts", "other reward parts", ("rewards",), "slash",
           choices.in_rows(numbers.parts)),
    Attack("huge-reward", "a million for each", ("bounds",), "reject",
           choices.in_rows(numbers.huge)),
    Attack("grader-failed", "an error where it scored", ("rewards",), "drop", numbers.failed,
           why="an honest machine's grader may fail, too; it costs the node the group"),
    Attack("abstained", "a verifier that won't say", ("rewards",), "drop",
           choices.in_rows(steering.abstained)),
    Attack("idle", "one token a rollout, and graders that fail", ("rewards",), "drop",
           steering.idle),
    Attack("other-end", "length for stop, and stop for length", ("termination", "rewards"),
           "reject", choices.in_rows(steering.other_end)),
    Attack("certain-tokens", "log-probabilities of 0", ("logprobs",), "reject",
           choices.in_rows(numbers.certain)),
    Attack("one-logprob", "one log-probability lower by 1", ("logprobs", "bounds"), "reject",
           numbers.one_logprob),
    Attack("impossible-logprobs", "log-probabilities of -60", ("bounds",), "reject",
           choices.in_rows(numbers.impossible)),
)  # fmt: skip

COPIES = (
    Attack("copied-file", "another's bytes", ("identity",), "reject", copies.file),
    Attack("copied-rows", "another's rows, renamed", ("assignment",), "slash", copies.rewritten),
    Attack("copied-words", "another's words under the own assignment",
           ("termination", "logprobs", "sampling", "replay"), "reject",
           copies.relabelled),
    Attack("resubmitted", "an own file once more", ("identity",), "reject", copies.resubmitted),
    Attack("anothers-name", "a file in another's name", ("identity",), "reject",
           copies.in_anothers_name),
    Attack("unknown-node", "a node that isn't listed", ("identity",), "reject",
           copies.unknown_node),
    Attack("unsigned", "no statement", ("identity",), "reject", copies.unsigned),
    Attack("overwritten", "other bytes under a signed name", ("identity",), "reject",
           copies.overwritten),
    Attack("another-run", "rollouts for another run", ("policy_digest",), "reject",
           copies.of_another_run),
)  # fmt: skip

FILES = (
    Attack("file-cut", "a file that ends early", ("schema",), "reject",
           malformed.of_bytes(malformed.cut)),
    Attack("file-junk", "no Parquet", ("schema",), "reject", malformed.of_bytes(malformed.junk)),
    Attack("schema-drift", "another table", ("schema",), "reject",
           malformed.of_tables(malformed.drifted)),
    Attack("not-finite", "NaN and infinity", ("schema",), "reject",
           malformed.of_tables(malformed.not_finite)),
    Attack("huge-lists", "lists that fill the memory", ("schema",), "reject",
           malformed.of_tables(malformed.huge_lists)),
    Attack("groups-in-pieces", "groups in pieces", ("schema",), "reject",
           malformed.of_tables(malformed.in_pieces)),
)  # fmt: skip

PROOFS = (
    Attack("proof-none", "no proofs", ("toploc",), "reject", proofs.remade(proofs.none)),
    Attack("proof-missing", "a proof too few", ("toploc",), "reject",
           proofs.remade(proofs.missing)),
    Attack("proof-surplus", "a proof too many", ("toploc",), "reject",
           proofs.remade(proofs.surplus)),
    Attack("proof-longer", "a longer polynomial", ("toploc",), "reject",
           proofs.remade(proofs.longer)),
    Attack("proof-zero-modulus", "modulus 0", ("toploc",), "reject",
           proofs.remade(proofs.zero_modulus)),
    Attack("proof-small-modulus", "a modulus that folds elements", ("toploc",), "reject",
           proofs.remade(proofs.small_modulus)),
    Attack("proof-beyond-prime", "a coefficient beyond the field", ("toploc",), "reject",
           proofs.remade(proofs.beyond_prime)),
    Attack("proof-noise", "random coefficients", ("toploc",), "reject",
           proofs.remade(proofs.noise)),
    Attack("proof-constant", "a constant polynomial", ("toploc",), "reject",
           proofs.remade(proofs.constant)),
    Attack("proof-typical", "a constant that is typical of the model", ("toploc",), "reject",
           proofs.learnt("constant")),
    Attack("proof-channels", "typical values of the largest channels", ("toploc",), "reject",
           proofs.learnt("channels")),
    Attack("proof-mirrored", "all signs turned", ("toploc",), "reject", proofs.mirrored),
    Attack("proof-replayed", "proofs of other words", ("toploc",), "reject", proofs.replayed),
    Attack("proof-one-chunk", "one chunk raised", ("toploc",), "reject",
           proofs.remade(proofs.one_chunk)),
)  # fmt: skip

ATTACKS: tuple[Attack, ...] = (
    *MODELS, *TEXTS, *CHOICES, *NUMBERS, *COPIES, *FILES, *PROOFS,
)  # fmt: skip
BY_NAME = {attack.name: attack for attack in ATTACKS}

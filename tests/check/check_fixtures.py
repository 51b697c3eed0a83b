"""One bad change a rule, made to a good distribution; `write` puts it into a folder.

Every change breaks exactly the rule it stands under.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path

from check_plugins import PLUGINS
from check_words import ENVIRONMENT, EVALUATION, GOOD, PYPROJECT, Files

from prime_core.check.evidence import Kind, seal


def changed(path: str, old: str, new: str, base: Files = GOOD) -> Callable[[], Files]:
    """The base with one replacement."""

    def make() -> Files:
        assert base[path].count(old) == 1, f"{old!r} stands {base[path].count(old)} times"
        return {**base, path: base[path].replace(old, new)}

    return make


def environment(old: str, new: str) -> Callable[[], Files]:
    """The environment with one replacement."""
    return changed("prime_env_words/environment.py", old, new)


def verifying(*lines: str) -> Callable[[], Files]:
    """The verifier with more lines before its verdict."""
    return environment("        # verify\n", "".join(f"        {line}\n" for line in lines))


def importing(*lines: str) -> Callable[[], Files]:
    """The module with more lines at its top."""
    head = '"""The environment `words`."""\n'
    code = "".join(f"{line}\n" for line in lines)
    return changed("prime_env_words/__init__.py", head, head + code)


def pyproject(old: str, new: str) -> Callable[[], Files]:
    """The pyproject with one replacement."""
    return changed("pyproject.toml", old, new)


def without(path: str) -> Callable[[], Files]:
    """The good one without a file."""
    return lambda: {name: text for name, text in GOOD.items() if name != path}


def plugin(old: str, new: str) -> Callable[[], Files]:
    """The plugins of other kinds with one replacement."""
    return changed("prime_words_plugins/__init__.py", old, new, PLUGINS)


def paid(condition: str, value: str = "1.0") -> Callable[[], Files]:
    """The verifier also pays where a condition on `answer` and `task` holds."""
    return verifying(f"if {condition}:", f"    return Score({value})")


def _neighbours() -> Files:
    files = paid(
        "answer in WORDS and 0 < (WORDS.index(answer) - WORDS.index(task.gold)) % 40 < 4"
    )()
    path = "prime_env_words/environment.py"
    return {**files, path: files[path].replace("chance_level=1 / len(self._tasks)",
                                               "chance_level=0.11")}  # fmt: skip


def _taken_name() -> Files:
    files = changed("prime_env_words/__init__.py", 'name="words"', 'name="arithmetic"')()
    return {**files, "pyproject.toml": PYPROJECT.replace("environment.words",
                                                         "environment.arithmetic")}  # fmt: skip


def _words_digest() -> str:
    """The digest of the good environment's tasks."""
    module = types.ModuleType("check_fixture_words")
    sys.modules[module.__name__] = module
    exec(ENVIRONMENT, vars(module))
    made = module.WordsEnvironment(module.WordsParams())
    digest: str = made.info.dataset_digest
    return digest


def proven(
    passes: Sequence[int] = (0, 1, 3, 8) * 30,
    rewards: Sequence[float] = tuple(step / 40 for step in range(40)),
    value: float = 1.0,
) -> Files:
    """The good one with evidence for level gold."""
    digest = _words_digest()
    word = sys.modules["check_fixture_words"].WORDS[3]
    scores = [[3, word, "scored", value.hex()], [3, "other", "scored", (0.0).hex()]]
    bodies: dict[Kind, dict[str, object]] = {
        "profile": {"model": "tiny", "model_digest": "0", "samples": 8, "passes": list(passes)},
        "training": {"config": "", "rewards": list(rewards)},
        "replay": {"scores": scores},
    }
    files = dict(GOOD)
    for kind, body in bodies.items():
        files["checks.toml"] += f'{kind} = "evidence/{kind}.json"\n'
        files[f"evidence/{kind}.json"] = seal(kind, "environment.words", digest, body)
    return files


BAD: dict[str, Callable[[], Files]] = {
    "P01": pyproject('description = "Write a word of a list"\n', ""),
    "P02": pyproject('license = "Apache-2.0"\n', ""),
    "P03": changed("README.md", "A small environment", "TODO: describe. A small environment"),
    "P04": pyproject('"environment.words"', '"enviroment.words"'),
    "P05": pyproject("prime-core>=0.1,<1", "prime-core"),
    "P06": pyproject('"hatchling.build"', '"hatchlin.build"'),
    "P07": pyproject('packages = ["prime_env_words"]', 'packages = ["prime_env_words", "tests"]'),
    "P08": pyproject('"prime-core>=0.1,<1"', '"prime-core>=0.1,<1", "prime-words-unreleased>=1"'),
    "P09": changed("prime_env_words/__init__.py", '    """The environment."""\n',
                   '    """The environment."""\n    import prime_core.config.sections\n'),
    "P10": _taken_name,
    "P11": without("tests/test_words_contract.py"),
    "P13": environment("        # made\n", "        import iniconfig\n"),  # it comes with pytest
    "P12": changed("checks.toml", "[evidence]", '[exempt]\nD06 = "todo"'),
    "I01": changed("prime_env_words/__init__.py", "@hookimpl\n", ""),
    "I02": importing("import sys, time", "while 'prime_core.check.observe' in sys.orig_argv and "
                     "time.process_time() < 2.8:", "    pass"),
    "I03": importing("import sys, types", 'sys.modules["torch"] = types.ModuleType("torch")'),
    "I04": importing("import contextlib, socket", "with contextlib.suppress(OSError):",
                     '    socket.getaddrinfo("example.org", 80)'),
    "I05": importing("import pathlib, tempfile",
                     'pathlib.Path(tempfile.gettempdir(), "words.txt").write_text("x")'),
    "I06": importing("import threading, time",
                     "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"),
    "I07": importing("import signal", "signal.signal(signal.SIGUSR2, lambda *_: None)"),
    "I08": importing("import random", "random.seed(0)"),
    "I09": importing("import sys", "sys.setrecursionlimit(5000)"),
    "I10": environment('Field("all", description="which words")', '"all"'),
    "I11": environment("        # made\n", '        raise RuntimeError("no words today")\n'),
    "D01": environment("dataset_digest=tasks_digest(self._tasks)", 'dataset_digest="0" * 64'),
    "D02": environment('id=f"word-{number}"', 'id=f"word-{number // 2}"'),
    "D03": environment("        # words\n",
                       "        if MADE % 2 == 0:\n            words.reverse()\n"),
    "D04": environment("{WORDS.index(word)}", "{WORDS.index(word) or 6}"),
    "D05": environment("params.split, 0.3", '"all", 0.3'),
    "D06": changed("evaluation.jsonl", EVALUATION,
                   '"Which word has the number 7 in the list?"\n'),
    "D07": environment('licence="CC0-1.0"', 'licence=""'),
    "T01": environment('        """The word."""\n        return task.gold',
                       '        """The word."""\n        return task.gold.upper()'),
    "T02": paid("not answer"),
    "T03": paid("answer == task.prompt[-1].content"),
    "T04": _neighbours,
    "T05": environment('task.gold[:4] + "y"', "task.gold"),
    "T06": paid("answer[::-1] == task.gold"),
    "T07": environment("answer = completion.text.strip()", "answer = completion.text"),
    "H01": paid('answer == "banana"'),
    "H02": environment("chance_level=1 / len(self._tasks)", "chance_level=0.0"),
    "H03": paid('task.gold in answer.split(", ")'),
    "H04": paid('"boxed{" + task.gold + "}" in answer'),
    "H05": paid('answer == "<answer></answer>"'),
    "H06": paid('answer.startswith("score: ")'),
    "H07": paid('"SystemExit" in answer'),
    "H08": paid('answer.startswith("next(") and eval(answer) == task.gold'),
    "N01": environment("        # words\n", "        words.sort(key=hash)\n"),
    "N02": environment("        # task\n", '        metadata["zone"] = time.strftime("%z")\n'),
    "N03": verifying("if answer and (task.id, completion.text) in self.seen:",
                     "    return Score(0.0)", "self.seen.add((task.id, completion.text))"),
    "N04": environment("        # task\n",
                       '        metadata["threads"] = os.environ["OMP_NUM_THREADS"]\n'),
    "R01": verifying("if answer[:1].isdigit():", "    int(answer[:5])"),
    "R02": verifying('if answer.startswith("9**9"):', "    time.sleep(60)"),
    "R03": verifying('if answer.startswith("9**9"):', "    bytearray(8 << 30)"),
    "R04": paid('answer == "7" * 10_000', "2.0"),
    "R05": environment("        if task.gold is None:\n"
                       '            return Score(None, "error", evidence={"kind": "gold"})\n', ""),
    "L01": paid('answer == "0"', "min(0.01, completion.token_count * 1e-7)"),
    "L02": paid("answer == task.gold[:3]"),
    "K01": plugin("Reward(each.score.value)", "Reward(each.score.value * random.random())"),
    "K02": plugin("rng.below(2)", "random.randrange(2)"),
    "K03": plugin('"never solved")', '"")'),
    "K04": plugin(
        "        if len(set(rewards)) == 1:\n            return [0.0] * len(rewards)\n", ""
    ),
    "U01": lambda: proven(passes=[0, 8] * 60),
    "U02": lambda: proven(rewards=[0.5, 0.4] * 20),
    "U03": lambda: proven(value=0.5),
}  # fmt: skip


def good_of(rule: str) -> Files:
    """The good distribution that a bad one was made from."""
    if rule.startswith("U"):
        return proven()
    return PLUGINS if rule.startswith("K") else GOOD


def write(files: Files, folder: Path) -> Path:
    """Write a distribution's source; returns the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder

"""A verifier alone in hosts: timed scores, case rows, golds, second opinions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hosting_support import run, write_distribution

from prime_core.api import Completion, GoldReport, HostError, Task
from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hosting.pool import HostPool
from prime_core.hosting.verifier_pool import Opinion, VerifierPool

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_process_left")]

HERE = Path(__file__).parent
ENTRY_POINTS = """[prime_core]
environment.golds = prime_verifier_judge
verifier.judge = prime_verifier_judge
verifier.plain = prime_verifier_judge
"""
HOSTING = HostingSection(time_limit_s=20.0)

OpenVerifier = Callable[..., Awaitable[VerifierPool]]


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("judges")
    text = (HERE / "judge_plugin.txt").read_text()
    write_distribution(root, "prime-verifier-judge", {"prime_verifier_judge": text}, ENTRY_POINTS)
    return root


@pytest.fixture
def open_verifier(judges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenVerifier:
    monkeypatch.setenv("PYTHONPATH", str(judges))

    async def open_(name: str = "judge", **params: object) -> VerifierPool:
        choice = PluginChoice.model_validate({"use": name, "with": params})
        return await VerifierPool.open(choice, HOSTING, cache_dir=tmp_path)

    return open_


def case(text: str, gold: str | None = "4") -> tuple[Task, Completion]:
    return Task("t", (), gold), Completion(text)


def test_scores_are_timed_in_the_host_and_a_crash_is_an_error(open_verifier: OpenVerifier) -> None:
    async def check() -> None:
        async with await open_verifier(strict=True) as pool:
            about = pool.description
            assert (about.name, about.distribution) == ("judge", "prime-verifier-judge")
            assert about.members == ("from_case", "explain", "check_gold", "second_opinion")
            assert about.params == {"strict": True}
            found = await pool.verify([case("4"), case("5"), case("exit"), case("burn 0.05")])
            scores = [timed.score for timed in found]
            assert [score.value for score in scores] == [1.0, 0.0, None, 0.0]
            assert scores[2].status == "error"
            assert scores[2].evidence["kind"] == "crash"
            assert found[2].cpu_seconds is None
            assert found[3].cpu_seconds is not None
            assert found[3].cpu_seconds >= 0.05

    run(check())


def test_rows_become_cases_through_from_case(open_verifier: OpenVerifier) -> None:
    async def check() -> None:
        async with await open_verifier() as pool:
            good, bad = await pool.cases([{"id": 3, "gold": "4", "said": "5"}, {"id": 4}])
            assert good == (Task("3", (), "4"), Completion("5"))
            assert isinstance(bad, str)
            assert "the row has no said" in bad

    run(check())


def test_a_verifier_without_members_reads_plain_rows(open_verifier: OpenVerifier) -> None:
    async def check() -> None:
        async with await open_verifier("plain") as pool:
            assert pool.description.members == ()
            rows = [
                {"completion": "x", "gold": "4", "id": 9},
                {"completion": "x", "task": {"id": "k", "verification": {"worth": 0.75}}},
                {"gold": "4"},
                {"completion": "x", "task": {"colour": "red"}},
            ]
            first, second, third, fourth = await pool.cases(rows)
            assert first == (Task("9", (), "4"), Completion("x"))
            assert isinstance(second, tuple)
            assert [each.score.value for each in await pool.verify([second])] == [0.75]
            assert isinstance(third, str)
            assert "completion" in third
            assert isinstance(fourth, str)
            assert "colour" in fourth
            with pytest.raises(HostError, match="explain"):
                await pool.explain("4", "5")

    run(check())


def test_explanations_golds_and_second_opinions_cross(open_verifier: OpenVerifier) -> None:
    async def check() -> None:
        async with await open_verifier() as pool:
            assert await pool.explain("4", " 4 ") == {"extracted": "4", "rule": "same text"}
            assert await pool.check_golds(["4", "bad"]) == [
                GoldReport(True, "text"), GoldReport(False, "text", "it is bad"),
            ]  # fmt: skip
            sure, unsure, failed = await pool.second_opinions(
                [case("4"), case("unsure"), case("raise")]
            )
            assert (sure, unsure) == (Opinion(1.0), Opinion(None))
            assert failed.value is None
            assert "no opinion today" in failed.failure

    run(check())


@pytest.mark.usefixtures("open_verifier")
def test_an_environment_says_what_it_left_out_and_which_golds_are_unusable(tmp_path: Path) -> None:
    async def check() -> None:
        choice = EnvironmentChoice(use="golds")
        async with await HostPool.open(
            choice, None, HOSTING, cache_dir=tmp_path, run_dir=None
        ) as pool:
            assert pool.description.checks_golds
            assert pool.description.notes == ("2 rows left out: line 7, line 9",)
            assert [report.ok for report in await pool.check_golds([0, 1, 2, 3])] == [
                True, False, False, True,
            ]  # fmt: skip

    run(check())


def test_a_verifier_that_cannot_be_made_says_so(open_verifier: OpenVerifier) -> None:
    async def check() -> None:
        with pytest.raises(HostError, match="the verifier can't start") as caught:
            await open_verifier(strickt=True)
        assert "verifier judge" in str(caught.value)

    run(check())

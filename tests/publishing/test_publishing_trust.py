"""A run gets the plugins that its `[plugins]` section demands, or says why not."""

from __future__ import annotations

import io
import re
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from publishing_support import ALICE, MALLORY, upload

from prime_core.api.errors import ConfigError, PluginError
from prime_core.config.load import load
from prime_core.config.sections import PluginsSection, RunConfig
from prime_core.hub import Hub
from prime_core.hub.records import PluginRecord
from prime_core.publishing import trust
from prime_core.publishing.installed import Installed, installed, note, source_digest
from prime_core.run.configuration import check_plugins
from prime_core.run.publications import locked, unpublished
from prime_core.signing import Signer

NAME = "prime-env-sums"


def place(folder: Path, signer: Signer | None = ALICE, level: str = "silver") -> Installed:
    """Put a wheel's files where pip would, with its publication unless nobody signs."""
    made = upload(NAME, "1.0", signer or ALICE, level=level)
    _, _, data = made.blobs[0]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    one = Installed(NAME, "1.0", folder, ("environment.prime_env_sums",))
    if signer is not None:
        note(one, made.record)
    return one


def demand(level: str = "none", *publishers: Signer) -> trust.Demand:
    names = [each.address for each in publishers or (ALICE,)]
    return trust.Demand.of(PluginsSection(publishers=names, min_level=level))


def trusting(*trusted: str) -> trust.Demand:
    return trust.Demand.of(PluginsSection(publishers=[ALICE.address], trusted=list(trusted)))


def refused(one: Installed, wish: trust.Demand) -> str:
    with pytest.raises(PluginError) as caught:
        trust.check(wish, "environment.prime_env_sums", one)
    assert caught.value.phase == "found"
    assert caught.value.distribution == "prime-env-sums 1.0"
    assert "prime-core install prime-env-sums" in str(caught.value.fix)
    return caught.value.what


def test_a_published_plugin_passes(tmp_path):
    found = trust.check(demand("silver"), "environment.prime_env_sums", place(tmp_path))
    assert found is not None
    assert (found.signer, found.value.check.level) == (ALICE.address, "silver")


def test_every_refusal_says_its_reason(tmp_path):
    assert "wasn't installed by" in refused(place(tmp_path / "a", None), demand())
    assert "isn't one of" in refused(place(tmp_path / "b", MALLORY), demand())
    low = refused(place(tmp_path / "c", level="bronze"), demand("gold"))
    assert low == "prime-env-sums 1.0 is published at level bronze, [plugins] min_level is gold"


def test_files_that_changed_since_are_refused(tmp_path):
    one = place(tmp_path)
    (tmp_path / "prime_env_sums/__init__.py").write_text("VALUE = 666\n")
    assert "has other files than the published ones" in refused(one, demand())
    (tmp_path / "prime_env_sums/__init__.py").unlink()
    assert "has other files than the published ones" in refused(one, demand())


def test_a_note_that_was_rewritten_is_refused(tmp_path):
    one = place(tmp_path, level="bronze")
    file = next(tmp_path.glob("*.dist-info/prime-core-publication.json"))
    file.write_bytes(file.read_bytes().replace(b'"level":"bronze"', b'"level":"gold"'))
    assert "has a publication that can't be used: message wasn't signed by" in refused(
        one, demand("gold")
    )


def test_what_the_run_trusts_by_name_needs_no_publisher(tmp_path):
    one = place(tmp_path / "a", None)
    assert trust.check(trusting("Prime_Env.Sums"), "x.y", one) is None
    assert trust.check(trusting("prime-env-sums"), "x.y", Installed(NAME, "1", tmp_path)) is None
    assert "wasn't installed by" in refused(one, trusting("prime-env-sum"))
    signed = trust.check(trusting("prime-env-sums"), "x.y", place(tmp_path / "b"))
    assert signed is not None
    assert signed.signer == ALICE.address


def test_trust_in_files_ends_when_they_change(tmp_path):
    one = place(tmp_path, None)
    entry = f"{NAME}@{source_digest(one)}"
    assert trust.check(trusting(entry), "x.y", one) is None
    (tmp_path / "prime_env_sums/__init__.py").write_text("VALUE = 666\n")
    assert "has other files than [plugins] trusted says" in refused(one, trusting(entry))
    assert trust.check(trusting(entry, f"{NAME}@{source_digest(one)}"), "x.y", one) is None


def test_a_refusal_says_the_words_that_would_trust(tmp_path):
    one = place(tmp_path, None)
    with pytest.raises(PluginError) as caught:
        trust.check(demand(), "x.y", one)
    found = re.search(r"trusted = \[\"(.*?)\"\]", str(caught.value.fix))
    assert found is not None
    assert trust.check(trusting(found[1]), "x.y", one) is None
    editable = Installed("prime-rewards", "0.1.0", tmp_path)
    with pytest.raises(PluginError, match=r'trusted = \["prime-rewards"\]'):
        trust.check(demand(), "reward.task", editable)


def test_no_digest_holds_files_that_are_edited_in_place(tmp_path):
    one = place(tmp_path, None)
    entry = f"{NAME}@{source_digest(one)}"
    note = '{"dir_info": {"editable": true}, "url": "file:///src"}'
    (one.dist_info / "direct_url.json").write_text(note)
    assert "pip install -e" in refused(one, trusting(entry))
    with pytest.raises(PluginError, match=rf'trusted = \["{NAME}"\]'):
        trust.check(demand(), "x.y", one)
    assert trust.check(trusting(NAME), "x.y", one) is None


def test_without_a_demand_anything_passes(tmp_path):
    nothing = trust.Demand.of(PluginsSection())
    assert trust.check(nothing, "x.y", place(tmp_path / "a", None)) is None
    assert trust.check(nothing, "x.y", Installed("editable", "1", tmp_path)) is None


def test_prime_cores_own_plugins_always_pass(tmp_path):
    own = Installed("prime-core", "0.1.0", tmp_path)
    assert trust.check(demand("gold"), "loss.grpo", own) is None


def hub_of(*plugins: tuple[str, str, Installed]) -> Hub:
    return Hub(
        [
            PluginRecord(kind, name, one.name.replace("-", "_"), one.name, one.version, "",
                         location=str(one.location))
            for kind, name, one in plugins
        ]
    )  # fmt: skip


def config(level: str, *, python: str | None = None) -> RunConfig:
    return RunConfig.model_validate(
        {
            "model": {"path": "m"},
            "environments": [{"use": "sums", **({"python": Path(python)} if python else {})}],
            "plugins": {"publishers": [ALICE.address], "min_level": level},
        }
    )


def test_a_run_config_names_each_choice_that_is_refused(tmp_path):
    one = place(tmp_path / "site")
    core = Installed("prime-core", "0.1.0", tmp_path)
    reward = Installed("prime-rewards", "0.1.0", tmp_path)
    hub = hub_of(("environment", "sums", one), ("loss", "grpo", core), ("reward", "task", reward))
    assert [where for where, _ in unpublished(hub, config("silver"))] == ["reward"]
    found = dict(unpublished(hub, config("gold")))
    assert set(found) == {"environments.0", "reward"}
    assert "min_level is gold" in found["environments.0"].what
    with pytest.raises(PluginError):
        locked(hub_of(("environment", "sums", one)), config("gold"), [])


def test_a_run_with_the_default_reward_can_be_held(tmp_path):
    hub = hub_of(("environment", "sums", place(tmp_path / "site")),
                 ("reward", "task", Installed("prime-rewards", "0.1.0", tmp_path)))  # fmt: skip
    wish = config("silver")
    trusting = wish.plugins.model_copy(update={"trusted": ["prime-rewards"]})
    assert unpublished(hub, wish.model_copy(update={"plugins": trusting})) == []


def test_the_config_check_reports_it_with_the_rest():
    reports = check_plugins(
        RunConfig.model_validate(
            {
                "model": {"path": "m"},
                "environments": [{"use": "arithmetic"}],
                "plugins": {"publishers": [ALICE.address]},
            }
        ),
        (),
    )
    faults = [(report.path, fault.what) for report in reports for fault in report.faults]
    assert any(path == ("environments", 0) and "nobody's word" in what for path, what in faults)
    assert not any("grpo" in what for _, what in faults)


def test_the_lock_says_what_was_signed(tmp_path, monkeypatch):
    one = place(tmp_path)
    monkeypatch.setattr(trust, "find", lambda hub, selection: one)
    (line,) = locked(Hub([]), config("silver"), [("verifier.x", one)])
    assert (line.distribution, line.version, line.level) == (NAME, "1.0", "silver")
    assert line.publisher == ALICE.address
    assert len(line.wheel) == len(line.record) == 64


@pytest.mark.integration
def test_another_interpreter_is_asked_for_its_own(tmp_path):
    venv.create(tmp_path / "other", with_pip=False, symlinks=True)
    site = next((tmp_path / "other/lib").glob("python*/site-packages"))
    place(site, MALLORY)
    python = str(tmp_path / "other/bin/python")
    choice = config("none", python=python)
    wanted = choice.model_copy(
        update={
            "environments": [choice.environments[0].model_copy(update={"use": "prime_env_sums"})]
        }
    )
    ((where, error), *_) = [
        each for each in unpublished(Hub([]), wanted) if each[0].startswith("environments")
    ]
    assert where == "environments.0"
    assert MALLORY.address in error.what
    assert NAME not in installed(Path(sys.executable))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('min_level = "silver"', "anybody's word without publishers"),
        ('publishers = ["alice"]', "is no address"),
        ('publishers = ["0x12"]', "is no address"),
        ('min_level = "platinum"', "min_level"),
        ('trusted = ["a b"]', "names no distribution"),
        ('trusted = ["prime-rewards@12"]', "names no distribution"),
        ('trusted = ["prime-rewards"]', "there are no publishers"),
    ],
)
def test_a_section_that_cannot_be_held_is_refused(tmp_path, lines, said):
    path = tmp_path / "run.toml"
    path.write_text(
        f'[model]\npath = "m"\n[[environments]]\nuse = "arithmetic"\n[plugins]\n{lines}\n'
    )
    with pytest.raises(ConfigError) as caught:
        load(path, check_files=False)
    assert said in str(caught.value)


def test_addresses_are_compared_in_small_letters():
    section = PluginsSection(publishers=[ALICE.address.upper().replace("0X", "0x")])
    assert section.publishers == [ALICE.address]

"""What the hub finds in metadata, and which plugin a name means, without importing anything."""

from __future__ import annotations

import sys

import pytest

import prime_core
from prime_core.api import PluginError
from prime_core.hub import Hub
from prime_core.hub.kinds import KINDS

pytestmark = pytest.mark.usefixtures("on_path")


def test_metadata_lists_a_plugin_without_importing_it(site):
    site.verifier("dist-one", "one", "mod_one")
    record = Hub.discover().find("verifier", "one")
    assert (record.distribution, record.version, record.module) == ("dist-one", "1.0", "mod_one")
    assert record.api_requirement == ">=0.1"
    assert record.summary == "made by a test"
    assert "mod_one" not in sys.modules


def test_built_ins_are_plugins_too():
    labels = {record.label for record in Hub.discover().records()}
    assert {"inference_engine.transformers", "loss.grpo", "advantage.group_norm"} <= labels


def test_only_the_selected_module_is_imported(site):
    site.verifier("dist-one", "one", "mod_one")
    site.verifier("dist-two", "two", "mod_two")
    assert Hub.discover().spec("verifier", "one").name == "one"
    assert "mod_one" in sys.modules
    assert "mod_two" not in sys.modules


def test_names_are_unique_per_kind(site):
    source = """
    @hookimpl
    def prime_verifiers():
        return [spec("twice")]
    @hookimpl
    def prime_rewards():
        return [RewardSpec(name="twice", factory=make, summary="s")]
    """
    names = {"verifier.twice": "mod_twice", "reward.twice": "mod_twice"}
    site.install("dist-twice", names, {"mod_twice": source})
    hub = Hub.discover()
    assert hub.spec("verifier", "twice").kind == "verifier"
    assert hub.spec("reward", "twice").kind == "reward"


def test_two_distributions_with_one_name_are_both_named(site):
    site.verifier("dist-one", "same", "mod_one")
    site.verifier("dist-two", "same", "mod_two", version="2.1")
    with pytest.raises(PluginError, match=r"dist-one 1\.0 and by dist-two 2\.1") as caught:
        Hub.discover().find("verifier", "same")
    assert '"verifier.same@dist-two"' in caught.value.fix
    assert caught.value.phase == "found"
    assert "mod_one" not in sys.modules


def test_a_block_decides_between_two(site):
    site.verifier("dist-one", "same", "mod_one")
    site.verifier("dist-two", "same", "mod_two")
    for block in ("verifier.same@dist-one", "dist-one", "Dist_One"):
        assert Hub.discover([block]).find("verifier", "same").distribution == "dist-two"


def test_a_built_in_can_be_replaced(site):
    source = """
    @hookimpl
    def prime_losses():
        return [LossSpec(name="grpo", factory=make, summary="s")]
    """
    site.install("dist-loss", {"loss.grpo": "mod_loss"}, {"mod_loss": source})
    with pytest.raises(PluginError, match=r"dist-loss 1\.0"):
        Hub.discover().find("loss", "grpo")
    hub = Hub.discover(["loss.grpo@prime-core"])
    assert hub.spec("loss", "grpo").summary == "s"
    assert hub.find("advantage", "group_norm").distribution == "prime-core"


def test_a_blocked_plugin_says_what_blocks_it(site):
    site.verifier("dist-one", "one", "mod_one")
    with pytest.raises(PluginError, match=r"blocked by 'verifier\.one'"):
        Hub.discover(["verifier.one"]).spec("verifier", "one")
    assert "mod_one" not in sys.modules


def test_a_block_that_matches_nothing_is_logged(caplog):
    hub = Hub.discover(["verifier.nothing"])
    assert hub.idle_blocks() == ["verifier.nothing"]
    assert "verifier.nothing" in caplog.text


@pytest.mark.parametrize("text", ["", "verfier.exact@dist", "@dist", "verifier.exact@"])
def test_a_block_that_cannot_mean_anything_is_refused(text):
    with pytest.raises(PluginError, match="names no plugin"):
        Hub.discover([text])


def test_an_unknown_name_names_the_nearest_and_how_to_install():
    with pytest.raises(PluginError) as caught:
        Hub.discover().find("reward", "task_minus_lenght")
    assert "use 'task_minus_length'" in caught.value.fix
    assert "pip install" in caught.value.fix
    assert "installed: task, task_minus_length" in caught.value.what


def test_a_kind_that_nobody_provides_is_said():
    with pytest.raises(PluginError, match="no observer is installed"):
        Hub([]).find("observer", "anything")


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        (["prime-core>=99"], "needs prime-core >=99"),
        (["prime-core<0.0.1"], "needs prime-core <0.0.1"),
        (["prime-core>=0.1", "Prime_Core>=99"], r">=99"),
        (["numpy"], "states no requirement on prime-core"),
        (["prime-core>=0.1; extra == 'x'"], "states no requirement on prime-core"),
    ],
)
def test_the_api_range_is_checked_before_import(site, requires, message):
    site.verifier("dist-one", "one", "mod_one", requires=requires)
    with pytest.raises(PluginError, match=message) as caught:
        Hub.discover().spec("verifier", "one")
    assert "dist-one" in str(caught.value)
    assert caught.value.phase == "found"
    assert "mod_one" not in sys.modules


@pytest.mark.parametrize(
    "requires",
    [
        [f"prime-core=={prime_core.__version__}"],
        ["prime-core"],
        ["prime-core>=99; python_version<'3'", "prime-core>=0.1"],
    ],
)
def test_an_api_range_that_holds_lets_the_plugin_in(site, requires):
    site.verifier("dist-one", "one", "mod_one", requires=requires)
    assert Hub.discover().spec("verifier", "one").name == "one"


@pytest.mark.parametrize(
    ("version", "message"), [(">=2", "installed is 1.0"), ("two", "is not a version specifier")]
)
def test_the_choice_s_version_is_checked_before_import(site, version, message):
    site.verifier("dist-one", "one", "mod_one")
    with pytest.raises(PluginError, match=message):
        Hub.discover().spec("verifier", "one", version)
    assert Hub.discover().find("verifier", "one", ">=1,<2").name == "one"
    assert "mod_one" not in sys.modules


@pytest.mark.parametrize("name", ["oracle.delphi", "nodot", "verifier."])
def test_odd_entry_points_do_no_harm(site, name):
    site.install("dist-odd", {name: "mod_odd"})
    site.verifier("dist-one", "one", "mod_one")
    hub = Hub.discover()
    assert hub.spec("verifier", "one").name == "one"
    assert any(record.distribution == "dist-odd" for record in hub.records())


def test_an_entry_point_names_a_module(site):
    site.install("dist-attr", {"verifier.one": "mod_attr:Thing"})
    with pytest.raises(PluginError, match="'mod_attr:Thing', which is not a module"):
        Hub.discover().find("verifier", "one")


def test_unreadable_metadata_does_no_harm(site):
    site.install("dist-bad", {"verifier.bad": "mod_bad"})
    (info,) = site.root.glob("dist_bad*.dist-info")
    (info / "entry_points.txt").write_text("[prime_core]\nthis line says nothing\n")
    site.install("dist-nameless", {"verifier.nameless": "mod_nameless"})
    (info,) = site.root.glob("dist_nameless*.dist-info")
    (info / "METADATA").unlink()
    site.verifier("dist-one", "one", "mod_one")
    hub = Hub.discover()
    assert hub.spec("verifier", "one").name == "one"
    with pytest.raises(PluginError, match="states no requirement on prime-core"):
        hub.find("verifier", "nameless")


def test_the_first_distribution_of_a_name_hides_the_second(site, tmp_path, monkeypatch):
    site.verifier("dist-one", "one", "mod_one", version="1.0")
    first = type(site)(tmp_path / "first")
    first.root.mkdir()
    first.verifier("dist-one", "one", "mod_one", version="3.0")
    monkeypatch.syspath_prepend(str(first.root))
    hub = Hub.discover()
    assert hub.find("verifier", "one").version == "3.0"
    assert [r.version for r in hub.records() if r.name == "one" and r.shadowed] == ["1.0"]


def test_every_kind_has_a_hook_but_the_observer():
    assert [kind.name for kind in KINDS.values() if not kind.hook] == ["observer"]

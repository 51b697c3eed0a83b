"""The fixtures `isolated_hub` and `make_plugin`."""

from __future__ import annotations

import sys

import pytest

from prime_core.api import LossSpec, PluginError, VerifierSpec
from prime_core.hub import Hub


def nothing(params, context):
    return None


def test_an_isolated_hub_is_empty_and_refuses_discovery(isolated_hub):
    assert isolated_hub.records() == []
    with pytest.raises(PluginError, match="looked for installed plugins") as caught:
        Hub.discover()
    assert "isolated_hub" in caught.value.fix


def test_discovery_works_again_after_the_test():
    assert Hub.discover().records()


def test_fake_plugins_go_the_whole_way(isolated_hub, make_plugin):
    spec = VerifierSpec("mine", nothing, "s")
    made = make_plugin(spec, LossSpec("mine", nothing, "s"), distribution="dist-mine", version="2")
    assert [record.label for record in made.records] == ["verifier.mine", "loss.mine"]
    assert isolated_hub.spec("verifier", "mine", ">=2") is spec
    assert isolated_hub.spec("loss", "mine").kind == "loss"
    assert isolated_hub.find("verifier", "mine").distribution == "dist-mine"


def test_fake_plugins_can_lie_about_what_they_declare(isolated_hub, make_plugin):
    make_plugin(VerifierSpec("mine", nothing, "s"), declares=["verifier.other"])
    with pytest.raises(PluginError, match=r"registers verifier\.mine"):
        isolated_hub.spec("verifier", "other")


@pytest.mark.parametrize("requires", [None, ">=99"])
def test_fake_plugins_can_have_a_wrong_api_range(isolated_hub, make_plugin, requires):
    make_plugin(VerifierSpec("mine", nothing, "s"), requires=requires)
    with pytest.raises(PluginError, match="prime-core"):
        isolated_hub.spec("verifier", "mine")


def test_fake_modules_leave_no_trace(isolated_hub):
    from prime_core.testing.isolation import PluginMaker

    with PluginMaker(isolated_hub) as make:
        name = make(VerifierSpec("mine", nothing, "s")).module.__name__
        assert name in sys.modules
    assert name not in sys.modules

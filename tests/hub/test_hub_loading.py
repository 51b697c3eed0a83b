"""Importing and registering one module: whatever it does becomes an error that names it."""

from __future__ import annotations

import sys

import pytest

from prime_core.api import NoParams, PluginError, Spec, VerifierSpec
from prime_core.hub import Hub
from prime_core.hub.kinds import KINDS

GOOD = """
@hookimpl
def prime_verifiers():
    return [spec("one")]
"""


def refused(site, source, entry_points=None, **more):
    """The error of verifier.one when `source` is its module, and the hub it came from."""
    site.install("dist-one", entry_points or {"verifier.one": "mod_one"}, {"mod_one": source})
    site.verifier("dist-two", "two", "mod_two")
    hub = Hub.discover()
    with pytest.raises(PluginError) as caught:
        hub.spec("verifier", "one", **more)
    assert hub.spec("verifier", "two").name == "two", "another plugin was hurt"
    error = caught.value
    assert "verifier.one" in str(error)
    assert "dist-one 1.0" in str(error)
    assert error.fix
    return error


pytestmark = pytest.mark.usefixtures("on_path")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("class Mine(BaseException): pass\nraise Mine('x')", "Mine: x"),
        ("def broken(:", "SyntaxError"),
        ("raise ValueError('a\\n' * 9000)", "ValueError: a a a"),
    ],
)
def test_what_an_import_raises_is_the_plugin_s_error(site, source, said):
    error = refused(site, source)
    assert error.phase == "imported"
    assert said in error.what
    assert len(error.what) < 2000
    assert error.__cause__ is not None


def test_the_place_in_the_plugin_is_named(site):
    error = refused(site, "def deep():\n    raise RuntimeError('x')\ndeep()")
    assert "mod_one.py:" in error.what


def test_a_module_that_is_gone_is_reinstalled(site):
    site.install("dist-one", {"verifier.one": "mod_that_is_gone"})
    with pytest.raises(PluginError, match="mod_that_is_gone") as caught:
        Hub.discover().spec("verifier", "one")
    assert "pip install --force-reinstall dist-one" in caught.value.fix


def test_a_missing_dependency_is_named(site):
    error = refused(site, "import a_package_nobody_has")
    assert "install what provides module a_package_nobody_has" in error.fix


def test_a_real_keyboard_interrupt_comes_through(site):
    site.install("dist-one", {"verifier.one": "mod_one"}, {"mod_one": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        Hub.discover().spec("verifier", "one")


@pytest.mark.parametrize(
    ("source", "said", "fix"),
    [
        (
            "@hookimpl\ndef prime_verifires():\n    return []",
            "implements prime_verifires, which is not a hook",
            "rename it to prime_verifiers",
        ),
        (
            "@hookimpl\ndef prime_step_finished(stepp):\n    pass",
            "stepp",
            "take arguments of prime_step_finished(step",
        ),
        (
            "@hookimpl\ndef prime_verifiers():\n    raise RuntimeError('boom')",
            "prime_verifiers raised RuntimeError: boom",
            "doctor",
        ),
        (
            "@hookimpl\ndef prime_verifiers():\n    raise SystemExit(1)",
            "prime_verifiers raised SystemExit",
            "doctor",
        ),
        (
            "@hookimpl\ndef prime_verifiers():\n    return spec('one')",
            "returned VerifierSpec, not a list",
            "return a list of VerifierSpec",
        ),
        ("@hookimpl\ndef prime_verifiers():\n    return [1]", "returned a int in its list", "list"),
        (
            "@hookimpl\ndef prime_verifiers():\n"
            "    return [RewardSpec(name='one', factory=make, summary='')]",
            "returned a RewardSpec",
            "VerifierSpec",
        ),
        (
            "@hookimpl\nasync def prime_verifiers():\n    return [spec('one')]",
            "prime_verifiers is async",
            "plain function",
        ),
        ("", "declares verifier.one, which it doesn't register", "reinstall"),
        (
            "@hookimpl\ndef prime_verifiers():\n    return [spec('one'), spec('more')]",
            "registers verifier.more, which its entry points don't declare",
            "agree",
        ),
        (
            GOOD + "@hookimpl\ndef prime_rewards():\n"
            "    return [RewardSpec(name='r', factory=make, summary='')]",
            "registers reward.r",
            "agree",
        ),
        (
            GOOD + "@hookimpl\ndef prime_step_finished(step):\n    pass",
            "no entry point declares observer.NAME",
            "agree",
        ),
        (
            "@hookimpl\ndef prime_verifiers():\n    return [spec('one'), spec('one')]",
            "returns 'one' twice",
            "doctor",
        ),
        (
            "@hookimpl\ndef prime_verifiers():\n    return [spec('one', api='99')]",
            "written for plugin API '99', this prime-core has '1'",
            "install a version of dist-one for API 1",
        ),
        (
            "@hookimpl\ndef prime_verifiers():\n    return [spec('one', params=dict)]",
            "not a pydantic model",
            "prime_core.api.Params",
        ),
        (
            "import pydantic\nclass Loose(pydantic.BaseModel):\n    x: int = 0\n"
            "@hookimpl\ndef prime_verifiers():\n    return [spec('one', params=Loose)]",
            "Loose of verifier.one lets unknown parameters pass",
            "prime_core.api.Params",
        ),
        (
            "@hookimpl\ndef prime_verifiers():\n"
            "    return [VerifierSpec(name='one', factory=3, summary='')]",
            "factory of verifier.one can't be called",
            "doctor",
        ),
    ],
)
def test_what_a_module_registers_wrongly_is_its_error(site, source, said, fix):
    error = refused(site, source)
    assert error.phase == "registered"
    assert said in error.what
    assert fix in error.fix


def test_a_failed_module_can_be_tried_again(site):
    refused(site, "raise RuntimeError('first')")
    (site.root / "mod_one.py").write_text(
        (site.root / "mod_two.py").read_text().replace("'two'", "'one'")
    )
    assert Hub.discover().spec("verifier", "one").name == "one"


def test_one_module_is_registered_once(site):
    source = """
    calls = []
    @hookimpl
    def prime_verifiers():
        calls.append(1)
        return [spec("one"), spec("other")]
    """
    names = {"verifier.one": "mod_one", "verifier.other": "mod_one"}
    site.install("dist-one", names, {"mod_one": source})
    hub = Hub.discover()
    assert [hub.spec("verifier", name).name for name in ("one", "other", "one")] == [
        "one",
        "other",
        "one",
    ]
    assert sys.modules["mod_one"].calls == [1]


def test_one_distribution_may_have_several_modules(site):
    sources = {f"mod_{name}": GOOD.replace('"one"', f'"{name}"') for name in ("one", "other")}
    names = {f"verifier.{name}": f"mod_{name}" for name in ("one", "other")}
    site.install("dist-one", names, sources)
    hub = Hub.discover()
    assert hub.load(hub.find("verifier", "one")).plugin_name == "dist-one:mod_one"
    assert hub.load(hub.find("verifier", "other")).plugin_name == "dist-one:mod_other"


def test_a_module_is_registered_under_its_distribution_s_name(site):
    site.verifier("dist-one", "one", "mod_one")
    hub = Hub.discover()
    assert hub.load(hub.find("verifier", "one")).plugin_name == "dist-one"


def test_one_module_has_one_distribution(site):
    site.install("dist-one", {"verifier.one": "mod_one"}, {"mod_one": GOOD})
    site.install("dist-copy", {"verifier.copy": "mod_one"})
    hub = Hub.discover()
    hub.spec("verifier", "one")
    with pytest.raises(PluginError, match="already registered by dist-one"):
        hub.spec("verifier", "copy")


def _spec(kind: str) -> Spec:
    return KINDS[kind].spec(name="x", factory=lambda params, context: None, summary="s")


@pytest.mark.parametrize(
    ("hook", "kind"),
    [
        ("prime_environments", "environment"),
        ("prime_verifiers", "verifier"),
        ("prime_rewards", "reward"),
        ("prime_length_budgets", "length_budget"),
        ("prime_data_filters", "data_filter"),
        ("prime_sanity_checks", "sanity_check"),
        ("prime_inference_engines", "inference_engine"),
        ("prime_sandboxes", "sandbox"),
        ("prime_trackers", "tracker"),
        ("prime_losses", "loss"),
        ("prime_advantages", "advantage"),
    ],
)
def test_every_registration_hook_registers_its_kind(isolated_hub, make_plugin, hook, kind):
    assert KINDS[kind].hook == hook
    spec = _spec(kind)
    make_plugin(hooks={hook: lambda: [spec]}, declares=[f"{kind}.x"])
    assert isolated_hub.spec(kind, "x") is spec


@pytest.mark.parametrize("wrong", [kind for kind in KINDS if KINDS[kind].hook])
def test_every_registration_hook_refuses_other_kinds(isolated_hub, make_plugin, wrong):
    other = "verifier" if wrong != "verifier" else "reward"
    make_plugin(hooks={KINDS[wrong].hook: lambda: [_spec(other)]}, declares=[f"{wrong}.x"])
    with pytest.raises(PluginError, match="in its list"):
        isolated_hub.spec(wrong, "x")


def test_a_hook_that_wraps_others_reaches_only_itself(isolated_hub, make_plugin):
    spec = VerifierSpec("fine", lambda params, context: None, "s", NoParams)
    make_plugin(spec)
    isolated_hub.spec("verifier", "fine")
    make_plugin(
        hooks={"prime_verifiers": lambda: [VerifierSpec("late", lambda p, c: None, "s")]},
        declares=["verifier.late"],
    )
    assert isolated_hub.spec("verifier", "late").name == "late"
    assert isolated_hub.spec("verifier", "fine") is spec

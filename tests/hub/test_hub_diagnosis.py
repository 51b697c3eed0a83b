"""The doctor: every plugin in a process of its own, whatever it does there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from prime_core.config.sections import PluginChoice
from prime_core.hub import Diagnosis, Hub, Selection

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("on_path")]


@pytest.fixture
def path_for_children(site, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(site.root))


def diagnosed(hub: Hub, selected=None, timeout_s: float = 60.0) -> dict[str, Diagnosis]:
    """The test's own plugins only: what is installed is tried elsewhere."""
    from prime_core.hub.diagnosis import diagnose

    mine = Hub([r for r in hub.records() if r.distribution.startswith("dist-")], hub.blocks)
    found = diagnose(mine, selected, timeout_s=timeout_s)
    return {f"{each.label}@{each.distribution}": each for each in found}


def test_every_way_to_fail_is_a_finding(site, path_for_children):
    site.verifier("dist-good", "good", "mod_good")
    broken = {
        "exit": "import os; os._exit(7)",
        "abort": "import os; os.abort()",
        "raise": "raise RuntimeError('no luck')",
        "noisy": "print('{\"answer\": 1}')\nimport sys\nsys.stdout.close()\nraise SystemExit(0)",
        "hook": "@hookimpl\ndef prime_verifires():\n    return []",
        "late": "import os\n@hookimpl\ndef prime_verifiers():\n    os._exit(0)",
    }
    for name, source in broken.items():
        module = f"mod_{name}"
        site.install(f"dist-{name}", {f"verifier.{name}": module}, {module: source})
    site.verifier("dist-old", "old", "mod_old", requires=["prime-core>=99"])
    site.install("dist-odd", {"oracle.delphi": "mod_odd"})
    site.verifier("dist-a", "same", "mod_a")
    site.verifier("dist-b", "same", "mod_b")
    found = diagnosed(Hub.discover())

    good = found.pop("verifier.good@dist-good")
    assert (good.status, good.phase, good.cause) == ("loaded", "registered", "")
    assert {each.status for each in found.values()} == {"failed"}
    assert all(each.command for each in found.values())
    wanted = {
        "verifier.exit@dist-exit": ("imported", "ended with code 7"),
        "verifier.abort@dist-abort": ("imported", "killed by signal 6"),
        "verifier.raise@dist-raise": ("imported", "RuntimeError: no luck"),
        "verifier.noisy@dist-noisy": ("imported", "SystemExit: 0"),
        "verifier.hook@dist-hook": ("registered", "prime_verifires, which is not a hook"),
        "verifier.late@dist-late": ("registered", "ended with code 0"),
        "verifier.old@dist-old": ("found", "needs prime-core >=99"),
        "oracle.delphi@dist-odd": ("found", "'oracle' is not a kind"),
        "verifier.same@dist-a": ("found", "dist-a 1.0 and by dist-b 1.0"),
        "verifier.same@dist-b": ("found", "dist-a 1.0 and by dist-b 1.0"),
    }
    assert set(found) == set(wanted)
    for name, (phase, cause) in wanted.items():
        assert found[name].phase == phase, found[name]
        assert cause in found[name].cause, found[name]
    assert found["verifier.exit@dist-exit"].command == "python -c 'import mod_exit'"
    assert found["verifier.same@dist-a"].command == "prime-core plugins list --kind verifier"
    assert found["verifier.old@dist-old"].command == "pip install --upgrade dist-old"


def test_a_plugin_that_hangs_is_killed(site, path_for_children):
    source = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    site.install("dist-slow", {"verifier.slow": "mod_slow"}, {"mod_slow": source})
    (slow,) = diagnosed(Hub.discover(), timeout_s=3.0).values()
    assert (slow.status, slow.phase) == ("failed", "imported")
    assert "didn't end within 3 s" in slow.cause


def selection(kind: str, use: str, python: Path | None = None, **values: object) -> Selection:
    choice = PluginChoice.model_validate({"use": use, "with": values})
    return Selection(kind, choice, where=f"{kind}s.0", python=python)


def test_with_a_config_only_what_it_selects_is_tried(site, path_for_children):
    source = """
    class Mine(Params):
        depth: int = 1
    @hookimpl
    def prime_verifiers():
        return [spec("one", params=Mine)]
    """
    site.install("dist-one", {"verifier.one": "mod_one"}, {"mod_one": source})
    site.install("dist-two", {"verifier.two": "mod_two"}, {"mod_two": "raise RuntimeError"})
    site.verifier("dist-out", "out", "mod_out")
    hub = Hub.discover(["dist-out"])
    found = diagnosed(hub, [selection("verifier", "one", depth=2)])
    one = found["verifier.one@dist-one"]
    assert (one.status, one.phase, one.where) == ("loaded", "configured", "verifiers.0")
    two = found["verifier.two@dist-two"]
    assert (two.status, two.cause) == ("not selected", "the run config doesn't name it")
    assert found["verifier.out@dist-out"].cause == "blocked by 'dist-out'"

    chosen = [selection("verifier", "one", dept=2), selection("verifier", "nil")]
    found = diagnosed(hub, [*chosen, selection("verifier", "out")])
    out = found["verifier.out@dist-out"]
    assert (out.version, out.where, out.status) == ("1.0", "verifiers.0", "failed")
    assert "blocked by 'dist-out'" in out.cause
    one = found["verifier.one@dist-one"]
    assert (one.status, one.phase) == ("failed", "configured")
    assert "with.dept" in one.cause
    assert one.command == "prime-core plugins show verifier.one"
    nil = found["verifier.nil@"]
    assert (nil.status, nil.phase) == ("failed", "found")
    assert "no verifier is called 'nil'" in nil.cause


def test_another_interpreter_finds_its_own_plugins(site, path_for_children, tmp_path):
    site.verifier("dist-one", "one", "mod_one")
    empty = Hub([])
    there = selection("verifier", "one", python=Path(sys.executable))
    (one,) = diagnosed(empty, [there]).values()
    assert (one.status, one.distribution, one.module) == ("loaded", "dist-one", "mod_one")
    (none,) = diagnosed(empty, [selection("verifier", "x", python=tmp_path / "none")]).values()
    assert (none.status, none.phase) == ("failed", "found")
    assert "can't be started" in none.cause
    assert none.command == "prime-core env create x"


def test_a_tracker_is_not_made(site, path_for_children):
    source = """
    def refuse(params, context):
        raise AssertionError("a tracker's factory opens a run on a server")
    @hookimpl
    def prime_trackers():
        return [TrackerSpec(name="one", factory=refuse, summary="s")]
    """
    site.install("dist-one", {"tracker.one": "mod_one"}, {"mod_one": source})
    (one,) = diagnosed(Hub.discover(), [selection("tracker", "one")]).values()
    assert (one.status, one.phase) == ("loaded", "configured")

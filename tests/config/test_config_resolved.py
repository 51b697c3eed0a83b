"""A resolved config loads to an equal config, and says of every value where it came from."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prime_core.api import ConfigError
from prime_core.config import toml_text
from prime_core.config.load import LoadedConfig, load
from prime_core.config.resolved import render_resolved, write_resolved
from prime_core.config.sections import RunConfig
from prime_core.config.walk import flatten

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(
    TEXT,
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.datetimes().map(lambda moment: moment.replace(fold=0)),
    st.dates(),
    st.times().map(lambda moment: moment.replace(fold=0)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
PARAMS = st.dictionaries(TEXT, VALUES, max_size=3)
CHOICES = st.fixed_dictionaries({"use": NAMES, "with": PARAMS})


@st.composite
def configs(draw: st.DrawFn) -> RunConfig:
    labels = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    return RunConfig.model_validate(
        {
            "run": {"dir": Path("runs") / draw(NAMES), "id": draw(st.none() | NAMES)},
            "model": {"path": draw(TEXT.filter(bool)), "chat_template": draw(st.none() | TEXT)},
            "engine": {
                "with": draw(PARAMS),
                "node_class": "a b.c",
                "classes": {"a b.c": {"max_tokens": 7}, draw(TEXT): {"max_tokens": 9}},
            },
            "trainer": {"lr": draw(st.floats(min_value=1e-300, max_value=1e300))},
            "async": {"level": 1, "max": draw(st.none() | st.integers(1, 5))},
            "environments": [
                {"use": name, "with": draw(PARAMS), "verifier": draw(st.none() | CHOICES)}
                for name in labels
            ],
            "length_budget": draw(st.none() | CHOICES),
            "filters": {"offline": draw(st.lists(CHOICES, max_size=2))},
            "trackers": draw(st.lists(CHOICES, max_size=2)),
            "plugins": {"block": draw(st.lists(TEXT, max_size=2))},
        }
    )


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(configs())
def test_a_resolved_config_loads_to_an_equal_one(
    tmp_path_factory: pytest.TempPathFactory, config: RunConfig
) -> None:
    path = tmp_path_factory.mktemp("resolved") / "run.toml"
    write_resolved(LoadedConfig(config, {}, Path("odd\nname.toml")), path)
    again = load(path, check_files=False)
    assert again.config == config
    assert [str(flatten(again.config)[key]) for key in flatten(config)] == [
        str(value) for value in flatten(config).values()
    ]


@settings(deadline=None)
@given(VALUES)
def test_toml_text_reads_back(value: object) -> None:
    assert tomllib.loads(f"x = {toml_text.value(value)}")["x"] == value


def test_every_value_has_its_origin_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        '[model]\npath = "m"\n[[environments]]\nuse = "a"\n[environments.with]\nn = [1, 2]\n'
    )
    overrides = ["trainer.lr=1e-5", "environments.0.with.n.1=3"]
    text = render_resolved(load(path, overrides, check_files=False))
    lines = text.splitlines()
    assert f'path = "m"  # {path}:2' in lines
    assert "lr = 1e-05  # --set" in lines
    assert "n = [1, 3]  # --set" in lines
    assert "steps = 100  # default" in lines
    assert "# id is unset  # default" in lines
    bare = [line for line in lines if "=" in line and "  # " not in line]
    assert bare == []


def test_what_toml_cant_hold_is_refused(tmp_path: Path) -> None:
    config = RunConfig.model_validate(
        {"model": {"path": "m"}, "environments": [{"use": "a", "with": {"x": None}}]}
    )
    with pytest.raises(ConfigError, match="NoneType"):
        write_resolved(LoadedConfig(config, {}, Path("x")), tmp_path / "run.toml")
    assert list(tmp_path.iterdir()) == []


def test_dates_stay_dates() -> None:
    day = datetime.date(2026, 1, 2)
    assert tomllib.loads(f"x = {toml_text.value([day])}") == {"x": [day]}

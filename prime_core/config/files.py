"""Files and directories that a run config names and that aren't there.

Called by `prime_core.config.load` unless told otherwise (a resumed run has the model inside its
directory). It opens config.json and nothing larger.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prime_core.config.clash import Clash
from prime_core.config.locate import KeyPath
from prime_core.config.sections import RunConfig

PACKAGE_PREFIX = "package:"
_PATH: KeyPath = ("model", "path")


def missing(config: RunConfig) -> list[Clash]:
    """Everything that the config names and that isn't there, or isn't what it should be."""
    return [*_model(config), *_run_dir(config), *_profiles(config), *_interpreters(config)]


def model_dir(config: RunConfig) -> Path | None:
    """The model's directory, or that of the package, which isn't imported; None: not there."""
    path = config.model.path
    if not path.startswith(PACKAGE_PREFIX):
        directory = Path(path).expanduser()
        return directory if directory.is_dir() else None
    try:
        spec = importlib.util.find_spec(_module(path))
    except (ImportError, ValueError):
        return None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None


def model_config(config: RunConfig) -> dict[str, Any] | None:
    """The model's config.json; None where there is none or it isn't a JSON object.

    Where the model isn't on this machine, what `[model.shape]` says of it.
    """
    directory = model_dir(config)
    if directory is None:
        return config.model.shape.model_dump() if config.model.shape is not None else None
    try:
        found = json.loads((directory / "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _module(path: str) -> str:
    return path.removeprefix(PACKAGE_PREFIX).replace("-", "_")


def _model(config: RunConfig) -> Iterator[Clash]:
    directory = model_dir(config)
    if directory is None:
        yield _no_model(config.model.path)
    elif config.model.gguf is not None:
        if not (directory / config.model.gguf).is_file():
            present = sorted(file.name for file in directory.glob("*.gguf"))
            near = difflib.get_close_matches(config.model.gguf, present, n=1) or present[:1]
            fix = f'set model.gguf = "{near[0]}"' if near else "it holds no .gguf file; remove it"
            yield Clash(
                (("model", "gguf"), _PATH), f"no file {config.model.gguf} in {directory}", fix
            )
    else:
        yield from _layout(config, directory)


def _no_model(path: str) -> Clash:
    if path.startswith(PACKAGE_PREFIX):
        name = _module(path)
        if "." in name or not name.isidentifier():
            return Clash(
                (_PATH,), f"{name} can't name a package", "write package:NAME, e.g. package:llm_x"
            )
        fix = f"pip install {name.replace('_', '-')} into this environment, or correct the name"
        return Clash((_PATH,), f"the package {name}, which holds the model, isn't installed", fix)
    parent = Path(path).expanduser().parent
    siblings = [entry.name for entry in parent.iterdir()] if _listable(parent) else []
    near = difflib.get_close_matches(Path(path).name, siblings, n=1)
    if near:
        fix = f'did you mean "{parent / near[0]}"?'
    elif path.count("/") == 1 and not path.startswith((".", "~", "/")):
        fix = (
            f"if this is a hub id, download it (hf download {path} --local-dir models/"
            f"{Path(path).name}) and name that directory; relative paths start at {Path.cwd()}"
        )
    else:
        fix = f"set model.path to a model's directory; relative paths start at {Path.cwd()}"
    return Clash((_PATH,), f"the model's directory {path} doesn't exist", fix)


def _listable(directory: Path) -> bool:
    return directory.is_dir() and os.access(directory, os.R_OK | os.X_OK)


def _layout(config: RunConfig, directory: Path) -> Iterator[Clash]:
    ggufs = sorted(file.name for file in directory.glob("*.gguf"))
    if not (directory / "config.json").is_file():
        fix = f'set model.gguf = "{ggufs[0]}"' if ggufs else "name a directory that has one"
        yield Clash((_PATH,), f"no config.json in the model's directory {directory}", fix)
        return
    shape = model_config(config)
    if shape is None:
        yield Clash(
            (_PATH,), f"{directory / 'config.json'} isn't a JSON object", "save the model again"
        )
        return
    if next(directory.glob("*.safetensors"), None) is None:
        yield Clash(
            (_PATH,),
            f"no *.safetensors file in the model's directory {directory}",
            "save the model there with save_pretrained",
        )
    if not any(entry.name.startswith(("tokenizer", "vocab")) for entry in directory.iterdir()):
        yield Clash(
            (_PATH,),
            f"no tokenizer in the model's directory {directory}",
            "save it there with tokenizer.save_pretrained",
        )
    yield from _stated_shape(config, shape)
    positions = shape.get("max_position_embeddings")
    engine = config.engine
    longest = engine.max_prompt_tokens + engine.token_limit(engine.node_class)
    if isinstance(positions, int) and longest > positions:
        yield Clash(
            (("engine", "max_tokens"), ("engine", "max_prompt_tokens"), _PATH),
            f"a rollout may have {longest} tokens, but the model has {positions} positions",
            f"lower engine.max_prompt_tokens plus engine.max_tokens to {positions}",
        )


def _stated_shape(config: RunConfig, shape: dict[str, Any]) -> Iterator[Clash]:
    stated = config.model.shape.model_dump() if config.model.shape is not None else {}
    for name, value in stated.items():
        if name in shape and shape[name] != value:
            yield Clash(
                (("model", "shape", name), ("model", "shape"), _PATH),
                f"model.shape says {name} = {value}, the model's config.json {shape[name]}",
                "name the model that the config is for, or correct the shape",
            )


def _run_dir(config: RunConfig) -> Iterator[Clash]:
    place = config.run.dir.expanduser()
    for part in (place, *place.parents):
        if part.exists():
            if not part.is_dir():
                yield Clash(
                    (("run", "dir"),),
                    f"the run can't lie in {place}: {part} is a file",
                    "set run.dir to a directory that doesn't exist yet",
                )
            return


def _profiles(config: RunConfig) -> Iterator[Clash]:
    profiles = config.filters.profiles
    if profiles is not None and not profiles.expanduser().is_dir():
        yield Clash(
            (("filters", "profiles"),),
            f"the directory of profiles {profiles} doesn't exist",
            f"write it with `prime-core profile ENV --out {profiles}`, or remove filters.profiles",
        )


def _interpreters(config: RunConfig) -> Iterator[Clash]:
    for path, environments in (
        (("environments",), config.environments),
        (("eval", "environments"), config.eval.environments),
    ):
        for index, choice in enumerate(environments):
            python = choice.python.expanduser() if choice.python else None
            if python is None or (python.is_file() and os.access(python, os.X_OK)):
                continue
            state = "isn't an executable file" if python.exists() else "doesn't exist"
            yield Clash(
                ((*path, index, "python"),),
                f"the interpreter {python} of environment {choice.label} {state}",
                f"make it with `prime-core env create {choice.use}`, or remove python to use "
                "this one",
            )

"""environment.yml and constraints.txt say the same as pyproject.toml."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TESTED = [*PROJECT["dependencies"], *EXTRAS["course"], *EXTRAS["test"]]
PINS = {
    canonicalize_name(requirement.name): requirement
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
    for requirement in [Requirement(line)]
}
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())


def pinned_version(requirement: Requirement) -> str:
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    return specifier.version


@pytest.mark.parametrize("line", TESTED)
def test_the_pin_lies_in_the_range(line):
    wanted = Requirement(line)
    pin = PINS[canonicalize_name(wanted.name)]
    assert wanted.specifier.contains(pinned_version(pin))


def test_every_line_is_a_bare_public_version():
    for pin in PINS.values():
        version = Version(pinned_version(pin))
        assert version.local is None
        assert pin.marker is None
        assert pin.url is None


def test_pins_are_sorted_and_unique():
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines == sorted(lines, key=lambda line: line.split("==")[0])
    assert len(lines) == len(PINS)


def needed_here() -> dict[str, set[str]]:
    """All that the tested requirements bring on this platform: name -> who asks for it."""
    waiting = [(Requirement(line), "pyproject.toml") for line in TESTED]
    needed: dict[str, set[str]] = {}
    seen = set()
    while waiting:
        wanted, asker = waiting.pop()
        name = canonicalize_name(wanted.name)
        needed.setdefault(name, set()).add(asker)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        try:
            lines = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        waiting += [
            (item, name) for item in map(Requirement, lines) if applies(item, wanted.extras)
        ]
    return needed


def applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""})


def test_what_comes_along_is_pinned_too():
    # The CUDA build of torch pins its own libraries exactly.
    pinned_by_torch = re.compile(r"nvidia-|triton|cuda-")
    missing = {
        name: askers
        for name, askers in needed_here().items()
        if name not in PINS and not pinned_by_torch.match(name)
    }
    assert not missing


def test_conda_makes_python_and_torch_and_leaves_the_rest_to_pip():
    names = [re.split(r"[=<>]", item)[0] for item in CONDA["dependencies"] if isinstance(item, str)]
    assert names == ["python", "pip", "pytorch"]
    assert CONDA["channels"] == ["conda-forge", "nodefaults"]


def test_condas_python_is_supported():
    (python,) = [item for item in CONDA["dependencies"] if str(item).startswith("python=")]
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.partition("=")[2])


def test_condas_pip_lines_name_existing_extras():
    (pip,) = [item["pip"] for item in CONDA["dependencies"] if isinstance(item, dict)]
    assert pip == ["-e .[course,test]"]
    assert {"course", "test"} <= set(EXTRAS)


def test_conda_says_that_it_was_not_tried():
    assert "has not been tried" in (ROOT / "environment.yml").read_text()

"""How is a reference stored, and is it still what was baked?"""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ppo_lessons.grading.types import CheckCell, Manifest, Question

COMMON = "common"
MANIFEST, CLASS = "manifest.json", "class.json"
LIBRARIES = ("torch", "numpy", "ipykernel", "nbval", "pytest")


@dataclass(frozen=True, kw_only=True)
class ClassReference:
    """What `class.json` says.

    Args:
        assignment: stem of the exercise.
        personal: whether each student has a reference of their own.
        students: folder below the reference by student's id; empty if it is not personal.
    """

    assignment: str
    personal: bool
    students: Mapping[str, str]


# --- reading -------------------------------------------------------------------------------


def read_class(reference_dir: Path) -> ClassReference:
    """Read what a reference is for.

    Raises:
        ValueError: if there is none, or it cannot be read.
    """
    plain = _read_json(Path(reference_dir) / CLASS)
    try:
        about = ClassReference(
            assignment=plain["assignment"],
            personal=plain["personal"],
            students={**plain["students"]},
        )
    except (KeyError, TypeError) as error:
        raise _not_readable(Path(reference_dir) / CLASS, error) from None
    return about


def read_reference(
    reference_dir: Path, student: str = ""
) -> tuple[Manifest, dict[str, dict[str, Any]]]:
    """Read the reference that a student is graded by, and make sure that nobody changed it.

    Args:
        reference_dir: the folder that `bake` wrote.
        student: id; matters only if the reference is personal.

    Returns:
        The manifest, and its notebooks as dictionaries by part.

    Raises:
        ValueError: if a file is missing or differs from what was baked, or the student is unknown
            to a personal reference.
    """
    about = read_class(reference_dir)
    folder = COMMON
    if about.personal:
        if student not in about.students:
            raise ValueError(
                f"the reference in {reference_dir} knows no student {student!r}; expected one of "
                f"its {len(about.students)}. Bake it again with the whole roster."
            )
        folder = about.students[student]
    place = Path(reference_dir) / folder
    manifest = manifest_from_json(_read_json(place / MANIFEST))
    if manifest.assignment != about.assignment or manifest.student != (
        student if about.personal else ""
    ):
        raise ValueError(f"{place / MANIFEST} is another reference's; bake it again")
    return manifest, {
        part: _read_part(place / f"{part}.ipynb", sha256) for part, sha256 in manifest.parts.items()
    }


def _read_part(path: Path, sha256: str) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _not_readable(path, error) from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path} is not what was baked: its SHA-256 differs. Bake it again.")
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", ()):
            output["text"] = "".join(output["text"])
    return notebook


def _read_json(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _not_readable(path, error) from None
    if not isinstance(plain, dict):
        raise _not_readable(path, "it holds no object")
    return plain


def _not_readable(path: Path, why: object) -> ValueError:
    return ValueError(f"{path} cannot be read ({why}); expected a file that `grade bake` wrote.")


# --- writing -------------------------------------------------------------------------------


def write_reference(folder: Path, manifest: Manifest, parts: Mapping[str, str]) -> None:
    """Write a manifest and its notebooks, readable by the owner only.

    Args:
        folder: where they go; made if it or the one above is missing.
        manifest: its `parts` hold the hashes of the notebooks.
        parts: text of the notebooks, by part.
    """
    for place in (folder.parent, folder):  # a mode is given to the last folder only
        place.mkdir(exist_ok=True, mode=0o700)
    for part, text in parts.items():
        write_private(folder / f"{part}.ipynb", text)
    write_private(folder / MANIFEST, to_text(manifest_to_json(manifest)))


def write_class(folder: Path, about: ClassReference) -> None:
    """Write `class.json`."""
    write_private(folder / CLASS, to_text(asdict(about)))


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone may read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(text.encode("utf-8"))


def to_text(plain: Any) -> str:
    """Write plain data as JSON, the same bytes each time."""
    return json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


# --- manifests as plain data ---------------------------------------------------------------


def reference_sha256(manifest: Manifest) -> str:
    """Hash a manifest, and with it all that it stands for: its notebooks' hashes are in it."""
    return hashlib.sha256(to_text(manifest_to_json(manifest)).encode("utf-8")).hexdigest()


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """Turn a manifest into plain data."""
    return asdict(manifest)


def manifest_from_json(plain: Mapping[str, Any]) -> Manifest:
    """Turn plain data into a manifest.

    Raises:
        ValueError: if it is none.
    """
    try:
        questions = tuple(
            Question(
                **{
                    **question,
                    "builds_on": tuple(question["builds_on"]),
                    "checks": tuple(CheckCell(**check) for check in question["checks"]),
                }
            )
            for question in plain["questions"]
        )
        return Manifest(**{**plain, "forbid": tuple(plain["forbid"]), "questions": questions})
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no manifest ({error}); bake the reference again") from None


def environment_now() -> dict[str, str]:
    """Versions of what the printed values depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for library in (*LIBRARIES, "ppo-lessons"):
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            found[library] = "missing"
    return found

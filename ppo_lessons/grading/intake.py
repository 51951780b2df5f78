"""What was handed in, and by whom? Files are parsed here; nothing of them is ever executed.

`uploads` walks through folders and zip files, `parse` reads a notebook, `people` says whose it
is. Here each student gets one row: the notebook that counts, or the reason why there is none.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ppo_lessons.grading.parse import Parsed, UnreadableError, marked, parse_notebook
from ppo_lessons.grading.people import (
    CLAIMED,
    Claim,
    attribute,
    copy_number,
    name_owners,
    safe,
    unique,
)
from ppo_lessons.grading.roster import check_ids, folded, read_roster
from ppo_lessons.grading.types import Rejected, Submission
from ppo_lessons.grading.uploads import Upload, find_uploads, problem_of

__all__ = ["read_roster", "read_submissions"]

NOBODY = Claim()
SAME_TIME = 60.0  # seconds; zip files and copying blur times


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file that was handed in, read.

    Args:
        upload: where it was; without its bytes.
        sha256: of the bytes.
        parsed: what stands in it; None if it could not be read.
        problem: why it could not be read.
        other: which assignment it is for, if not for this one.
        claim: whose it is.
    """

    upload: Upload
    sha256: str = ""
    parsed: Parsed | None = None
    problem: str = ""
    other: str = ""
    claim: Claim = NOBODY

    @property
    def counts(self) -> bool:
        """Whether it can be graded."""
        return self.parsed is not None and not self.other


def read_submissions(
    paths: Sequence[Path],
    *,
    assignment: str,
    question_ids: Collection[str],
    roster: Mapping[str, str] | None = None,
) -> list[Submission | Rejected]:
    """Read everything that was handed in; one row per student, whatever the files hold.

    Args:
        paths: notebooks, folders, and zip files as learning platforms make them.
        assignment: stem of the exercise, as `04_clip`.
        question_ids: of its questions, `lesson.exercise`.
        roster: name by id, from `read_roster`.

    Returns:
        With a roster: its students in its order (`missing` if nothing came), then files that
        belong to nobody or to more than one. Without: by id. Each id is unique and can stand in
        a file's name.

    Raises:
        FileNotFoundError: if one of `paths` does not exist.
        RosterError: if ids of the roster cannot name files.
    """
    check_ids(roster or {})
    files = [
        examine(upload, assignment=assignment, question_ids=question_ids)
        for upload in find_uploads(paths)
    ]
    if roster is None:
        return rows_without_roster(files, assignment)
    return rows_of_roster(files, assignment, roster)


# --- one file ------------------------------------------------------------------------------


def examine(upload: Upload, *, assignment: str, question_ids: Collection[str]) -> Found:
    """Read a file; whatever it holds, it becomes a `Found`.

    Args:
        upload: the file.
        assignment: that is graded.
        question_ids: of its questions.

    Returns:
        What was found in it.
    """
    place = replace(upload, data=b"")
    if upload.problem:
        return Found(upload=place, problem=upload.problem)
    sha256 = hashlib.sha256(upload.data).hexdigest()
    try:
        parsed = parse_notebook(upload.data)
        other = other_assignment(parsed, upload.place, assignment, question_ids)
    except UnreadableError as error:
        return Found(upload=place, sha256=sha256, problem=str(error))
    except Exception as error:  # the bytes are hostile: whatever they raise is a reason
        return Found(upload=place, sha256=sha256, problem=f"cannot be read ({problem_of(error)})")
    return Found(upload=place, sha256=sha256, parsed=parsed, other=other)


def other_assignment(
    parsed: Parsed, place: Sequence[str], assignment: str, question_ids: Collection[str]
) -> str:
    """Say for which other assignment a notebook was made.

    Args:
        parsed: what stands in it.
        place: names on the way to it.
        assignment: that is graded.
        question_ids: of its questions.

    Returns:
        Its stem or a description; empty if the notebook is for this one.
    """
    wanted = {folded(id) for id in question_ids}
    named = {id for cell in parsed.cells for id in (*marked(cell.source), folded(cell.marker))}
    if wanted & named:
        return ""
    origin = re.fullmatch(r"(?:exercises|solutions|notebooks)/source/(\w+)\.py", parsed.built_from)
    built_for = parsed.assignment or (origin[1] if origin else "")
    exercise = not parsed.built_from.startswith("notebooks/")
    if built_for == assignment and exercise:
        return ""
    lessons = {id.partition(".")[0] for id in named if "." in id}
    if built_for or lessons:
        return built_for if exercise and built_for else "/".join(sorted(lessons)) or "a lesson"
    if defines_any(parsed, {id.rpartition(".")[2] for id in wanted}):
        return ""
    stems = [re.sub(r"[\W_]+", "_", folded(name)) for name in place[-1:]]
    return "" if any(folded(assignment) in stem for stem in stems) else "something else"


def defines_any(parsed: Parsed, names: Collection[str]) -> bool:
    """Whether a code cell defines one of some names at the left margin."""
    pattern = re.compile(r"^(?:(?:async )?def (\w+)|(\w+) *[:=])", re.MULTILINE)
    found = (
        folded(match[1] or match[2])
        for cell in parsed.cells
        if cell.kind == "code"
        for match in pattern.finditer(cell.source)
    )
    return not set(names).isdisjoint(found)


# --- whose files ---------------------------------------------------------------------------


def rows_without_roster(files: Sequence[Found], assignment: str) -> list[Submission | Rejected]:
    """Make a row for each owner that names suggest.

    Args:
        files: everything that was handed in.
        assignment: that is graded.

    Returns:
        Rows by id.
    """
    notebooks = [file for file in files if file.upload.readable]
    claims = name_owners([file.upload.place for file in notebooks], assignment=assignment)
    owned: dict[str, list[Found]] = defaultdict(list)
    for file, claim in zip(notebooks, claims, strict=True):
        own = safe(file.parsed.student) if file.parsed else ""
        last = safe(file.upload.place[-1].rpartition(".")[0] if file.upload.place else "")
        student = next(filter(None, (*claim.students, own, last, "unknown")))
        owned[folded(student)].append(replace(file, claim=replace(claim, students=(student,))))
    # Who sent no notebook at all is still seen if a platform names them.
    left = [file for file in files if not file.upload.readable]
    for file, claim in zip(
        left, name_owners([file.upload.place for file in left], assignment=assignment), strict=True
    ):
        if claim.label and claim.students:
            owned[folded(claim.students[0])].append(replace(file, claim=claim))
    taken: set[str] = set()
    rows = []
    for key in sorted(owned):
        claim = owned[key][0].claim
        student = unique(claim.students[0], taken)
        rows.append(
            row_of(student, claim.label.name if claim.label else "", owned[key], assignment)
        )
    return rows


def rows_of_roster(
    files: Sequence[Found], assignment: str, roster: Mapping[str, str]
) -> list[Submission | Rejected]:
    """Make a row for each student of the roster, and for each file that is nobody's.

    Args:
        files: everything that was handed in.
        assignment: that is graded.
        roster: name by id.

    Returns:
        Rows in the order of the roster, then the others.
    """
    claims = attribute(
        [file.upload.place for file in files],
        [file.upload.around for file in files],
        assignment=assignment,
        roster=roster,
    )
    files = [replace(file, claim=claim) for file, claim in zip(files, claims, strict=True)]
    files = list(with_own_claims(files, roster))
    owned: dict[str, list[Found]] = defaultdict(list)
    unclear: dict[str, list[str]] = defaultdict(list)
    loose: list[Found] = []
    for file in files:
        students = file.claim.students
        if len(students) == 1:
            owned[students[0]].append(file)
        elif file.upload.readable and not file.other:
            loose.append(file)
            for student in students:
                unclear[student].append(file.upload.shown)
    rows = [row_of(id, name, owned[id], assignment, unclear[id]) for id, name in roster.items()]
    taken = {folded(id) for id in roster}
    return [*rows, *(loose_row(file, taken) for file in loose)]


def with_own_claims(files: Sequence[Found], roster: Mapping[str, str]) -> Iterator[Found]:
    """Let a file that nobody else names say itself whose copy it is, if only one says so."""
    ids = {folded(id): id for id in roster}
    claims = [
        ids.get(folded(file.parsed.student))
        if file.parsed and file.counts and len(file.claim.students) != 1
        else None
        for file in files
    ]
    sure = {file.claim.students[0] for file in files if len(file.claim.students) == 1}
    for file, student in zip(files, claims, strict=True):
        possible = file.claim.students or (student,)
        if student is None or student in sure or student not in possible:
            yield file
        elif claims.count(student) == 1:
            yield replace(file, claim=replace(file.claim, students=(student,), strength=CLAIMED))
        else:
            yield file


def loose_row(file: Found, taken: set[str]) -> Rejected:
    """Say what to do about a file that cannot be given to one student."""
    claim = file.claim
    called = claim.called or (file.upload.place[-1] if file.upload.place else "")
    if claim.students:
        some = " and ".join(claim.students[:5])
        reason = f"it may be of {some}: rename it so that one id stands in its name"
    elif claim.label:
        who = f"{claim.called or claim.label.id} ({claim.label.platform})"
        reason = f"{who} is not in the roster: add the id, or the name as it is spelled there"
    else:
        reason = "no id and no name of the roster stands in its name or in those of its folders"
    if file.problem:
        reason += f"; it {file.problem}"
    return Rejected(
        student=unique(f"unknown-{safe(called) or 'file'}"[:70], taken),
        name=claim.called,
        source=file.upload.shown,
        sha256=file.sha256,
        reason=reason,
    )


# --- one student ---------------------------------------------------------------------------


def row_of(
    student: str,
    name: str,
    files: Sequence[Found],
    assignment: str,
    unclear: Sequence[str] = (),
) -> Submission | Rejected:
    """Choose the file that counts.

    Args:
        student: id.
        name: as the roster has it, or the platform.
        files: all that are this student's.
        assignment: that is graded.
        unclear: files that may be this student's.

    Returns:
        The submission, or why there is none.
    """
    good = [file for file in files if file.counts]
    if not good:
        return nothing_from(student, name, files, assignment, unclear)
    notes: list[str] = []
    good = without_weaker(good, notes)
    good = without_copies(good, notes)
    last = latest(good)
    if last is None:
        shown = ", ".join(file.upload.shown for file in good[:5])
        return Rejected(
            student=student,
            name=name,
            source=good[0].upload.shown,
            reason=f"{len(good)} different notebooks, and nothing says which is the last: {shown}",
        )
    assert last.parsed is not None
    others = [file.upload.shown for file in good if file is not last]
    if others:
        notes.append(f"{len(good)} attempts; the last one counts, not {', '.join(others[:5])}")
    notes += [
        f"{file.upload.shown} {file.problem}; it is left out"
        for file in files
        if file.problem and file.upload.readable
    ][:5]
    label = last.claim.label
    if label and label.late:
        notes.append(f"{label.platform} says that it was handed in late")
    if last.claim.strength == CLAIMED:
        notes.append("whose it is stands only inside the notebook, which its owner can edit")
    return Submission(
        student=student,
        name=name,
        source=last.upload.shown,
        sha256=last.sha256,
        cells=last.parsed.cells,
        built_for=last.parsed.student,
        notes=(*notes, *last.parsed.notes),
    )


def nothing_from(
    student: str,
    name: str,
    files: Sequence[Found],
    assignment: str,
    unclear: Sequence[str],
) -> Rejected:
    """Say why a student has no notebook that counts."""
    broken = [file for file in files if file.problem and file.upload.readable]
    unread = [file for file in files if not file.upload.readable]
    others = [file for file in files if file.other]
    made = re.compile(r"\.ipynb$|\.zip$", re.IGNORECASE)
    broken.sort(key=lambda file: made.search(file.upload.shown) is not None)
    if broken:
        worst = broken[-1]
        return Rejected(
            student=student,
            name=name,
            source=worst.upload.shown,
            sha256=worst.sha256,
            reason=f"the file {worst.problem}",
        )
    reason, missing = "nothing was handed in", True
    if others:
        file = others[0]
        reason = f"{file.upload.shown} is for {file.other}; there is nothing for {assignment}"
        # A notebook of no known assignment may be meant for this one: somebody should look.
        missing = file.other != "something else"
        if not missing:
            reason = f"{file.upload.shown} answers no question of {assignment}: no `# answer:` line"
    elif unread:
        reason, missing = f"the file {unread[0].problem}; expected a notebook (.ipynb)", False
    elif unclear:
        reason = f"nothing that is surely of {student}; perhaps {', '.join(unclear[:5])}"
    source = (others or unread)[0].upload.shown if others or unread else ""
    return Rejected(student=student, name=name, source=source, reason=reason, missing=missing)


def without_weaker(files: list[Found], notes: list[str]) -> list[Found]:
    """Keep the files that are most surely this student's, and of a course's copy the work."""
    best = max(file.claim.strength for file in files)
    kept = [file for file in files if file.claim.strength == best]
    for folder, stays in (("my_work", True), ("solutions", False)):
        inside = [file for file in kept if (folder in file.upload.place) == stays]
        kept = inside or kept
    if dropped := [file.upload.shown for file in files if file not in kept]:
        notes.append(f"not counted: {', '.join(dropped[:5])}")
    return kept


def without_copies(files: Sequence[Found], notes: list[str]) -> list[Found]:
    """Keep one of files with the same bytes: the latest."""
    by_bytes: dict[str, list[Found]] = defaultdict(list)
    for file in files:
        by_bytes[file.sha256].append(file)
    if any(len(same) > 1 for same in by_bytes.values()):
        notes.append("the same file was handed in more than once")
    return [latest(same) or same[-1] for same in by_bytes.values()]


def latest(files: Sequence[Found]) -> Found | None:
    """Give the file that came after all others; None if that cannot be told."""
    for file in files:
        if all(file is other or came_after(file, other) for other in files):
            return file
    return None


def came_after(file: Found, other: Found) -> bool:
    """Whether one file surely came after another: by platform, by time, by copy number."""
    orders = [each.claim.label.order if each.claim.label else "" for each in (file, other)]
    if all(orders) and orders[0] != orders[1]:
        return orders[0] > orders[1]
    times = (file.upload.modified, other.upload.modified)
    if times[0] is not None and times[1] is not None and abs(times[0] - times[1]) > SAME_TIME:
        return times[0] > times[1]
    return copy_number(file.upload.place) > copy_number(other.upload.place)

"""Whose file is it? By what a learning platform wrote into its name, by a folder, by an id.

Names on the way to a file are read from the outside in: the outermost ones are the platform's or
the teacher's, the innermost ones the student's own. A student who writes somebody else's id into
a file's name therefore gains nothing.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ppo_lessons.grading.roster import folded, is_safe

SURE, LIKELY, CLAIMED = 3, 2, 1  # by the platform or a whole name; within a name; by the file
SHORTEST_ID = 3  # shorter ones count only as a whole name: "04_clip_7" is not the student 7
# Names of folders and words in names of files that say nothing about who.
GENERIC = {
    word
    for line in (
        "abgabe abgaben assignment assignments attempt checkpoint copia copy exercise",
        "exercises final handin homework hw ipynb kopie late me my_work my new notebook",
        "notebooks of old ppo ppo-lessons resubmission solution solutions source submission",
        "submissions submit submitted the updated upload uploads version work",
    )
    for word in line.split()
}
WORD_BREAK = re.compile(r"[\s_\-.,()\[\]+#&]+")
ENDING = re.compile(r"(?:\.ipynb|\.zip|\.txt|\.json)+$", re.IGNORECASE)
COUNTER = re.compile(r"(?:[-_ ]v?|\()(\d{1,2})\)?$", re.IGNORECASE)
MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<id>[0-9]+)_assignsubmission_[a-z]+(?:_(?P<rest>.*))?", re.DOTALL
)
CANVAS = re.compile(
    r"(?P<name>[^_\d\W]+)_(?P<late>LATE_)?(?P<id>[0-9]{2,}|(?<=anonymous_)\w{5})"
    r"_(?P<number>[0-9]{3,})_(?P<rest>.+)",
    re.DOTALL,
)
BLACKBOARD = re.compile(
    r".+?_(?P<id>[^_]+)_attempt_(?P<stamp>[0-9]{4}(?:-[0-9][0-9]){5})(?:_(?P<rest>.*)|\.txt)?",
    re.DOTALL,
)
BRIGHTSPACE = re.compile(
    r"(?P<id>[0-9]+)-(?P<number>[0-9]+) - (?P<name>.+?) - "
    r"(?P<date>[A-Z][a-z]+ [0-9]{1,2}, [0-9]{4} [0-9]{3,4} [AP]M)",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a learning platform wrote into a name.

    Args:
        platform: which one.
        id: its number or login of the student.
        name: of the student.
        order: grows with each attempt; empty if the platform does not say.
        late: whether it says that the file came late.
    """

    platform: str
    id: str
    name: str = ""
    order: str = ""
    late: bool = False


@dataclass(frozen=True, kw_only=True)
class Claim:
    """To whom a file belongs.

    Args:
        students: ids of those it may belong to: nobody, one, or several when it is unclear.
        strength: how sure that is.
        called: what the names around it call its owner.
        label: what a learning platform wrote.
    """

    students: tuple[str, ...] = ()
    strength: int = 0
    called: str = ""
    label: Label | None = None


def read_label(name: str) -> Label | None:
    """Find what a learning platform wrote into the name of a file or folder.

    Args:
        name: one part of a path.

    Returns:
        What it says; None if it is an ordinary name.
    """
    if found := MOODLE.fullmatch(name):
        return Label(platform="Moodle", id=found["id"], name=found["name"])
    if found := BLACKBOARD.fullmatch(name):
        return Label(platform="Blackboard", id=found["id"], order=found["stamp"])
    if found := BRIGHTSPACE.fullmatch(name):
        return Label(
            platform="Brightspace", id=found["id"], name=found["name"], order=stamp(found["date"])
        )
    found = CANVAS.fullmatch(name)
    if found and not (is_year(found["id"]) and is_year(found["number"])):
        return Label(
            platform="Canvas",
            id=found["id"],
            name=found["name"],
            order=found["number"].zfill(20),
            late=found["late"] is not None,
        )
    return None


def is_year(digits: str) -> bool:
    """Whether a number is more likely a year than an id."""
    return len(digits) == 4 and digits[:2] in ("19", "20")


def stamp(date: str) -> str:
    """Write a date so that later ones come later in the alphabet; nothing if it is none."""
    day, _, clock = date.rpartition(", ")
    year, hours, half = clock.split(" ")
    for month in ("%b", "%B"):
        try:
            form = f"{month} %d, %Y %I%M %p"
            return datetime.strptime(f"{day}, {year} {hours.zfill(4)} {half}", form).isoformat()
        except ValueError:
            continue
    return ""


def attribute(
    places: Sequence[tuple[str, ...]],
    around: Sequence[tuple[str, ...]],
    *,
    assignment: str,
    roster: Mapping[str, str],
) -> list[Claim]:
    """Say to which students of a roster files belong.

    Args:
        places: of each file, the names on the way to it, from the outside in.
        around: of each file, the names above all files.
        assignment: stem of the exercise; where it stands in a name, it tells nothing.
        roster: name by id.

    Returns:
        One claim for each file.
    """
    people = People(roster, assignment)
    labels = [label for place in places for part in place if (label := read_label(part))]
    canvas = any(people.labelled(label) for label in labels if label.platform == "Canvas")
    shared = len(common_folders(places))
    claims = [people.find(place[shared:], canvas=canvas) for place in places]
    if any(claim.students for claim in claims):
        return claims
    # Nobody so far: the folder or the zip file as a whole may be one student's.
    wider = [(*names, *place) for names, place in zip(around, places, strict=True)]
    return [people.find(place, canvas=canvas) for place in wider]


def common_folders(places: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """Give the folders that all files lie in."""
    folders = [place[:-1] for place in places if place]
    shared = []
    for names in zip(*folders, strict=False):
        if len(set(names)) > 1 or read_label(names[0]):
            break
        shared.append(names[0])
    return tuple(shared)


class People:
    """A roster that can be searched by what people write into names.

    Args:
        roster: name by id.
        assignment: stem of the exercise.
    """

    def __init__(self, roster: Mapping[str, str], assignment: str):
        self.assignment = assignment
        self.ids = {folded(id): id for id in roster}
        self.long_ids = {text: id for text, id in self.ids.items() if len(text) >= SHORTEST_ID}
        self.names: dict[str, set[str]] = defaultdict(set)
        for id, name in roster.items():
            for form in forms(name):
                self.names[form].add(id)

    def find(self, place: tuple[str, ...], *, canvas: bool) -> Claim:
        """Say whose a file is, by the names on the way to it."""
        pool: set[str] = set()
        for part in place:
            label = read_label(part)
            if label and (label.platform != "Canvas" or canvas):
                students = self.labelled(label)
                called = label.name or label.id
                return Claim(students=order(students), strength=SURE, called=called, label=label)
            stem = ENDING.sub("", part)
            if id := self.ids.get(folded(stem)):
                return Claim(students=(id,), strength=SURE)
            found = self.ids_in(stem) or self.named(core(stem, self.assignment))
            pool = (pool & found) or pool or found
            if len(pool) == 1:
                return Claim(students=order(pool), strength=LIKELY)
        return Claim(
            students=order(pool),
            strength=LIKELY if pool else 0,
            called=called_by(place, self.assignment),
        )

    def labelled(self, label: Label) -> set[str]:
        """Give the students whom a platform may mean; two kinds of evidence must agree."""
        numbered = {self.ids[folded(label.id)]} if folded(label.id) in self.ids else set()
        evidence = [numbered, self.ids_in(label.name), self.named([label.name])]
        evidence = [each for each in evidence if each]
        if not evidence:
            return set()
        return set.intersection(*evidence) or set.union(*evidence)

    def ids_in(self, name: str) -> set[str]:
        """Find ids that stand in a name between other signs; an id within a longer one is none."""
        text = folded(without(name, self.assignment))
        spans = []
        for spelled, id in self.long_ids.items():
            if spelled in text:
                pattern = rf"(?<![^\W_]){re.escape(spelled)}(?![^\W_])"
                spans += [(match.span(), id) for match in re.finditer(pattern, text)]
        return {
            id
            for (start, end), id in spans
            if not any(
                low <= start and end <= high and high - low > end - start
                for (low, high), _ in spans
            )
        }

    def named(self, words: Sequence[str]) -> set[str]:
        """Find the students with a name that is made of some words, in any rotation."""
        found = [self.names.get(form, set()) for form in plain_letters("".join(words))]
        return set().union(*found)


def order(students: Collection[str]) -> tuple[str, ...]:
    """Give ids in a fixed order."""
    return tuple(sorted(students))


# --- words of names ------------------------------------------------------------------------

SPELLED_OUT = str.maketrans({"å": "aa"} | {a: f"{b}e" for a, b in zip("äöüø", "aouo", strict=True)})
BARE = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d"})


def plain_letters(text: str) -> set[str]:
    """Spell a text in letters alone, without accents, or with ä as ae."""
    both = (folded(text), folded(text).translate(SPELLED_OUT))
    bare = (unicodedata.normalize("NFKD", each.translate(BARE)) for each in both)
    return {form for each in bare if (form := "".join(filter(str.isalpha, each)))}


def forms(name: str) -> set[str]:
    """Spell a name in every order that begins at one of its words."""
    words = re.split(r"[\s,;]+", name.strip())
    rotations = ("".join(words[n:] + words[:n]) for n in range(len(words)))
    return {form for each in rotations for form in plain_letters(each)}


def without(name: str, assignment: str) -> str:
    """Take the assignment out of a name."""
    words = re.split(r"[^a-zA-Z0-9]+", assignment)
    pattern = r"(?<![^\W_])" + r"[\W_]*".join(map(re.escape, words)) + r"(?![^\W_])"
    return re.sub(pattern, " ", name, flags=re.IGNORECASE)


def core(stem: str, assignment: str) -> list[str]:
    """Give the words of a name that may say who: no counters, no assignment, no `final`."""
    words = WORD_BREAK.split(without(stem, assignment))
    return [word for word in words if word and not says_nothing(word)]


def says_nothing(word: str) -> bool:
    """Whether a word stands in names of files whoever they belong to."""
    return word.casefold() in GENERIC or re.fullmatch(r"v?\d{1,2}", word, re.I) is not None


def called_by(place: Sequence[str], assignment: str) -> str:
    """Give the words on the way to a file that may say who."""
    parts = [" ".join(core(ENDING.sub("", part), assignment)) for part in place]
    return " ".join(filter(None, parts))


def copy_number(place: Sequence[str]) -> int:
    """Give the number that a browser or a platform put behind a file's name for a later copy."""
    found = COUNTER.search(ENDING.sub("", place[-1])) if place else None
    return int(found[1]) if found else 0


# --- without a roster ----------------------------------------------------------------------


def name_owners(places: Sequence[tuple[str, ...]], *, assignment: str) -> list[Claim]:
    """Say whose files are when nobody told who is in the class.

    Args:
        places: of each file, the names on the way to it, from the outside in.
        assignment: stem of the exercise.

    Returns:
        One claim for each file. A folder is one student, unless several names stand in it: then
        each is. Two rows for one student are better than one row for two.
    """
    labels = [next(filter(None, map(read_label, place)), None) for place in places]
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    for label in filter(None, labels):
        names[label.platform, label.id].add(label.name)
    shared = common_folders(places)
    keys = [folder_key(place[len(shared) : -1], assignment) for place in places]
    cores = [
        "-".join(core(ENDING.sub("", place[-1]), assignment)) if place else "" for place in places
    ]
    in_folder: dict[str, set[str]] = defaultdict(set)
    for key, words in zip(keys, cores, strict=True):
        in_folder[key] |= {folded(words)} - {""}
    claims = []
    for label, key, words in zip(labels, keys, cores, strict=True):
        if label and len(names[label.platform, label.id]) == 1:
            called = safe(label.id)
            claims.append(Claim(students=(called,), strength=SURE, called=label.name, label=label))
            continue
        several = not key or len(in_folder[key]) > 1
        called = safe("-".join(filter(None, (key, words))) if several else key)
        called = called or safe(folder_key(shared[-1:], assignment))
        claims.append(Claim(students=(called,) if called else (), strength=LIKELY if key else 0))
    return claims


def folder_key(folders: Sequence[str], assignment: str) -> str:
    """Join the names of folders that may say who."""
    stems = [ENDING.sub("", name) for name in folders]
    return "-".join(stem for stem in stems if core(stem, assignment))


def safe(text: str) -> str:
    """Make an id of any text; nothing if no sign of it can stand in a file's name."""
    spelled = unicodedata.normalize("NFC", re.sub(r"[^\w@+.-]+", "-", text))
    spelled = "".join(letter for letter in spelled if letter.isprintable()).strip(".-")[:60]
    spelled = spelled.strip(".-")
    if spelled and not is_safe(spelled):
        spelled = f"student-{spelled}"
    return spelled if is_safe(spelled) else ""


def unique(wanted: str, taken: set[str]) -> str:
    """Give an id that nobody has yet, and take it."""
    candidates: Iterator[str] = (f"{wanted}-{number}" for number in range(2, 10**9))
    id = wanted
    while folded(id) in taken:
        id = next(candidates)
    taken.add(folded(id))
    return id

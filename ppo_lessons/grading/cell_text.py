"""What does a student's code define, and what does it need? Read from syntax trees, never run.

Hostile source can make Python's own parser fill all memory: `parse_code` refuses what is longer
or more chained than anything that a person writes.
"""

import ast
import builtins
import re
import symtable
import threading
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

MAX_PARSED = 20_000  # characters
MAX_DOTS = 100  # of `import a.b.c`: the parser's memory grows with their square
# Python 3.11 counts the depth of a tree in one place for all threads: two trees built at once end
# in a SystemError, as soon as a garbage collection lets the other thread run.
ONE_TREE_AT_A_TIME = threading.RLock()
FROM_THE_KERNEL = frozenset({"get_ipython", "display", "In", "Out", "_", "__", "exit", "quit"})
# nbval obeys a comment that holds one of these and nothing else.
NBVAL_MARKS = re.compile(r"NBVAL_|PYTEST_VALIDATE_")
MAGIC = re.compile(
    r"(?P<indent>[ \t]*)(?P<magic>%{1,2}[A-Za-z_].*|!.*|\?{1,2}[\w.]+.*|[\w.]+\?{1,2}[ \t]*)"
)
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SCOPE = (*DEFINITION, ast.Lambda)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Statements at the left margin that share lines.

    Args:
        text: their lines.
        binds: names that they give a meaning.
        changes: names whose values they alter in place.
        imports: what an import statement gives to its names.
        fixed: those of `binds` that an import or a definition gives.
        line: of the first, from 1.
        last: line of the end.
        future: whether it is `from __future__ import ...`.
        star: whether it imports names that are not listed.
    """

    text: str
    binds: frozenset[str]
    changes: frozenset[str]
    imports: Mapping[str, str]
    fixed: frozenset[str]
    line: int
    last: int
    future: bool = False
    star: bool = False


def parse_code(source: str) -> ast.Module | None:
    """Parse Python code.

    Args:
        source: of a cell; anything.

    Returns:
        Its syntax tree; None if it has none, or is longer than a person writes.
    """
    if not may_be_parsed(source):
        return None
    try:
        with ONE_TREE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def may_be_parsed(source: str) -> bool:
    """Whether Python's parser can be trusted with a text."""
    if len(source) > MAX_PARSED:
        return False
    tight = re.sub(r"[ \t\f\\\r\n]+", "", source)
    return all(len(re.findall(r"\w\.", run)) < MAX_DOTS for run in re.findall(r"[\w.]+", tight))


# --- what must not reach nbval or Python ---------------------------------------------------


def without_marks(source: str) -> str:
    """Spell comments that nbval obeys in another way; it splits lines as `splitlines` does."""
    lines = source.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.strip().startswith("#"):
            lines[number] = NBVAL_MARKS.sub(lambda found: found[0].replace("_", "-"), line)
    return "".join(lines)


def without_magics(source: str) -> tuple[str, bool]:
    """Turn the lines that only a notebook understands into comments.

    Args:
        source: of a cell.

    Returns:
        The new text, and whether it differs. A cell that is Python already stays as it is, since
        a line may begin with `%` inside an expression; so does one that is no Python without
        these lines either.
    """
    if not may_be_parsed(source) or parse_code(source) is not None:
        return source, False
    lines = source.split("\n")
    for number, line in enumerate(lines):
        if found := MAGIC.fullmatch(line):
            stays = "pass  " if found["indent"] else ""
            lines[number] = f"{found['indent']}{stays}# {found['magic']}"
    changed = "\n".join(lines)
    return (changed, True) if changed != source and parse_code(changed) else (source, False)


def without_calls(source: str, names: Iterable[str]) -> tuple[str, bool]:
    """Turn statements at the left margin that call one of some names into comments.

    Args:
        source: of a cell.
        names: of what is called, or of what a method of is called.

    Returns:
        The new text, and whether it differs.
    """
    tree = parse_code(source)
    if tree is None or "\f" in source:
        return source, False
    lines, body = source.split("\n"), tree.body
    for number, statement in enumerate(body):
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        ends_before = number == 0 or (body[number - 1].end_lineno or 0) < first
        begins_after = number + 1 == len(body) or body[number + 1].lineno > last
        if called(statement) in names and ends_before and begins_after:
            lines[first - 1 : last] = [f"# {line}" for line in lines[first - 1 : last]]
    changed = "\n".join(lines)
    return (changed, True) if changed != source and parse_code(changed) else (source, False)


def called(statement: ast.stmt) -> str:
    """Give the first name of a call that stands alone; nothing for any other statement."""
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return ""
    return base_name(statement.value.func)


def base_name(node: ast.AST) -> str:
    """Give the name at which a chain of attributes and subscripts begins."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- what code defines ---------------------------------------------------------------------


def units_of(source: str) -> list[Unit]:
    """Cut code into its statements at the left margin.

    Args:
        source: of a cell.

    Returns:
        They in order; none if it is no Python.
    """
    tree = parse_code(source)
    if tree is None:
        return []
    lines = tree_lines(source)
    groups: list[tuple[int, int, list[ast.stmt]]] = []
    for statement in tree.body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(each.lineno for each in decorators)])
        last = statement.end_lineno or statement.lineno
        if groups and first <= groups[-1][1]:
            low, high, nodes = groups.pop()
            nodes.append(statement)
            groups.append((low, max(high, last), nodes))
        else:
            groups.append((first, last, [statement]))
    return [unit_of(lines, *group) for group in groups]


def tree_lines(source: str) -> list[str]:
    """Split a text where Python's parser counts a new line."""
    return re.split(r"\r\n|\r|\n", source)


def unit_of(lines: list[str], first: int, last: int, nodes: list[ast.stmt]) -> Unit:
    """Say what some statements define."""
    own = [node for statement in nodes for node in walk_scope(statement)]
    # `x += 1` needs an x: it gives none.
    grown = {id(node.target) for node in own if isinstance(node, ast.AugAssign)}
    binds: set[str] = set()
    fixed: set[str] = set()
    imports: dict[str, str] = {}
    changes: set[str] = set()
    for node in own:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in grown:
                binds.add(name)
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                changes.add(base_name(node))
            case ast.AugAssign(target=target):
                changes.add(base_name(target))
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):
                changes.add(base_name(method))
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                fixed.add(name)
            case ast.Import() | ast.ImportFrom():
                imports |= imported_names(node)
    homes = [node for node in own if isinstance(node, ast.ImportFrom)]
    return Unit(
        text="\n".join(lines[first - 1 : last]),
        binds=frozenset((binds | fixed | set(imports)) - {"*"}),
        changes=frozenset(changes - {""}),
        imports=imports,
        fixed=frozenset((fixed | set(imports)) - {"*"}),
        line=first,
        last=last,
        future=any(node.module == "__future__" for node in homes),
        star="*" in imports,
    )


def imported_names(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Say what an import statement gives to each of its names."""
    if isinstance(node, ast.ImportFrom):
        home = f"{'.' * node.level}{node.module or ''}"
        return {each.asname or each.name: f"from {home} import {each.name}" for each in node.names}
    heads = ((each, each.name.partition(".")[0]) for each in node.names)
    return {
        each.asname or head: f"import {each.name if each.asname else head}" for each, head in heads
    }


def walk_scope(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that run with it, not those inside functions and classes."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(
            node, (*SCOPE, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        ):
            waiting += ast.iter_child_nodes(node)


def defines(source: str, name: str) -> bool:
    """Whether code gives a meaning to a name at its left margin."""
    return any(name in unit.binds for unit in units_of(source))


# --- what code needs -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Names that code looks up outside of itself.

    Args:
        outside: those that it does not define.
        later: those that its functions look up when they are called.
    """

    outside: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()


def needs_of(source: str) -> Needs:
    """Say which names code must find.

    Args:
        source: of a cell, or of a unit.

    Returns:
        The names; none if it is no Python.
    """
    if parse_code(source) is None:
        return Needs()
    try:
        with ONE_TREE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = symtable.symtable(source, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return Needs()
    own = {each.get_name() for each in module.get_symbols() if is_bound(each)}
    used = {each.get_name() for each in module.get_symbols() if each.is_referenced()}
    later: set[str] = set()
    tables = module.get_children()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        symbols = table.get_symbols()
        later |= {each.get_name() for each in symbols if each.is_global() and each.is_referenced()}
        own |= {each.get_name() for each in symbols if each.is_declared_global() and is_bound(each)}
    known = own | set(vars(builtins)) | FROM_THE_KERNEL
    return Needs(outside=frozenset((used | later) - known), later=frozenset(later))


def is_bound(symbol: symtable.Symbol) -> bool:
    """Whether a scope gives a meaning to a name."""
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


class Shelf:
    """The statements of several cells, to be found by the names that they define.

    Args:
        units: in order.
    """

    def __init__(self, units: Sequence[Unit]):
        self.units = units
        self.homes: dict[str, list[int]] = defaultdict(list)
        self.changed: dict[str, list[int]] = defaultdict(list)
        for position, unit in enumerate(units):
            for name in unit.binds:
                self.homes[name].append(position)
            for name in unit.changes:
                self.changed[name].append(position)

    def gather(self, names: Iterable[str], *, before: int, left_out: Iterable[str]) -> list[int]:
        """Choose the statements that give names their meaning, and what these need in turn.

        Args:
            names: that are needed.
            before: how many units stand before the code that needs the names; the last one of
                these that defines a name is taken, else the first one after.
            left_out: names that are there already.

        Returns:
            Positions in `units`, in order.
        """
        chosen: set[int] = set()
        seen = set(left_out)
        waiting = sorted(names)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for position in self.meaning_of(name, before):
                if position not in chosen:
                    chosen.add(position)
                    waiting += sorted(needs_of(self.units[position].text).outside)
        return sorted(chosen)

    def meaning_of(self, name: str, before: int) -> list[int]:
        """Find the statement that defines a name, and those after it that change its value."""
        homes = self.homes.get(name, [])
        if not homes:
            return []
        place = max(bisect_left(homes, before) - 1, 0)
        home = homes[place]
        if name in self.units[home].fixed:
            return [home]
        end = homes[place + 1] if place + 1 < len(homes) else len(self.units)
        return [home, *(n for n in self.changed.get(name, []) if home < n < end)]


def meanings(units: Iterable[Unit]) -> dict[str, list[str]]:
    """Say what each name that code defines stands for, so that two cells can be compared.

    Args:
        units: of one cell.

    Returns:
        Its statements by name; of an import only what concerns the name.
    """
    found: dict[str, list[str]] = {}
    given: set[str] = set()  # by imports: what `torch.manual_seed(0)` changes is not its meaning
    for unit in units:
        given |= set(unit.imports)
        for name in unit.changes - unit.binds - given:
            if name in found:
                found[name].append(unit.text)
        found |= {name: [unit.imports.get(name, unit.text)] for name in unit.binds}
    return found

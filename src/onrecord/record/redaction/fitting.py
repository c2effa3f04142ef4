"""Finds rules that can never do anything, before they are applied: a slip in a privacy rule must not pass in silence.

    >>> from onrecord.record.redaction.paths import parse_path
    >>> print(fault_of(parse_path("/parties/*/nmae"), keeps=()).hint)
    did you mean /parties/*/name?
    >>> fault_of(parse_path("/parties/*/name"), keeps=()) is None
    True

A path is followed through the tables. It can never fit where it names a member that no version of core and no known
extension has, since what nobody knows is left out without a rule. Whether one that can fit did so is told by the
report.

Source: record.md PR-08, D-19, D-21.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Final

from onrecord.record.checks.values import CIVIC_KEYS
from onrecord.record.instances import REPLACED
from onrecord.record.redaction.paths import ANY, DEEP, Path, Step, written
from onrecord.record.redaction.shapes import INDEXED, TOP, Shape

MAX_SHOWN: Final = 80
"""Characters of a name that an error shows."""

MAX_INDEX_DIGITS: Final = 17
"""Digits of the longest index that leads to an element."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a path can do nothing, and what to write instead."""

    code: str
    message: str
    hint: str


def fault_of(path: Path, *, keeps: Collection[Path], is_search: bool = False) -> Fault | None:
    """Return why a rule with this path can never take anything out, None if it can.

    `keeps` (from `kept_by`) are the paths of the rules that keep members which nobody knows: other rules may look into
    those.
    `is_search` is said of rules that look for parts of texts, which also look at structure that may be none.
    """
    if path and path[0] in REPLACED:
        return Fault(
            "redaction-path-structure",
            "the path names what every copy gets anew, or not at all, without a rule",
            "leave this rule out",
        )
    reached = [TOP]
    for index, step in enumerate(path):
        below = _advance(reached, step)
        if not below:
            end = path[: index + 1]
            return None if _is_kept(end, keeps) else _never(path, index, reached)
        if any(shape.is_free for shape in below):
            return None
        reached = below
    if is_search or not all(shape.is_structure for shape in reached):
        return None
    return Fault(
        "redaction-path-structure",
        "the path names only structure (types, times, indices), which goes with its whole element only",
        f'the path /{path[0]}/* with action = "placeholder" takes whole elements out'
        if path[0] in INDEXED
        else "leave this rule out: structure stays",
    )


def _never(path: Path, index: int, reached: Sequence[Shape]) -> Fault:
    known = sorted({name for shape in reached for name in _names_in(shape)})
    name = str(path[index])
    is_array = any(map(_is_array, reached))
    near = get_close_matches(name[:MAX_SHOWN], known, n=3)
    others: list[Path] = [(*path[:index], one, *path[index + 1 :]) for one in near]
    if is_array:
        others.append((*path[:index], ANY, *path[index:]))
    meant = next((other for other in others if _leads_somewhere(other)), None)
    if meant is not None:
        hint = f"did you mean {written(meant)}?"
    elif known:
        hint = f"known here: {', '.join(known)}"
    elif is_array:
        hint = f"{written(path[:index])} is an array; go on with * or an index"
    else:
        hint = f"{written(path[:index])} has no members; end the path there"
    return Fault(
        "redaction-path-unknown",
        f"the path can never fit: nobody knows {name[:MAX_SHOWN]!r} there, and what nobody knows is left out "
        "without a rule",
        hint,
    )


def _leads_somewhere(path: Path) -> bool:
    reached = [TOP]
    for step in path:
        reached = _advance(reached, step)
        if any(shape.is_free for shape in reached):
            return True
    return bool(reached)


def _advance(reached: Sequence[Shape], step: Step) -> list[Shape]:
    if step is not DEEP:
        return _each_once(found for shape in reached for found in _below(shape, step))
    found = _each_once(reached)
    while True:
        more = _each_once([*found, *(inner for shape in found for inner in _below(shape, ANY))])
        if len(more) == len(found):
            return found
        found = more


def _each_once(shapes: Iterable[Shape]) -> list[Shape]:
    """Return the shapes without repetition. They are few: those of the tables."""
    return list(
        {
            (shape.name, shape.kind, shape.table.name if shape.table else None, shape.is_list): shape
            for shape in shapes
        }.values()
    )


def _below(shape: Shape, step: Step) -> list[Shape]:
    """Return what may stand one step below a shape, as redaction copies it: texts and numbers have nothing below."""
    if shape.is_free:
        return [shape]
    if shape.table is not None and not shape.is_list:
        return [one for name, one in shape.members.items() if step is ANY or name == step]
    found: list[Shape] = []
    if (_is_array(shape) or shape.is_structure) and (step is ANY or _is_index(str(step))):
        found.append(shape.element())
    if shape.kind.startswith(("civic-address", "session-id")):
        member = shape.member("" if step is ANY else str(step))
        if member is not None and (step is ANY or shape.admits_name(str(step))):
            found.append(member)
    return found


def _is_array(shape: Shape) -> bool:
    return shape.is_list or shape.kind.startswith(("strings", "session-id"))


def _names_in(shape: Shape) -> Collection[str]:
    return CIVIC_KEYS if shape.kind == "civic-address" else shape.members


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_INDEX_DIGITS


def kept_by(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths of rules that keep members, as `fault_of` looks them up: an index is any, any depth is all."""
    found = frozenset(map(_without_indices, paths))
    return _EVERYTHING if any(DEEP in path for path in found) else found


def _is_kept(path: Path, keeps: Collection[Path]) -> bool:
    """Say whether a rule that keeps members may lead to the same place. Names are few, since the tables end."""
    if not keeps or keeps is _EVERYTHING:
        return bool(keeps)
    choices = [(step,) if step is ANY else (step, ANY) for step in _without_indices(path)]
    return DEEP in path or any(spelling in keeps for spelling in product(*choices))


def _without_indices(path: Path) -> Path:
    return tuple(ANY if isinstance(step, str) and _is_index(step) else step for step in path)


_EVERYTHING: Final[frozenset[Path]] = frozenset([(DEEP,)])

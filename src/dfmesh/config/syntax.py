"""What is wrong with a file that is no YAML, in words that need no knowledge of YAML's grammar.

The parser notices a mistake where it can go on no longer, which is often behind the line that is wrong. What it says
and the lines around tell most of the common mistakes apart; for the others its own words must do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from dfmesh.errors import Fault, SourceLocation


class Place(NamedTuple):
    """A position in a text, counted from 0."""

    line: int
    column: int


class Finding(NamedTuple):
    """What is wrong, where, and what to do."""

    message: str
    place: Place
    hint: str = ""


class _Trouble(NamedTuple):
    """What the parser said, and the text.

    Attributes:
        lines: The file's lines.
        problem: What it met; empty if it does not say.
        place: Where it met that.
        context: What it was reading.
        begin: Where that begins; `place` if it does not say.
    """

    lines: list[str]
    problem: str
    place: Place
    context: str
    begin: Place

    @property
    def line(self) -> str:
        return _line(self.lines, self.place.line)

    @property
    def before(self) -> str:
        """The line, up to the place."""
        return self.line[: self.place.column]

    @property
    def character(self) -> str:
        return self.line[self.place.column : self.place.column + 1]

    @property
    def opening(self) -> str:
        return _line(self.lines, self.begin.line)[self.begin.column : self.begin.column + 1]


def syntax_fault(name: str, error: Exception, content: bytes) -> Fault:
    """Describe why a file cannot be read.

    Args:
        name: The file, as the user knows it.
        error: What PyYAML raised.
        content: The file's bytes.
    """
    lines = content.decode(errors="replace").splitlines()
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        place, reason = _unreadable(error, content)
        return _fault(name, Finding(reason, place, "save the file as text in UTF-8"))
    place, began = Place(mark.line, mark.column), getattr(error, "context_mark", None)
    trouble = _Trouble(
        lines,
        str(getattr(error, "problem", "") or ""),
        place,
        str(getattr(error, "context", "") or ""),
        place if began is None else Place(began.line, began.column),
    )
    return _fault(name, next(_findings(trouble), None) or _own_words(trouble))


def _fault(name: str, finding: Finding) -> Fault:
    location = SourceLocation(name, finding.place.line + 1, finding.place.column + 1)
    return Fault(f"not valid YAML: {finding.message}", location, hint=finding.hint)


def _unreadable(error: Exception, content: bytes) -> tuple[Place, str]:
    position = getattr(error, "position", None)
    before = content[:position] if isinstance(position, int) else b""
    reason = getattr(error, "reason", None) or str(error)
    return Place(before.count(b"\n"), len(before) - before.rfind(b"\n") - 1), " ".join(str(reason).split())


def _own_words(trouble: _Trouble) -> Finding:
    began = f" that begins in line {trouble.begin.line + 1}" if trouble.begin.line != trouble.place.line else ""
    words = f"{trouble.context}{began}: {trouble.problem}" if trouble.context else trouble.problem
    return Finding(" ".join(words.split()), trouble.place)


def _findings(trouble: _Trouble) -> Iterator[Finding]:
    """Find what the trouble may be, the likeliest first."""
    problem = trouble.problem
    if "cannot start any token" in problem:
        yield _wrong_beginning(trouble)
    elif "expected ':'" in problem:
        yield _no_colon(trouble.begin, _line(trouble.lines, trouble.begin.line)[trouble.begin.column :])
    elif "mapping values are not allowed" in problem:
        yield _unexpected_colon(trouble)
    elif "expected key" in problem or "expected '-' indicator" in problem or "<block end>" in problem:
        yield from _broken_block(trouble)
    elif "',' or '" in problem:
        yield _broken_brackets(trouble)
    elif "node content" in problem and trouble.character:
        yield Finding(f"{trouble.character!r} stands where a value should", trouble.place)
    elif "unexpected end of stream" in problem and "quoted" in trouble.context:
        yield Finding("the quote that begins here is never closed", trouble.begin, "put another at its end")
    else:
        yield from _rarer(trouble)


def _rarer(trouble: _Trouble) -> Iterator[Finding]:
    problem, context = trouble.problem, trouble.context
    if "nesting depth" in problem:
        yield Finding("nested too deeply", trouble.place)
    elif "undefined alias" in problem:
        hint = "if it is text, put it in quotes"
        yield Finding("there is no anchor of this name ('&...') before it", trouble.place, hint)
    elif "scanning an alias" in context or "scanning an anchor" in context:
        yield Finding(f"a text cannot begin with {trouble.opening!r}", trouble.begin, "put it in quotes")
    elif "unknown escape" in problem:
        hint = "use single quotes, or write two backslashes"
        yield Finding("a backslash that means nothing between double quotes", trouble.place, hint)
    elif "another document" in problem:
        yield Finding("a second document begins here", trouble.place, "one file holds one document: remove the '---'")
    elif "<document start>" in problem:
        first = next((number for number, line in enumerate(trouble.lines) if _without_comment(line)), 0)
        if _indentation(_line(trouble.lines, first)):
            message = f"this line is indented less than the first, line {first + 1}"
            yield Finding(message, trouble.place, "begin all keys of the file in the same column")


def _wrong_beginning(trouble: _Trouble) -> Finding:
    if trouble.character == "\t":
        what = "a tab in the indentation" if not trouble.before.strip() else "a tab before the value"
        return Finding(what, trouble.place, "YAML indents with spaces, not tabs")
    return Finding(f"a text cannot begin with {trouble.character!r}", trouble.place, "put it in quotes")


def _no_colon(place: Place, rest: str) -> Finding:
    text = _without_comment(rest)
    key, colon, value = text.partition(":")
    if colon and value:
        return Finding(f"there is no space behind the colon of {text!r}", place, f"write '{key}: {value.strip()}'")
    return Finding(f"there is no colon behind {text!r}", place, f"write '{text}:', with its value behind or below")


def _unexpected_colon(trouble: _Trouble) -> Finding:
    """A colon where a value stands already: a second one in a line, or in the line above something is wrong."""
    if re.search(r":\s", trouble.before):
        hint = "put the value in quotes if it is a text; else begin a new line"
        return Finding("a second colon in one line", trouble.place, hint)
    above = _line_above(trouble.lines, trouble.place.line)
    here = Place(trouble.place.line, _indentation(trouble.line))
    return Finding("a key must not stand here", here) if above is None else _too_deep(trouble.lines, here, above)


def _too_deep(lines: list[str], here: Place, above: Place) -> Finding:
    """Blame a line that is indented deeper than the one above, or the one above, if it lacks its colon."""
    line = _line(lines, above.line)
    rest = line[above.column :].removeprefix("- ").lstrip()
    if not re.search(r":(\s|$)", rest):
        return _no_colon(Place(above.line, len(line) - len(rest)), rest)
    message = f"this line is indented deeper than line {above.line + 1}, which has its value already"
    return Finding(message, here, f"indent it by {above.column} columns, or move that value")


def _broken_block(trouble: _Trouble) -> Iterator[Finding]:
    if not trouble.before.strip():
        yield from _indentation_fault(trouble)
    elif trouble.character in ("]", "}"):
        opening = {"]": "[", "}": "{"}[trouble.character]
        yield Finding(f"there is no {opening!r} for this {trouble.character!r}", trouble.place, "remove it")
    elif trouble.before.rstrip()[-1] in "'\"":
        yield _behind_quote(trouble)


def _behind_quote(trouble: _Trouble) -> Finding:
    """Something stands behind a closing quote, perhaps since the one before was never closed."""
    begin = _quote_begin(trouble)
    if begin is not None and begin.line != trouble.place.line:
        message = f"the quote that begins here is not closed before line {trouble.place.line + 1}"
        return Finding(message, begin, f"close it in line {begin.line + 1}")
    hint = "put all of it in quotes; a quote inside of them is written twice"
    return Finding("a text goes on behind its closing quote", trouble.place, hint)


def _quote_begin(trouble: _Trouble) -> Place | None:
    """Find where the last quoted text before the place begins."""
    import yaml

    begin = None
    try:
        for token in yaml.scan("\n".join(trouble.lines), Loader=yaml.SafeLoader):
            end = Place(token.end_mark.line, token.end_mark.column)
            if end > trouble.place:
                break
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"'):
                begin = Place(token.start_mark.line, token.start_mark.column)
    except yaml.YAMLError:
        pass  # further behind; the place has been reached, or else nothing is known
    return begin


def _indentation_fault(trouble: _Trouble) -> Iterator[Finding]:
    above = _line_above(trouble.lines, trouble.place.line)
    if above is None:
        return
    here, column = trouble.place, trouble.place.column
    is_element = bool(re.match(r"-(\s|$)", trouble.line[column:]))
    if column == trouble.begin.column and is_element:
        yield Finding(f"a list element among the keys that begin in line {trouble.begin.line + 1}", here, "indent it")
    elif column == trouble.begin.column and "collection" in trouble.context:
        hint = "begin it with '- ', or indent it as the line above the list"
        yield Finding(f"a key among the elements of the list that begins in line {trouble.begin.line + 1}", here, hint)
    elif above.column < column:
        yield _too_deep(trouble.lines, here, above)
    else:
        columns = _blocks_above(trouble.lines, trouble.place.line)
        hint = f"indent it by {' or '.join(map(str, columns))} columns"
        yield Finding(f"this line is indented by {column} columns, as no block above is", here, hint)


def _broken_brackets(trouble: _Trouble) -> Finding:
    closing = {"[": "]", "{": "}"}.get(trouble.opening, "]")
    if trouble.character in ("]", "}") and trouble.character != closing:
        message = f"{trouble.character!r} closes what {trouble.opening!r} in line {trouble.begin.line + 1} opens"
        return Finding(message, trouble.place, f"write {closing!r}")
    if trouble.begin.line != trouble.place.line and not _is_balanced(trouble.lines, trouble.opening, closing):
        message = f"the {trouble.opening!r} that begins here is not closed before line {trouble.place.line + 1}"
        return Finding(message, trouble.begin, f"put {closing!r} at its end")
    return Finding(f"',' or {closing!r} is missing before this", trouble.place)


def _is_balanced(lines: list[str], opening: str, closing: str) -> bool:
    bare = [re.sub(r"\"[^\"]*\"|'[^']*'|(^|\s)#.*", "", line) for line in lines]
    return sum(line.count(opening) for line in bare) <= sum(line.count(closing) for line in bare)


def _line(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def _line_above(lines: list[str], number: int) -> Place | None:
    """Find the nearest line above that says something, and where it begins."""
    numbers = range(min(number, len(lines)) - 1, -1, -1)
    found = next((one for one in numbers if _without_comment(lines[one])), None)
    return None if found is None else Place(found, _indentation(lines[found]))


def _blocks_above(lines: list[str], number: int) -> list[int]:
    """Find how far the blocks are indented that are open above a line, the innermost first."""
    columns: list[int] = []
    for line in reversed(lines[:number]):
        column = _indentation(line)
        if _without_comment(line) and (not columns or column < columns[-1]):
            columns.append(column)
    return columns


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_comment(text: str) -> str:
    return re.sub(r"(^|\s)#.*", "", text).strip()


def mapping_hint(value: Any) -> str:
    """Say what to do about a text that was meant as a mapping: `key:value` without a space."""
    key, colon, rest = str(value).partition(":")
    is_slip = bool(colon) and key.replace("-", "_").isidentifier() and bool(rest) and not rest.startswith("/")
    return f"put a space behind the colon: '{key}: {rest.strip()}'" if is_slip else ""


__all__ = ["Finding", "Place", "mapping_hint", "syntax_fault"]

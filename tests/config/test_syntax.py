"""A file that is no YAML: the common mistakes are told in plain words, at the line that is wrong."""

from __future__ import annotations

import pytest

from dfmesh.config import FederationConfig
from dfmesh.errors import ConfigError

# The § stands before the place that must be named.
CASES = {
    "tab": ("sites:\n  a: {}\n§\tb: {}\n", "a tab in the indentation", "spaces, not tabs"),
    "tab behind spaces": ("sites:\n  a:\n  §\tb: 1\n", "a tab in the indentation", "spaces, not tabs"),
    "no colon at the top": ("dfm: 1.0.0\n§sites\n  a: 1\n", "no colon behind 'sites'", "write 'sites:'"),
    "no colon before a block": ("sites:\n  §alps # high\n    interface: {}\n", "no colon behind 'alps'", "'alps:'"),
    "no colon between keys": ("sites:\n  alps: {}\n  §sea\n  x: {}\n", "no colon behind 'sea'", "'sea:'"),
    "no colon at the end": ("sites:\n  alps: {}\n  §sea\n", "no colon behind 'sea'", "'sea:'"),
    "no space": ("a:\n  §b:1\n  c: 2\n", "no space behind the colon of 'b:1'", "write 'b: 1'"),
    "two colons": ("a:\n  description: Read§: all\n", "a second colon in one line", "in quotes"),
    "deeper": ("a:\n  b: 1\n\n    §c: 2\n", "indented deeper than line 2, which has its value", "by 2 columns"),
    "deeper behind brackets": ("a:\n  b: {}\n    §c: 2\n", "indented deeper than line 2", "by 2 columns"),
    "less": ("a:\n    b:\n      x: 1\n   §c: 2\n", "indented by 3 columns, as no block above is", "6 or 4 or 0"),
    "first line": ("  dfm: 1\n§sites: {}\n", "indented less than the first, line 1", "same column"),
    "key in list": ("a:\n  - 1\n  §b: 2\n", "a key among the elements of the list that begins in line 2", "'- '"),
    "element among keys": ("a:\n  b: 2\n  §- 1\n", "a list element among the keys that begin in line 2", ""),
    "quote to the end": ("a: §'b\nc: 1\n", "the quote that begins here is never closed", ""),
    "quote to the next": ("a: §'b\nc: 1\nd: 'x'\n", "is not closed before line 3", "close it in line 1"),
    "behind a quote": ("a: 'b' §c\n", "goes on behind its closing quote", "in quotes"),
    "bracket": ("a: §[1, 2\nb: 1\n", "the '[' that begins here is not closed before line 2", "put ']'"),
    "brace": ("sites: §{a: {b: 1}\nother: 3\n", "the '{' that begins here is not closed", "put '}'"),
    "comma": ("a: {b: 'x' §c: 2}\n", "',' or '}' is missing before this", ""),
    "comma between lines": ('{\n  "a": 1,\n  "b": "2"\n  §"c": 3\n}\n', "',' or '}' is missing before this", ""),
    "wrong bracket": ("a: [1, 2§}\n", "'}' closes what '[' in line 1 opens", "write ']'"),
    "one bracket more": ("a: [1, 2]§]\nb: 1\n", "no '[' for this ']'", "remove it"),
    "no value": ('{"a": [§}\n', "'}' stands where a value should", ""),
    "at": ("a: §@b\n", "a text cannot begin with '@'", "in quotes"),
    "star": ("a: §*.txt\n", "a text cannot begin with '*'", "in quotes"),
    "no anchor": ("a: §*b\n", "no anchor of this name", "in quotes"),
    "backslash": ('a: "§\\d"\n', "a backslash that means nothing", "single quotes"),
    "two documents": ("a: 1\n§---\nb: 2\n", "a second document begins here", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_plain_words_at_the_guilty_line(write, case):
    marked, message, hint = CASES[case]
    before = marked.partition("§")[0]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(write(marked.replace("§", "")))
    (fault,) = caught.value.faults
    assert fault.message.startswith("not valid YAML: ")
    assert message in fault.message
    assert hint in fault.hint
    assert (fault.location.line, fault.location.column) == (line, column), str(fault)


def test_what_is_not_known_is_said_in_the_parsers_words(write):
    with pytest.raises(ConfigError, match=r"1:\d+: not valid YAML: while scanning a block scalar"):
        FederationConfig.load(write("a: |x\n  b\n"))


def test_a_control_character_has_its_place(write):
    with pytest.raises(ConfigError, match=r"dfm\.yaml:2:4: not valid YAML: control characters"):
        FederationConfig.load(write("a: 1\nb: \x01\n"))

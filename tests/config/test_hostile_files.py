"""Files made to exhaust whoever reads them are refused within moments, with their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dfmesh.config import FederationConfig
from dfmesh.errors import ConfigError, Fault

pytestmark = pytest.mark.timeout(100)

BOMB = "x-a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" + "".join(
    f"x-{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Nine levels of nine aliases each: the last list has 9 ** 9 numbers."""

OPERATIONS = "operations: {a.B: {parameters: {p: {}}}}\n"


def faults_of(path: Path) -> tuple[Fault, ...]:
    with pytest.raises(ConfigError) as raised:
        FederationConfig.load(path)
    return raised.value.faults


@pytest.mark.parametrize(
    "used",
    [
        "",
        "operations: {a.B: {parameters: {p: {default: *i}}}}\n",
        f"{OPERATIONS}sites: {{us: {{info: {{x: *i}}}}}}\n",
        f"{OPERATIONS}sites: {{us: {{interface: {{a.B: {{adapter: l.B, args: {{x: {{const: *i}}}}}}}}}}}}\n",
    ],
)
def test_aliases_that_multiply(write, used):
    (fault,) = faults_of(write(f"dfm: 1.0.0\n{BOMB}{used}"))
    assert "aliases" in fault.message
    assert fault.location is not None
    assert fault.location.line == 7  # the first with more than 200,000 values: 9 ** 6 in x-f


def test_merged_aliases_that_multiply(write):
    merges = [f"x-{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}\n" for n in range(1, 9)]
    (fault,) = faults_of(write("dfm: 1.0.0\nx-0: &m0 {k: 1}\n" + "".join(merges) + "sites: {us: *m8}\n"))
    assert "aliases" in fault.message


def test_aliases_that_do_not_multiply_much(write):
    text = f"dfm: 1.0.0\nx-a: &a [{', '.join(map(str, range(100)))}]\n{OPERATIONS}sites:\n"
    sites = "".join(f"  s{n}: {{info: {{x: *a}}}}\n" for n in range(1000))
    assert len(FederationConfig.load(write(text + sites)).sites["s7"].info["x"]) == 100


@pytest.mark.parametrize("chain", [range(1, 19), range(1, 3000)], ids=["wide", "deep"])
def test_references_that_multiply(write, chain):
    width = 3 if len(chain) < 100 else 1
    refs = [f"x-a{n - 1}: {{$ref: [{', '.join([f'#/x-a{n}'.join(chr(39) * 2)] * width)}]}}\n" for n in chain]
    sites = "sites: {us: {interface: {$ref: '#/x-a0'}}}\n"
    (fault,) = faults_of(write(f"dfm: 1.0.0\n{''.join(refs)}x-a{chain[-1]}: {{}}\n{OPERATIONS}{sites}"))
    assert "reference" in fault.message
    assert fault.location is not None


def test_schemas_that_multiply(write):
    schemas = [
        f"  s{n}: {{properties: {{a: {{$ref: '#/schemas/s{n + 1}'}}, b: {{$ref: '#/schemas/s{n + 1}'}}}}}}\n"
        for n in range(40)
    ]
    text = f"dfm: 1.0.0\nschemas:\n{''.join(schemas)}  s40: {{}}\n"
    assert FederationConfig.load(write(text)).schemas["s39"]  # each is read once
    text = text.replace("s40: {}", "s40: {properties: {a: {$ref: '#/schemas/s0'}}}")
    (fault,) = faults_of(write(text, "recursive.dfm.yaml"))
    assert "schemas" in fault.message


def test_schemas_nested_too_deeply(write):
    schemas = [f"  s{n}: {{properties: {{a: {{$ref: '#/schemas/s{n + 1}'}}}}}}\n" for n in range(2000)]
    (fault,) = faults_of(write(f"dfm: 1.0.0\nschemas:\n{''.join(schemas)}  s2000: {{}}\n"))
    assert "deep" in fault.message


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000 + "]" * 20_000,
        "[" * 300 + "]" * 300,
        "\n" + "".join(" " * n + "a:\n" for n in range(1, 1500)),
        "\n" + "".join(" " * n + "- a:\n" for n in range(1, 600, 2)),
    ],
)
def test_values_nested_too_deeply(write, text):
    (fault,) = faults_of(write(f"dfm: 1.0.0\nx-a: {text}\n"))
    assert "nested" in fault.message
    assert fault.location is not None


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "folder", '"a\\0b"'])
def test_what_is_no_file(write, tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    file = write(f"dfm: 1.0.0\nsites: {{$ref: {name}}}\n")
    (fault,) = faults_of(file)
    assert "cannot read" in fault.message
    assert str(fault.location) == f"{file}:2:15"
    if name in ("/dev/zero", "pipe"):
        (fault,) = faults_of(tmp_path / name)
        assert "no regular file" in fault.message


def test_a_huge_file(tmp_path):
    with open(tmp_path / "huge.dfm.yaml", "wb") as file:
        file.truncate(1 << 40)  # takes no room
    (fault,) = faults_of(tmp_path / "huge.dfm.yaml")
    assert "larger than" in fault.message


def test_thousands_of_mistakes(write):
    names = "".join(f"  b.o{n}: {{}}\n" for n in range(5000))
    used = "".join(f"      b.x{n}: l.b\n" for n in range(5000))
    faults = faults_of(write(f"dfm: 1.0.0\noperations:\n{names}sites:\n  us:\n    interface:\n{used}"))
    assert len(faults) == 301
    assert "there is no operation 'b.x299'" in faults[299].message
    assert "there are more mistakes" in faults[300].message


@pytest.mark.parametrize("number", ["9" * 400, "1:" * 2000 + "1.5", "9" * 5000])
def test_numbers_beyond_all_bounds(write, number):
    text = f"dfm: 1.0.0\nsites: {{us: {{capacity: {number}, send_cost: {{us: {{bandwidth: {number}}}}}}}}}\n"
    faults = faults_of(write(text))
    assert ["expected a" in fault.message for fault in faults] == [True, True]
    assert max(len(str(fault)) for fault in faults) < 500
    FederationConfig.load(write("dfm: 1.0.0\nsites: {us: {info: {x: 1e400}}}\n"))
    if len(number) > 400:
        (fault,) = faults_of(write(f"dfm: 1.0.0\nsites: {{us: {{info: {{x: {number}}}}}}}\n"))
        assert len(str(fault)) < 500


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(?=x)y", "look-around"), ("(", "unclosed group"), ("(x{1000}){1000}", "too large")],
)
def test_patterns_that_cannot_be_matched_in_linear_time(write, pattern, reason):
    (fault,) = faults_of(write(f"dfm: 1.0.0\noperations: {{a.B: {{parameters: {{p: {{pattern: '{pattern}'}}}}}}}}\n"))
    assert reason in fault.message
    assert pattern in fault.message
    assert fault.location is not None
    assert fault.location.line == 2

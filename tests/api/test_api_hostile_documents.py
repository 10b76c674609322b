"""Documents from people who mean harm, or who made mistakes: refused whole, and nothing is imported or run."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Fault, Pipeline, PipelineError
from dfmesh.api import If, Yield
from dfmesh.api.document_marks import MAX_BLOCKS

TRAP = "booby_trapped_module"


def node(ident: Any) -> dict[str, Any]:
    return {"tag": "@dfm-node", "ident": ident}


def result(value: Any = 1, ident: Any = 0, **fields: Any) -> dict[str, Any]:
    return {"dfm_class_name": "dfmesh.Yield", "dfm_node_id": node(ident), "value": value, **fields}


def call(ident: Any = 0, name: str = "calc.Add", **fields: Any) -> dict[str, Any]:
    return {"dfm_class_name": name, "dfm_node_id": node(ident), **fields}


def construct(name: str, ident: Any = 0, **fields: Any) -> dict[str, Any]:
    return call(ident, f"dfmesh.{name}", **fields)


def faults_of(document: Any) -> tuple[Fault, ...]:
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(PipelineError) as raised:
        Pipeline.load(text)
    return raised.value.faults


def faults_in(*body: Any) -> list[tuple[str, str]]:
    return [(fault.path, fault.message) for fault in faults_of({"dfm_body": list(body)})]


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a mark if anything imports it."""
    mark = tmp_path / "sprung"
    (tmp_path / f"{TRAP}.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Bomb: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    return mark


HOSTILE_NAMES = [
    f"{TRAP}.Bomb",
    f"{TRAP}.fed.api.Bomb",
    f"nv_dfm_core.{TRAP}.Bomb",
    f"dfmesh.{TRAP}.Yield",
    "os.system",
    "builtins.eval",
    "dfmesh.session.Session",
    "dfmesh.engine.job_runner.JobRunner",
    "nv_dfm_core.gen.modgen.ir.AdapterCallStmt",
    "nv_dfm_core.api.PickledObject",
    "__import__('os').system('true')",
    "dfmesh.",
    "nv_dfm_core.",
    ".",
    "..",
    "a\x00b",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_class_name_imports_nothing(name: str, trap: Path) -> None:
    before = set(sys.modules)
    text = json.dumps({"dfm_body": [call(0, name, value=1, site=name, provider=name), result(name, 1, place=name)]})
    faults: tuple[Fault, ...] = ()
    try:
        read = Pipeline.load(text)
    except PipelineError as error:
        faults = error.faults
    assert all(fault.path.startswith("dfm_body[0]") for fault in faults)
    if not faults:
        assert read.body[0].arguments == {"value": 1}
        assert json.loads(read.model_dump_json())["dfm_body"][0]["value"] == 1
    assert not trap.exists()
    assert not {module for module in set(sys.modules) - before if not module.startswith("dfmesh")}


@pytest.mark.parametrize("tag", ["object", "instance", "pickle", "module", f"{TRAP}.Bomb", "enum", "numpy.ndarray"])
@pytest.mark.parametrize("payload", [[f"{TRAP}.Bomb", {}], {"": f"{TRAP}.Bomb"}, f"{TRAP}.Bomb", None, 7])
def test_a_tagged_value_imports_nothing(tag: str, payload: Any, trap: Path) -> None:
    [(path, _)] = faults_in(result({"@value": tag, "of": payload}))
    assert path == "dfm_body[0].value"
    assert not trap.exists()
    assert TRAP not in sys.modules


def test_names_and_selectors_are_data(ops: Any) -> None:
    odd = "__class__.__bases__[0]'); import os #"
    text = json.dumps(
        {
            "dfm_body": [
                call(odd, site=odd, a={"tag": "@dfm-place-param", "place": odd}),
                result({"id": node(odd), "sel": odd, "issubs": False}, 1, place=odd),
            ],
            "name": odd,
        }
    )
    read = Pipeline.load(text)
    assert Pipeline.load(read.model_dump_json()).name == odd


@pytest.mark.parametrize(
    "text", ["{", "{]", '{"dfm_body": [}', '{"a": 1} {', "{'a': 1}", '{"dfm_body": [NaN, Infinity], "x": tru}']
)
def test_what_is_not_json_says_where(text: str) -> None:
    [fault] = faults_of(text)
    assert fault.location is not None
    assert fault.location.line == 1


@pytest.mark.parametrize("depth", [MAX_BLOCKS + 1, 2_000, 100_000])
def test_deep_nesting(depth: int) -> None:
    inner = (
        '{"dfm_class_name": "dfmesh.If", "dfm_node_id": {"tag": "@dfm-node", "ident": %d}, "cond": true, "dfm_body": ['
    )
    text = '{"dfm_body": [' + "".join(inner % number for number in range(depth)) + "]}" * depth + "]}"
    assert len(faults_of(text)) == 1
    deep = 2 * depth  # values may be nested deeper than blocks
    lists = '{"dfm_body": [' + json.dumps(result()).replace("1", "[" * deep + "]" * deep) + "]}"
    assert len(faults_of(lists)) == 1
    logic = '{"operator": "not", "exp": ' * deep + "true" + "}" * deep
    branch = json.dumps(construct("If", cond=0, dfm_body=[])).replace('"cond": 0', f'"cond": {logic}')
    assert len(faults_of('{"dfm_body": [' + branch + "]}")) == 1


def test_as_many_blocks_as_allowed() -> None:
    body: list[Any] = [result()]
    for number in range(1, MAX_BLOCKS):
        body = [construct("If", number, cond=True, dfm_body=body)]
    read = Pipeline.load(json.dumps({"dfm_body": body}))
    assert sum(isinstance(statement, If) for statement in read.statements()) == MAX_BLOCKS - 1


@pytest.mark.parametrize(
    ("ident", "message"),
    [
        (-1, "between 0 and"),
        (10**400, "between 0 and"),
        (1.0, "a text or a whole number"),
        (True, "a text or a whole number"),
        (None, "a text or a whole number"),
        ([1], "a text or a whole number"),
        ({}, "a text or a whole number"),
        ("", "not empty"),
        ("%1", "do not start with %"),
        ("x" * 100_000, "more than 200 characters"),
        ("\ud800", "not Unicode"),
    ],
)
def test_ids_that_cannot_be_one(ident: Any, message: str) -> None:
    [(path, found)] = faults_in(result(ident=ident))
    assert path == "dfm_body[0].dfm_node_id.ident"
    assert message in found
    assert len(found) < 300


def test_numbers_that_python_does_not_read() -> None:
    [fault] = faults_of('{"dfm_body": [' + "9" * 10_000 + "]}")
    assert "4300" in fault.message or "expected a statement" in fault.message


def test_duplicate_ids_and_references_to_nowhere() -> None:
    found = faults_in(
        result(ident="x"),
        result({"k": [{"id": node("nowhere")}]}, ident="x"),
        result(ident=3, dfm_after=node("y")),
        result(ident=4, dfm_after=[node("x"), node(99)]),
    )
    assert found == [
        ("dfm_body[1].dfm_node_id", "the id 'x' is used twice"),
        ("dfm_body[1].value.k[0].id", "there is no statement 'nowhere'"),
        ("dfm_body[2].dfm_after", "there is no statement 'y'"),
        ("dfm_body[3].dfm_after[1]", "there is no statement '%99'"),
    ]


WRONG: list[tuple[Any, str, str]] = [
    (5, "dfm_body[0]", "expected a statement, found 5"),
    ({}, "dfm_body[0]", "the key 'dfm_class_name' is missing"),
    ({"dfm_class_name": "dfmesh.Yield", "value": 1}, "dfm_body[0]", "the key 'dfm_node_id' is missing"),
    ({"dfm_class_name": 3, "dfm_node_id": node(0)}, "dfm_body[0].dfm_class_name", "expected text, found 3"),
    (construct("Yeild"), "dfm_body[0].dfm_class_name", "there is no construct"),
    (construct("Yield"), "dfm_body[0]", "the key 'value' is missing"),
    (result(plaec="x"), "dfm_body[0].plaec", "this key is not known here"),
    (result(place=7), "dfm_body[0].place", "expected text, found 7"),
    (result(place=""), "dfm_body[0].place", "expected 1 to 1000 characters, found 0"),
    (result(multiuse="yes"), "dfm_body[0].multiuse", "expected true or false"),
    (result(dfm_after="x"), "dfm_body[0].dfm_after", "expected the id of a statement"),
    (result({"id": node(0), "sel": [1]}), "dfm_body[0].value.sel", "expected text, found [1]"),
    (result({"id": node(0), "sel": True}), "dfm_body[0].value.sel", "expected text, found true"),
    (result({"id": node(0), "selector": 1}), "dfm_body[0].value.selector", "this key is not known here"),
    (result({"id": node(0), "selectors": 1}), "dfm_body[0].value.selectors", "expected a list of selectors"),
    (result({"id": node(0), "port": "done"}), "dfm_body[0].value.port", "expected 'value' or 'index'"),
    (result({"tag": "@dfm-strange"}), "dfm_body[0].value", "the mark '@dfm-strange' is not known"),
    (result({"tag": "@dfm-place-param"}), "dfm_body[0].value.place", "expected text, found nothing"),
    (result({"tag": "@dfm-place-param", "place": "x", "y": 1}), "dfm_body[0].value.y", "this key is not known here"),
    (result({"@value": "dict", "of": [1]}), "dfm_body[0].value", "a dictionary has a key without a value"),
    (result({"@value": "dict", "of": [[], 1]}), "dfm_body[0].value", "a dictionary has a key that cannot be one"),
    (result({"@value": "int", "of": "zz"}), "dfm_body[0].value", "cannot be rebuilt"),
    (construct("If", cond=True), "dfm_body[0]", "the key 'dfm_body' is missing"),
    (construct("If", cond=True, dfm_body={}), "dfm_body[0].dfm_body", "expected a list of statements"),
    (
        construct("If", cond={"operator": "xor", "exp": []}, dfm_body=[]),
        "dfm_body[0].cond.operator",
        "the operator 'xor' is not known",
    ),
    (
        construct("If", cond={"operator": "==", "left": 1}, dfm_body=[]),
        "dfm_body[0].cond",
        "the condition has no 'right'",
    ),
    (construct("If", cond={"operator": "and"}, dfm_body=[]), "dfm_body[0].cond.exp", "expected a list of conditions"),
    (construct("ForEach", seq=[], window="3", dfm_body=[]), "dfm_body[0].window", "expected a whole number, found '3'"),
    (construct("ForEach", seq=[], on_error="panic", dfm_body=[]), "dfm_body[0].on_error", "expected 'fail' or"),
    (construct("Collect", loop=node(0), value=1), "dfm_body[0].loop", "names no loop that stands before"),
    (construct("Reduce", loop=node(0), value=1), "dfm_body[0]", "the key 'operation' is missing"),
    (construct("_WriteToCache", value=1), "dfm_body[0]", "it stands in no TryFromCache block"),
    (call(retries="2"), "dfm_body[0].retries", "expected a whole number, found '2'"),
    (call(timeout=[]), "dfm_body[0].timeout", "expected a number, found []"),
    (call(site=3), "dfm_body[0].site", "expected text, found 3"),
    (call(site={"tag": "@dfm-best-of", "sites": "a"}), "dfm_body[0].site.sites", "expected a list, found 'a'"),
    (call(retries=10**30), "dfm_body[0].retries", "numbers beyond 64 bits"),
    (call(timeout=10**30), "dfm_body[0].timeout", "numbers beyond 64 bits"),
    (construct("ForEach", seq=[], window=10**30, dfm_body=[]), "dfm_body[0].window", "numbers beyond 64 bits"),
    (result({"id": node(0), "sel": -(10**30)}), "dfm_body[0].value.sel", "numbers beyond 64 bits"),
    (result(place="a\ud800"), "dfm_body[0].place", "is not Unicode"),
    (result({"id": node(0), "sel": "a\ud800"}), "dfm_body[0].value.sel", "is not Unicode"),
    (result({"tag": "@dfm-place-param", "place": "a\ud800"}), "dfm_body[0].value.place", "is not Unicode"),
    (call(provider=[]), "dfm_body[0].provider", "expected text, found []"),
    (call(after=1), "dfm_body[0].after", "this key is not known here"),
    (call(dfm_extra=1), "dfm_body[0].dfm_extra", "this key is not known here"),
    (call(**{"": 1}), "dfm_body[0].''", "this key is not known here"),
]


@pytest.mark.parametrize(("statement", "path", "message"), WRONG, ids=[f"{path}: {text}" for _, path, text in WRONG])
def test_what_is_wrong_says_where(statement: Any, path: str, message: str) -> None:
    found = faults_in(statement)
    assert any(at == path and message in text for at, text in found), found


def test_all_faults_are_reported_at_once() -> None:
    found = faults_in(*(statement for statement, _, _ in WRONG))
    for index, (_, path, message) in enumerate(WRONG):
        at = path.replace("dfm_body[0]", f"dfm_body[{index}]", 1)
        assert any(where == at and message in text for where, text in found) or "loop" in message, (at, message)


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({}, "", "the key 'dfm_body' is missing"),
        ({"dfm_body": 1}, "dfm_body", "expected a list of statements"),
        ({"dfm_body": [], "mode": "destroy"}, "mode", "expected 'execute' or 'discovery'"),
        ({"dfm_body": [], "name": 1}, "name", "expected text"),
        ({"dfm_body": [], "api_version": 1}, "api_version", "expected text"),
        ({"dfm_body": [], "targets": 1}, "targets", "this key is not known here"),
        ('{"dfm_body": [], "dfm_body": [1]}', "", "the key 'dfm_body' stands twice"),
    ],
)
def test_what_is_wrong_with_the_pipeline_itself(document: Any, path: str, message: str) -> None:
    [fault] = faults_of(document)
    assert fault.path == path
    assert message in fault.message


def test_broken_documents_never_give_another_error() -> None:
    """Anything done to a good document gives a pipeline or a PipelineError."""
    good = json.loads((Path(__file__).parent / "dfm_documents" / "calc.json").read_text())
    junk: list[Any] = [None, True, -1, 10**30, 1.5, "", "x", "%", [], {}, node(0), {"id": node(1)}, {"tag": "@dfm-x"}]
    junk += [
        {"operator": "=="},
        {"operator": "not"},
        {"@value": "tuple"},
        {"@value": []},
        {"@value": "dict", "of": [{}, 1]},
    ]
    outcomes = {"read": 0, "refused": 0}
    for seed in range(1500):
        chance = random.Random(seed)
        document = json.loads(json.dumps(good))
        for _ in range(chance.randint(1, 3)):
            _damage(document, chance, junk)
        try:
            assert isinstance(Pipeline.load(json.dumps(document)), Pipeline)
            outcomes["read"] += 1
        except PipelineError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 50, outcomes


def _damage(document: Any, chance: random.Random, junk: list[Any]) -> None:
    places = list(_places(document))
    holder, key = chance.choice(places)
    match chance.randrange(3):
        case 0:
            holder[key] = chance.choice(junk)
        case 1:
            del holder[key]
        case 2:
            other, other_key = chance.choice(places)
            holder[key] = json.loads(json.dumps(other[other_key]))


def _places(document: Any) -> Any:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


def test_large_documents_are_read() -> None:
    body = [result(list(range(1000)), number) for number in range(100)]
    read = Pipeline.load(json.dumps({"dfm_body": body}))
    assert sum(isinstance(statement, Yield) for statement in read.body) == 100


@pytest.mark.timeout(20)
def test_what_is_no_file_of_a_sensible_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)  # takes no room
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path / "huge", tmp_path, tmp_path / "none", "a\0b", "\ud800"):
        with pytest.raises(PipelineError, match="cannot read") as raised:
            Pipeline.load(path)
        assert len(raised.value.faults) == 1
        str(raised.value).encode()

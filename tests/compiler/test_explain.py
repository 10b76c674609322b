"""What `explain` says, and that it agrees with the compiler."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from dfmesh import BestOf, Federation, ForEach, Pipeline, TryFromCache, Yield
from dfmesh.compiler import explain
from dfmesh.compiler.quantity_text import bytes_text, seconds_text

FEDERATION = """
dfm: 1.0.0
operations:
  t.Big: {parameters: {}}
  t.Use:
    parameters: {x: {}, y: {}}
    required: [x]
  t.Only:
    parameters: {x: {}}
    required: [x]
sites:
  app:
    interface:
      "#/operations/t.Use": {adapter: m.f, compute_cost: {fixed_time: 1, fixed_size: 10}}
  a:
    interface:
      "#/operations/t.Big": {adapter: m.f, compute_cost: {fixed_time: 2, fixed_size: 4000000000}}
      "#/operations/t.Use": {adapter: m.f, compute_cost: {fixed_time: 1, fixed_size: 10}}
    send_cost:
      app: {fixed_time: 0, bandwidth: 100000000}
  b:
    interface:
      "#/operations/t.Only": {adapter: m.f}
      "#/operations/t.Use": {adapter: m.f, compute_cost: {fixed_time: 5, fixed_size: 10}}
"""


@pytest.fixture
def federation(tmp_path):
    path = tmp_path / "t.dfm.yaml"
    path.write_text(dedent(FEDERATION), "utf-8")
    return Federation.load(path)


def write_pipeline(federation):
    t = federation.ops.t
    with Pipeline(name="explained") as pipeline:
        big = t.Big()
        used = t.Use(x=big, node_id="used")
        Yield(used, place="small")
        Yield(t.Use(x=used, y=used, site="app"), place="pinned")
        Yield(t.Only(x=used), place='odd "name" <b>')
    return pipeline


def test_rows_say_where_and_why(federation):
    explanation = explain(federation.compile(write_pipeline(federation)))
    rows = {row.statement: row for row in explanation.rows}
    assert [(row.site, row.why) for row in explanation.rows[:2]] == [
        ("a", "the only site that offers it"),
        ("a", "its 4 GB input from %0 is here"),
    ]
    used = rows["used"]
    assert used.next_best is not None
    assert used.next_best.site == "app"
    assert used.next_best.seconds == pytest.approx(40, abs=0.1)
    assert used.next_best.bytes_moved == pytest.approx(4e9, rel=1e-6)
    assert used.location.endswith(f"test_explain.py:{write_pipeline.__code__.co_firstlineno + 4}")
    assert (used.seconds, used.size) == (1, 10)
    assert rows["%2"].why == "you chose the site"
    assert rows["%1"].why == "beside t.Use used"
    assert rows["%1"].place == "small"


def test_links_count_each_value_once_and_agree_with_the_estimate(federation):
    compiled = federation.compile(write_pipeline(federation))
    explanation = explain(compiled)
    links = {(link.source, link.destination): link for link in explanation.links}
    # `used` is taken twice at app, and yielded from a, yet as a value it is sent there once
    assert links["a", "app"].values == (1, 2)
    assert links["a", "b"].size == 10
    assert explanation.links[-1].destination == "client"
    between = sum(link.size for link in explanation.links if link.destination != "client")
    assert between == compiled.placement.estimate.bytes_moved == explanation.bytes_moved
    assert explanation.seconds == compiled.placement.estimate.seconds


def test_other_reasons(federation):
    t = federation.ops.t
    with Pipeline() as pipeline:
        with ForEach([1, 2]) as number:
            Yield(t.Use(x=number))
        t.Only(x=1, site=BestOf(["a", "b"]))
        Yield(t.Use(x=1, site=BestOf(["b", "a"])))
    rows = explain(federation.compile(pipeline)).rows
    why = {(row.operation, row.site): row.why for row in rows}
    assert why["t.Only", "b"] == "the only one of your sites that offers it"
    assert why["t.Use", "a"] == "computes fastest here"
    assert "t.Use" in {row.operation for row in rows if row.site == "app"}


def test_the_same_pipeline_gives_the_same_text(federation):
    texts = {explain(federation.compile(write_pipeline(federation))).to_json() for _ in range(3)}
    assert len(texts) == 1


def test_text_form(federation):
    text = explain(federation.compile(write_pipeline(federation))).to_text()
    lines = text.splitlines()
    assert lines[0].split() == ["statement", "operation", "site", "why", "seconds", "size", "next", "best", "where"]
    assert "app: +40 s, +4 GB" in lines[2]
    assert "a -> b: 10 B in 1 value" in lines
    assert "no choice of sites costs less" in text


def test_json_form(federation):
    document = json.loads(explain(federation.compile(write_pipeline(federation))).to_json())
    assert document["rows"][1]["next_best"]["site"] == "app"
    assert document["rows"][1]["inputs"] == [[0, 4e9]]
    assert document["exact"] is True


def test_mermaid_form(federation):
    text = explain(federation.compile(write_pipeline(federation))).to_mermaid()
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "flowchart LR"
    assert [line for line in lines if line.startswith("subgraph")] == [
        'subgraph s0["app"]',
        'subgraph s1["a"]',
        'subgraph s2["b"]',
    ]
    assert "n0 --> n1" in lines
    assert 'n1 -->|"10 B"| n3' in lines
    assert any("odd #quot;name#quot; #lt;b#gt;" in line for line in lines)


def test_notebooks_get_escaped_html(federation):
    html = explain(federation.compile(write_pipeline(federation)))._repr_html_()
    assert html.count("<tr>") == 1 + 7
    assert "-&gt;" in html


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (999.7, "1 kB"), (1024, "1.02 kB"), (4e9, "4 GB"), (-2e6, "-2 MB")]
)
def test_bytes(size, text):
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.002, "2 ms"),
        (0.9999, "1 s"),
        (59.94, "59.9 s"),
        (310, "5 min 10 s"),
        (7200, "2 h 0 min"),
        (-0.5, "-500 ms"),
    ],
)
def test_seconds(seconds, text):
    assert seconds_text(seconds) == text


def test_the_steps_of_a_cache_are_told_apart(federation):
    t = federation.ops.t
    with Pipeline() as pipeline:
        with TryFromCache(key="k", site="app", node_id="cached") as cached:
            cached.cache(t.Use(x=1))
        Yield(cached)
        with TryFromCache(key="l", site=BestOf(["a"]), node_id="listed") as listed:
            listed.cache(1)
    explanation = explain(federation.compile(pipeline))
    found = [(row.label, row.site, row.why) for row in explanation.rows if row.operation == "TryFromCache"]
    assert found == [
        ("TryFromCache (look up)", "app", "you chose the site"),
        ("TryFromCache (store)", "app", "beside its look-up"),
        ("TryFromCache (look up)", "a", "the only one of your sites that offers it"),
        ("TryFromCache (store)", "a", "beside its look-up"),
    ]
    assert "TryFromCache (store)" in explanation.to_text()


def test_the_steps_of_a_loop_are_told_apart(federation):
    t = federation.ops.t
    with Pipeline() as pipeline:
        with ForEach([1, 2]) as number:
            t.Use(x=number)
        Yield(number.collect([number, number]))
        t.Use(x=3, after=number)
    rows = explain(federation.compile(pipeline)).rows
    labels = [(row.statement, row.label) for row in rows]
    assert len(set(labels)) == len(labels)
    assert {"ForEach", "ForEach (iteration ends)", "ForEach (loop ends)", "Collect (value)", "Collect"} <= {
        label for _, label in labels
    }


@pytest.mark.parametrize(
    ("faster", "slower", "why"),
    [(1, 1.0005, "hardly matters"), (0, 0.0005, "hardly matters"), (1, 1.5, "computes fastest here")],
)
def test_tiny_differences_are_no_reason(tmp_path, faster, slower, why):
    path = tmp_path / "t.dfm.yaml"
    path.write_text(
        "dfm: 1.0.0\noperations: {t.Use: {parameters: {x: {}}}}\nsites:\n"
        f"  b: {{interface: {{t.Use: {{adapter: m.f, compute_cost: {{fixed_time: {slower}}}}}}}}}\n"
        f"  a: {{interface: {{t.Use: {{adapter: m.f, compute_cost: {{fixed_time: {faster}}}}}}}}}\n"
        "  app: {}\n"
    )
    federation = Federation.load(path)
    with Pipeline() as pipeline:
        federation.ops.t.Use(x=1)
    (row,) = explain(federation.compile(pipeline)).rows
    assert (row.site, row.why) == ("a", why)

"""The commands as users run them: each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_process import dfmesh, start

import dfmesh as package
from dfmesh import Federation
from dfmesh.cli import main
from dfmesh.values import from_json

HEAVY = [
    "numpy",
    "pyarrow",
    "pydantic",
    "asyncio",
    "uvloop",
    "rich",
    "yaml",
    "msgspec",
    "dfmesh.engine",
    "dfmesh.session",
    "dfmesh.config",
    "dfmesh.values",
]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"], ["demo", "--help"]])
def test_help_loads_nothing_heavy(arguments, tmp_path):
    script = (
        "import sys\nfrom dfmesh.cli import main\ntry:\n    main()\nfinally:\n"
        f"    print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout
    # typer itself takes pydantic as soon as a command is named
    assert set(done.stderr.split()) <= ({"pydantic"} if len(arguments) > 1 else set())


def test_version(tmp_path):
    assert dfmesh("--version", cwd=tmp_path).stdout == f"dfmesh {package.__version__}\n"


def test_targets_are_those_there_are():
    from dfmesh.cli.app import TargetName
    from dfmesh.targets import TARGETS

    assert [target.value for target in TargetName] == list(TARGETS)


# validate


def test_validate_shows_who_offers_what(shop):
    done = dfmesh("validate", "shop.dfm.yaml", cwd=shop)
    assert done.returncode == 0
    assert "shop.dfm.yaml is fine: federation 'shop', 3 sites, 5 operations" in done.stdout
    row = next(line for line in done.stdout.splitlines() if "shop.Double" in line)
    assert row.count("✓") == 2


def test_validate_names_providers(shop):
    from dfmesh.cli.validating import offers_table

    text = (shop / "shop.dfm.yaml").read_text("utf-8")
    text += (
        '    providers:\n      x:\n        interface:\n          "#/operations/shop.Make": {adapter: cli_shop.make}\n'
    )
    (shop / "shop.dfm.yaml").write_text(text, "utf-8")
    table = offers_table(Federation.load(shop / "shop.dfm.yaml"))
    assert list(table.columns[3].cells) == ["", "✓", "✓", "", "x"]


def test_validate_lists_every_fault_with_its_place(shop):
    text = (shop / "shop.dfm.yaml").read_text("utf-8").replace("n: {type: integer}", "n: {type: nonsense}")
    (shop / "shop.dfm.yaml").write_text(text.replace("sites:", "sitse: {}\nsites:"), "utf-8")
    done = dfmesh("validate", "shop.dfm.yaml", cwd=shop)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "shop.dfm.yaml has 2 mistakes" in done.stderr
    assert sum(line.startswith("  shop.dfm.yaml:") for line in done.stderr.splitlines()) == 2
    event = json.loads(dfmesh("validate", "shop.dfm.yaml", "--json", cwd=shop).stdout)
    assert event["kind"] == "ConfigError"
    assert all(fault["line"] and fault["column"] for fault in event["faults"])


def test_validate_checks_a_pipeline(shop):
    done = dfmesh("validate", "shop.dfm.yaml", "shopping.py", cwd=shop)
    assert done.returncode == 0
    assert "shopping.py is fine: 4 statements, parameters n" in done.stdout
    faulty = dfmesh("validate", "shop.dfm.yaml", "shopping.py:faulty", cwd=shop)
    assert faulty.returncode == 1
    line = PLACES["faulty"]
    assert f"shopping.py:{line + 3}" in faulty.stderr
    assert f"shopping.py:{line + 4}" in faulty.stderr


PLACES = {"faulty": 21, "failing": 13}
"""Line of `def` of the functions of shopping.py."""


def test_validate_says_what_is_there_as_json(shop):
    event = json.loads(dfmesh("validate", "shop.dfm.yaml", "--json", cwd=shop).stdout)
    assert event["ok"]
    assert event["operations"]["shop.Double"] == ["a", "b"]


# explain


def test_explain_as_table_json_and_mermaid(shop):
    table = dfmesh("explain", "shop.dfm.yaml", "shopping.py", cwd=shop).stdout
    assert next(line for line in table.splitlines() if "shop.Double" in line).split()[:3] == ["%2", "shop.Double", "b"]
    document = json.loads(dfmesh("explain", "shop.dfm.yaml", "shopping.py", "--json", cwd=shop).stdout)
    assert {row["site"] for row in document["rows"] if row["operation"] == "shop.Numbers"} == {"a"}
    assert dfmesh("explain", "shop.dfm.yaml", "shopping.py", "--mermaid", cwd=shop).stdout.startswith("flowchart LR\n")
    both = dfmesh("explain", "shop.dfm.yaml", "shopping.py", "--json", "--mermaid", cwd=shop)
    assert both.returncode == 2


def test_explain_for_another_objective(shop):
    done = dfmesh("explain", "shop.dfm.yaml", "shopping.py", "--objective", "bytes", "--json", cwd=shop)
    document = json.loads(done.stdout)
    assert document["objective"] == "bytes"
    assert document["bytes_moved"] >= 0
    assert dfmesh("explain", "shop.dfm.yaml", "shopping.py", "--objective", "luck", cwd=shop).returncode == 2


def test_a_document_is_a_pipeline_too(shop):
    sys.path.insert(0, str(shop))
    try:
        import shopping
    finally:
        sys.path.remove(str(shop))
    shopping.build(Federation.load(shop / "shop.dfm.yaml")).save(shop / "shopping.json")
    done = dfmesh("explain", "shop.dfm.yaml", "shopping.json", cwd=shop)
    assert done.returncode == 0
    assert "shop.Double" in done.stdout


@pytest.mark.parametrize(
    ("pipeline", "code", "message"),
    [
        ("nothing.py", 2, "there is no file nothing.py"),
        ("shopping.py:missing", 2, "shopping.py has no 'missing'"),
        ("shopping.py:number", 1, "the variable 'number' is no Pipeline but of type int"),
        ("shopping.py:raising", 1, "KeyError: 'key'"),
        ("cli_shop.py", 1, "neither a function `build(federation)` nor a variable `pipeline`"),
        ("shop.dfm.yaml", 1, "not"),
    ],
)
def test_what_is_no_pipeline_is_said_without_traceback(shop, pipeline, code, message):
    done = dfmesh("explain", "shop.dfm.yaml", pipeline, cwd=shop)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert f"{os.sep}dfmesh{os.sep}" not in done.stderr


@pytest.mark.parametrize(
    "command", [["validate"], ["explain", "shopping.py"], ["costs"], ["run", "shopping.py"], ["up"]], ids=lambda c: c[0]
)
def test_a_federation_file_that_is_not_there_is_wrong_usage(shop, command):
    name, *pipeline = command
    done = dfmesh(name, "shops.dfm.yaml", *pipeline, cwd=shop)
    assert done.returncode == 2
    assert done.stderr == "there is no file shops.dfm.yaml; FILE is a federation file, usually *.dfm.yaml\n"


def test_an_exception_of_the_users_code_names_the_users_line(shop):
    done = dfmesh("explain", "shop.dfm.yaml", "shopping.py:raising", cwd=shop)
    assert '  shopping.py:44: return {}["key"]' in done.stderr.splitlines()


# run


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_run_writes_results_and_index(shop, target):
    arguments = ["run", "shop.dfm.yaml", "shopping.py", "--param", "n=3", "--out", "out", "--target", target]
    done = dfmesh(*arguments, cwd=shop)
    assert done.returncode == 0, done.stderr
    assert [json.loads((shop / f"out/doubled/0000-000{i}.json").read_text()) for i in range(3)] == [0, 2, 4]
    index = json.loads((shop / "out/index.json").read_text("utf-8"))
    assert index["status"] == "finished"
    assert [entry["file"] for entry in index["results"]] == [f"doubled/0000-000{i}.json" for i in range(3)]
    assert index["sites"]["b"]["operations"]["shop.Double"]["done"] == 3
    assert index["bytes_between_sites"] > 0
    assert index["first_result_seconds"] <= index["seconds"]
    assert "out/index.json: 3 results" in done.stdout
    assert "shop.Double" in done.stderr  # no terminal: the table, once
    assert "\x1b" not in done.stderr


def test_each_type_gets_its_format(shop):
    done = dfmesh("run", "shop.dfm.yaml", "shopping.py:things", "--out", "out", "--target", "inproc", cwd=shop)
    assert done.returncode == 0, done.stderr
    out = shop / "out"
    assert (out / "png/0000.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "bytes/0000.bin").read_bytes() == b"abc"
    assert (out / "text/0000.txt").read_text() == "hello"
    assert pq.read_table(out / "table/0000.parquet").to_pydict() == {"x": [1, 2]}
    assert np.load(out / "array/0000.npy").tolist() == [0, 1, 2]
    assert from_json(json.loads((out / "tuple/0000.json").read_text())) == (1, {2: "two"})


def test_json_lines(shop):
    arguments = ["run", "shop.dfm.yaml", "shopping.py", "--param", "n=2", "--out", "o", "--target", "inproc", "--json"]
    done = dfmesh(*arguments, cwd=shop)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events if event["event"] != "progress"] == [
        "submitted",
        "result",
        "result",
        "end",
    ]
    assert {event["file"] for event in events if event["event"] == "result"} == {
        "doubled/0000-0000.json",
        "doubled/0000-0001.json",
    }
    assert events[-1]["status"] == "finished"
    assert done.stderr == ""


def test_parameter_sets_from_a_file(shop):
    (shop / "sets.json").write_text('[{"n": 1}, {"n": 2}]')
    arguments = ["run", "shop.dfm.yaml", "shopping.py", "--params", "sets.json", "--out", "out", "--target", "inproc"]
    assert dfmesh(*arguments, cwd=shop).returncode == 0
    index = json.loads((shop / "out/index.json").read_text("utf-8"))
    assert [entry["frame"] for entry in index["results"]] == [[0, 0], [1, 0], [1, 1]]


def test_a_failed_job_says_what_and_where_and_keeps_the_rest(shop):
    arguments = ["run", "shop.dfm.yaml", "shopping.py:failing", "--out", "out", "--target", "inproc"]
    done = dfmesh(*arguments, cwd=shop)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert f"  shopping.py:{PLACES['failing'] + 4}: shop.Fail (%2) at site b, frame 0" in done.stderr
    assert "    ValueError: no more bread" in done.stderr
    index = json.loads((shop / "out/index.json").read_text("utf-8"))
    assert index["status"] == "failed"
    assert index["errors"][0]["kind"] == "ValueError"
    assert json.loads((shop / "out/fine/0000.json").read_text()) == 42
    lines = dfmesh(*arguments, "--json", cwd=shop).stdout.splitlines()
    assert json.loads(lines[-1])["event"] == "end"
    assert json.loads(lines[-1])["errors"][0]["message"] == "no more bread"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 1, "the parameter 'n' is not given"),
        (["--param", "m=1", "--param", "n=1"], 1, "no parameter 'm'"),
        (["--param", "n"], 2, "write it as name=value"),
        (["--params", "missing.json"], 1, "cannot read parameters from missing.json"),
        (["--param", "n=1", "--homesite", "ap"], 2, "did you mean 'app'?"),
        (["--param", "n=1", "--target", "mars"], 2, "mars"),
    ],
)
def test_mistakes_are_found_before_any_site_starts(shop, arguments, code, message):
    done = dfmesh("run", "shop.dfm.yaml", "shopping.py", "--out", "out", *arguments, cwd=shop)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (shop / "out").exists()


def test_what_a_script_prints_is_not_among_the_output(shop):
    script = (shop / "shopping.py").read_text("utf-8")
    (shop / "shopping.py").write_text(f"print('loading')\n{script}", "utf-8")
    for command in ("validate", "explain", "simulate"):
        done = dfmesh(command, "shop.dfm.yaml", "shopping.py", "--json", cwd=shop)
        assert json.loads(done.stdout)
        assert done.stderr == "loading\n"


def test_a_script_that_is_loaded_for_its_pipeline_runs_no_job(shop):
    lines = ["", "federation = Federation.load('shop.dfm.yaml')", "shopping = build(federation)"]
    running = ["with federation.session('inproc') as session:", "    print('ran')"]
    text = "from dfmesh import Federation" + (shop / "shopping.py").read_text("utf-8") + "\n".join(lines)
    (shop / "script.py").write_text(
        "\n".join([text.replace("def build", "def make").replace("= build", "= make"), *running])
    )
    for command in ("explain", "validate", "simulate", "run"):
        done = dfmesh(command, "shop.dfm.yaml", "script.py", cwd=shop)
        assert (done.returncode, done.stdout) == (1, "")
        assert "script.py would run jobs while it is loaded\n  script.py:" in done.stderr
        assert 'if __name__ == "__main__":' in done.stderr
        given = ("--param", "n=2") if command in ("simulate", "run") else ()
        done = dfmesh(command, "shop.dfm.yaml", "script.py:shopping", *given, cwd=shop)
        assert (done.returncode, "ran\n" in done.stdout) == (0, False), done.stderr
    guarded = [f"    {line}" for line in running]
    text = (
        (shop / "script.py")
        .read_text()
        .replace("\n".join(running), "\n".join(['if __name__ == "__main__":', *guarded]))
    )
    (shop / "script.py").write_text(text)
    assert "shop.Double" in dfmesh("explain", "shop.dfm.yaml", "script.py:shopping", cwd=shop).stdout
    (shop / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    done = dfmesh("explain", "shop.dfm.yaml", "leaving.py", cwd=shop)
    assert (done.returncode, "leaving.py raised an exception" in done.stderr) == (1, True)


def test_a_script_in_place_of_the_federation_file(shop):
    done = dfmesh("run", "shopping.py", "shop.dfm.yaml", cwd=shop)
    assert (done.returncode, "the order is FILE PIPELINE" in done.stderr) == (2, True)


def test_a_directory_that_cannot_be_written_is_named(shop):
    (shop / "out").write_text("a file")
    arguments = ["run", "shop.dfm.yaml", "shopping.py", "--param", "n=1", "--out", "out", "--target", "inproc"]
    done = dfmesh(*arguments, cwd=shop)
    assert done.returncode == 2
    assert done.stderr == "--out out: out is no directory\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_ctrl_c_cancels_the_job_and_keeps_what_came(shop, target):
    arguments = ["run", "shop.dfm.yaml", "shopping.py:waiting", "--out", "out", "--target", target, "--json"]
    process = start(*arguments, cwd=shop)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "result":
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole foreground group
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert json.loads(out.splitlines()[-1])["status"] == "cancelled"
    index = json.loads((shop / "out/index.json").read_text("utf-8"))
    assert [entry["place"] for entry in index["results"]] == ["at once"]


def test_an_interrupt_while_the_command_line_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Loading(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "dfmesh.cli.app", Loading("dfmesh.cli.app"))
    with pytest.raises(SystemExit) as left:
        main()
    assert (left.value.code, capsys.readouterr().err) == (130, "interrupted\n")

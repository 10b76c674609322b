"""Discovery as a user meets it, on every target."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from dfmesh import (
    Advise,
    AdvisedDateRange,
    AdvisedLiteral,
    AdvisedOneOf,
    AdvisedSubsetOf,
    BestOf,
    Else,
    Federation,
    ForEach,
    If,
    Okay,
    Pipeline,
    PipelineError,
    PlaceParam,
    Yield,
)


def reading(ops: Any, **given: Any) -> Pipeline:
    arguments = {"model": Advise(), "variables": Advise(), "day": Advise(), **given}
    with Pipeline() as pipeline:
        Yield(ops.sky.Read(node_id="read", **arguments))
    return pipeline


def ask(session: Any, operation: Any, **arguments: Any) -> Any:
    timeout = arguments.pop("seconds", 10)
    with Pipeline() as pipeline:
        Yield(operation(node_id="it", **arguments))
    return session.discover(pipeline, timeout=timeout).nodes["it"]


# Which sites, which values


def test_sites_and_values_of_all_sites_are_merged(session: Any, ops: Any) -> None:
    node = session.discover(reading(ops)).nodes["read"]
    assert node.sites == ["north", "south"]
    assert node.fields["model"].values == ["gfs", "icon", "ifs"]
    assert node.fields["model"].sites_for("gfs") == ("north", "south")
    assert node.fields["model"].sites_for("ifs") == ("south",)
    assert node.fields["day"].sites_for("1995-03-02") == ("north", "east")
    assert node.fields["day"].sites_for("1995-03-31T23:00") == ("north", "south", "east")
    assert "does not offer sky.Read" in node.cannot["app"]


def test_an_advisor_that_raises_loses_nothing_else(session: Any, ops: Any) -> None:
    node = session.discover(reading(ops, level=Advise())).nodes["read"]
    assert "raised ConnectionError: the catalogue is down" in node.unsure["east"]
    assert "sky_adapters.py:" in node.unsure["east"]
    assert node.fields["model"].errors.keys() == {"east"}
    assert node.fields["model"].values == ["gfs", "icon", "ifs"]
    assert node.fields["level"].values == [0, 10, 100]
    assert node.fields["level"].sites_for(10) == ("north", "south", "east")
    assert "east" in node.fields["variables"].sites_for(["wind"])


def test_later_fields_are_asked_once_per_earlier_choice(session: Any, ops: Any) -> None:
    node = session.discover(reading(ops)).nodes["read"]
    tree = node.tree("north")
    assert tree.field == "model"
    assert [branch.advice for branch in tree.branches] == [AdvisedLiteral("gfs"), AdvisedLiteral("icon")]
    after = {value: tree.select(value) for value in ("gfs", "icon")}
    assert list(after["gfs"]) == [AdvisedSubsetOf(["wind", "rain"])]
    assert list(after["icon"]) == [AdvisedSubsetOf(["wind", "snow"])]
    assert after["gfs"].select(["rain"]).field == "day"
    # South has no advisor for the variables, and none that looks at the model: nothing to tell apart.
    assert [branch.advice for branch in node.tree("south").branches] == [AdvisedOneOf(["gfs", "ifs"])]
    assert Okay() in [option.advice for option in node.fields["variables"].options]


def test_choices_narrow_sites_and_values(session: Any, ops: Any) -> None:
    node = session.discover(reading(ops)).nodes["read"]
    chosen = node.select(model="icon")
    assert chosen.sites == ["north"]
    assert chosen.fields["variables"].sites_for(["snow"]) == ("north",)
    assert chosen.fields["variables"].sites_for(["rain"]) == ()
    assert chosen.cannot["south"] == "model: expected one of 'gfs', 'ifs', got 'icon'"
    assert node.select(model="gfs", variables=["snow"]).sites == ["south"]
    assert (
        "variables: expected some of 'wind', 'rain', got 'snow'"
        in node.select(model="gfs", variables=["snow"]).cannot["north"]
    )


def test_values_that_are_given_are_checked_by_each_site(session: Any, ops: Any) -> None:
    node = session.discover(reading(ops, model="icon", day="1995-03-16")).nodes["read"]
    assert node.sites == ["north"]
    assert "expected one of 'gfs', 'ifs', got 'icon'" in node.cannot["south"]
    assert node.fields["variables"].sites_for(["snow"]) == ("north",)
    assert node.asked == ("variables",)


def test_a_wrong_value_is_an_answer(session: Any, ops: Any) -> None:
    node = session.discover(reading(ops, model="gfs", variables=["wind"], day="1800-01-01")).nodes["read"]
    assert node.sites == []
    assert node.cannot["north"] == "day: expected a date from 1995-03-01 to 1995-03-31, got '1800-01-01'"


def test_parameters_and_references_count_as_open(session: Any, ops: Any) -> None:
    with Pipeline() as pipeline:
        read = ops.sky.Read(model=PlaceParam("m"), variables=Advise(), day="1995-03-16", node_id="read")
        Yield(ops.sky.Plot(data=read, projection=Advise(), node_id="plot"))
    result = session.discover(pipeline)
    assert result.nodes["read"].fields["model"].values == ["gfs", "icon", "ifs"]
    assert result.nodes["read"].asked == ("variables",)
    assert result.nodes["plot"].sites == ["app", "north"]
    assert result.nodes["plot"].fields["projection"].values == ["plate", "polar"]


def test_every_operation_is_answered_wherever_it_stands(session: Any, ops: Any) -> None:
    with Pipeline() as pipeline:
        with ForEach([1, 2]) as n:
            plot = ops.sky.Plot(data=n, projection="polar", node_id="in loop")
            with If(n > 1):
                ops.sky.Tune(speed=Advise(), colour=Advise(), node_id="in branch")
            with Else():
                ops.sky.Staged(region="alps", station=Advise(), node_id="in other branch")
        Yield(n.reduce(ops.sky.Merge, plot, node_id="fold"))
    result = session.discover(pipeline)
    assert {node.node_id: node.sites for node in result} == {
        "in loop": ["app", "north"],
        "in branch": ["north"],
        "in other branch": ["north"],
        "fold": ["north", "south"],
    }
    assert result["in other branch"].fields["station"].values == ["zugspitze", "sonnblick"]


def test_sites_named_by_the_user(session: Any, ops: Any) -> None:
    assert session.discover(reading(ops, site="south")).nodes["read"].sites == ["south"]
    assert session.discover(reading(ops, site=BestOf(["south", "east"]))).nodes["read"].sites == ["south"]
    assert session.discover(reading(ops, site=Advise())).nodes["read"].sites == ["north", "south"]
    pinned = session.discover(reading(ops, site="south")).nodes["read"]
    assert pinned.cannot["north"] == "the pipeline says site='south'"


def test_no_site_at_all_is_an_answer(session: Any, ops: Any) -> None:
    node = ask(session, ops.sky.Plot, data=1, projection="polar", site="south")
    assert node.sites == []
    assert node.cannot["south"] == "does not offer sky.Plot"
    assert node.cannot["east"] == "does not offer sky.Plot (but with provider='archive')"
    assert ask(session, ops.sky.Plot, data=1, projection="polar", provider="archive").sites == ["east"]


# Kinds of advice


def test_kinds_of_advice(session: Any, ops: Any) -> None:
    names = ("literal", "one", "several", "dates", "dictionary", "fine")
    node = ask(session, ops.sky.Options, **{name: Advise() for name in names})
    assert tuple(node.fields) == names
    assert node.fields["literal"].values == [{"a": (1, 2)}]
    assert [o.advice for o in node.fields["one"].options] == [
        AdvisedLiteral("x"),
        AdvisedDateRange("2001-01-01", "2001-12-31"),
    ]
    assert [o.advice for o in node.fields["several"].options] == [AdvisedSubsetOf(["p"]), AdvisedSubsetOf(["q"])]
    assert node.fields["dates"].sites_for("1995-03-20T23:59") == ("north",)
    assert node.fields["dates"].sites_for("1995-03-18") == ()  # begins before 6:00
    assert node.fields["dictionary"].sites_for({"unit": "K", "version": 2}) == ("north",)
    assert node.fields["dictionary"].sites_for({"unit": "F", "version": 2}) == ()
    assert node.fields["dictionary"].sites_for({"unit": "K", "version": 2, "more": 1}) == ()
    assert node.fields["fine"].sites_for(object()) == ("north",)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"literal": 1}, "literal: expected {'a': (1, 2)}, got 1"),
        ({"one": "y"}, "one: expected one of 'x', from 2001-01-01 to 2001-12-31, got 'y'"),
        ({"several": ["p", "r"]}, "several: expected some of 'p', 'q', got 'r'"),
        ({"dates": "soon"}, "dates: expected a date from 1995-03-18T06:00 to 1995-03-20, got 'soon'"),
        ({"dictionary": {"unit": "K"}}, "dictionary: expected the key 'version'"),
    ],
)
def test_each_kind_says_why_a_value_is_wrong(session: Any, ops: Any, given: dict[str, Any], why: str) -> None:
    assert ask(session, ops.sky.Options, **given).cannot["north"] == why


def test_values_that_fit_each_kind(session: Any, ops: Any) -> None:
    fitting = {
        "literal": {"a": (1, 2)},
        "one": "2001-06-01",
        "several": ["q"],
        "dates": "1995-03-19",
        "dictionary": {"unit": "C", "version": 2},
        "fine": [1],
    }
    assert ask(session, ops.sky.Options, **fitting).sites == ["north"]


def test_an_error_ends_its_branch_only(session: Any, ops: Any) -> None:
    node = ask(session, ops.sky.Tune, speed=Advise(), colour=Advise())
    assert node.sites == ["north"]
    assert node.fields["speed"].values == [1, 3]
    assert node.select(speed=2).cannot["north"] == "colour: there is no paint at speed 2"
    assert node.cannot["south"] == "speed: the motor is being repaired"
    assert node.fields["colour"].values == ["red"]
    assert node.tree("north").collect_error_messages() == {"colour": {"there is no paint at speed 2"}}


def test_a_field_to_be_chosen_first(session: Any, ops: Any) -> None:
    node = ask(session, ops.sky.Staged, region=Advise(), station=Advise())
    assert node.sites == ["north"]
    assert node.fields["region"].values == ["alps", "coast"]
    assert node.fields["station"].options == ()
    assert node.tree("north").branches[0].step.partial
    then = ask(session, ops.sky.Staged, region="coast", station=Advise())
    assert then.fields["station"].values == ["sylt"]


def test_fields_by_the_names_of_the_adapter(session: Any, ops: Any) -> None:
    node = ask(session, ops.sky.Mapped, shade=Advise(), size=Advise())
    assert node.fields["shade"].values == ["red", "blue"]
    assert node.select(shade="blue").fields["size"].values == [4]


# What goes wrong at a site is an answer


def test_an_adapter_that_cannot_be_loaded(session: Any, ops: Any) -> None:
    node = ask(session, ops.sky.Heavy, n=Advise())
    assert node.sites == []
    assert "there is no module 'sky_no_such_package'" in node.cannot["south"]
    assert "RuntimeError: no licence" in node.cannot["east"]


def test_an_advisor_that_hangs(session: Any, ops: Any) -> None:
    with Pipeline() as pipeline:
        Yield(ops.sky.Wait(n=Advise(), m=Advise(), node_id="wait"))
        Yield(ops.sky.Tune(speed=Advise(), colour=Advise(), node_id="tune"))
    result = session.discover(pipeline, timeout=0.6)
    assert result["wait"].unsure["south"] == "n: the advisor did not answer within 0.3 s"
    assert result["wait"].fields["m"].values == [5]
    assert result["wait"].sites == ["east"]
    assert result["tune"].fields["speed"].values == [1, 3]


def test_a_hanging_advisor_does_not_block_the_site(session: Any, ops: Any) -> None:
    with Pipeline() as slow:
        Yield(ops.sky.Wait(n=Advise(), m=1, node_id="it"))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(session.discover(slow, timeout=2.5)))
    thread.start()
    assert ask(session, ops.sky.Tune, speed=Advise(), colour=Advise()).sites == ["north"]
    assert found == [], "the quick one has waited for the slow one"
    thread.join()
    assert found[0]["it"].sites == ["east"]


def test_an_advisor_that_keeps_hanging_is_not_asked_any_more(session: Any, ops: Any) -> None:
    answers = [ask(session, ops.sky.Stuck, n=Advise(), m=5, seconds=0.1).unsure["south"] for _ in range(6)]
    assert answers[-1].startswith("n: the advisor is not asked, since it has not answered 4 earlier questions yet")


def test_a_site_that_dies_of_its_advisor(session: Any, ops: Any) -> None:
    if session.target == "inproc":
        pytest.skip("it would take the tests with it")
    with Pipeline() as pipeline:
        Yield(ops.sky.Fatal(n=Advise(), site="east", node_id="fatal"))
        Yield(ops.sky.Tune(speed=Advise(), colour=Advise(), node_id="tune"))
    result = session.discover(pipeline)
    assert "the site was lost: exited with code 7" in result["fatal"].unsure["east"]
    assert result["tune"].sites == ["north"]
    assert session.discover(reading(ops, model="gfs")).nodes["read"].sites == ["north", "south"]


def test_a_homesite_that_dies_of_its_advisor(session: Any, ops: Any) -> None:
    if session.target == "inproc":
        pytest.skip("it would take the tests with it")
    node = ask(session, ops.sky.Fatal, n=Advise(), site="app", seconds=20)
    assert "the homesite was lost" in node.unsure["app"]
    assert ask(session, ops.sky.Tune, speed=Advise(), colour=Advise()).sites == ["north"]


def test_advisors_that_do_all_sorts_of_wrong(session: Any, ops: Any) -> None:
    node = ask(session, ops.sky.Odd, kind=Advise(), extra=Advise())
    assert node.sites == ["south"]
    assert node.fields["extra"].values == ["x"]
    assert node.select(kind="good").sites == ["south"]
    reasons = {
        "exit": "SystemExit: it called sys.exit(3)",
        "list": "the advisor returned ['a']; return AdvisedOneOf",
        "unsendable": "cannot be sent",
        "unknown": "the value of 'no such field' is not known here",
        "interrupt": "KeyboardInterrupt",
        "cancel": "CancelledError",
        "stop": "StopIteration",
        "wrong range": "Invalid isoformat string",
    }
    for kind, reason in reasons.items():
        assert reason in node.select(kind=kind).unsure["south"]
    assert "no value is possible" in node.select(kind="empty").cannot["south"]


def test_nothing_runs_but_advisors(session: Any, ops: Any) -> None:
    session.discover(reading(ops))
    assert not session.ran.exists()


# Narrowing


def test_the_sites_found_serve_as_best_of(session: Any, ops: Any) -> None:
    result = session.discover(reading(ops))
    assert result.best_of() == {"read": BestOf(["north", "south"])}


def test_a_narrowed_pipeline_runs(session: Any, ops: Any) -> None:
    pipeline = reading(ops)
    result = session.discover(pipeline)
    narrowed = result.narrow(pipeline, {"read": {"model": "ifs", "variables": ["wind"], "day": "1995-03-20"}})
    assert narrowed.node("read").site == BestOf(["south"])
    assert isinstance(pipeline.node("read").arguments["model"], Advise)
    assert session.run(narrowed).one("yield")["site"] == "south"
    session.ran.unlink(missing_ok=True)


def test_a_single_possible_value_is_filled_in(session: Any, ops: Any) -> None:
    with Pipeline() as pipeline:
        Yield(ops.sky.Tune(speed=Advise(), colour=Advise(), node_id="tune"))
    narrowed = session.discover(pipeline).narrow(pipeline, {"tune": {"speed": 3}})
    assert narrowed.node("tune").arguments == {"speed": 3, "colour": "red"}


def test_a_site_that_was_asked_for_is_chosen_too(session: Any, ops: Any) -> None:
    with Pipeline() as pipeline:
        Yield(ops.sky.Read(model=Advise(), variables=["wind"], day="1995-03-20", site=Advise(), node_id="read"))
    result = session.discover(pipeline)
    narrowed = result.narrow(pipeline, {"read": {"model": "gfs", "site": "north"}})
    assert narrowed.node("read").site == "north"
    assert result.narrow(pipeline, {"read": {"model": "gfs"}}).node("read").site == BestOf(["north", "south"])
    with pytest.raises(PipelineError, match=r"sky\.Read cannot run at 'south'"):
        result.narrow(pipeline, {"read": {"model": "icon", "site": "south"}})


def test_narrowing_keeps_blocks_and_asks_again(session: Any, ops: Any) -> None:
    with Pipeline() as pipeline, ForEach(["a", "b"]) as title:
        with If(title == "a"):
            Yield(ops.sky.Staged(region=Advise(), station=Advise(), node_id="staged"))
        with Else():
            Yield(ops.sky.Plot(data=title, projection="polar", node_id="plot"))
    once = session.discover(pipeline).narrow(pipeline, {"staged": {"region": "coast"}})
    twice = session.discover(once).narrow(once)
    assert twice.node("staged").arguments == {"region": "coast", "station": "sylt"}
    assert twice.node("plot").site == BestOf(["app", "north"])
    assert len(list(pipeline.statements())) == len(list(twice.statements()))
    assert isinstance(pipeline.node("staged").arguments["region"], Advise)


def test_what_cannot_be_narrowed_is_said_at_once(session: Any, ops: Any) -> None:
    pipeline = reading(ops)
    result = session.discover(pipeline)
    with pytest.raises(PipelineError) as caught:
        result.narrow(pipeline, {"read": {"model": "cosmo", "colour": 1}, "raed": {}})
    text = str(caught.value)
    assert "did you mean 'read'?" in text
    assert "no field 'colour'" in text
    assert "no site can run sky.Read with model='cosmo'" in text
    assert "test_discovery.py:" in text


def test_unsure_sites_are_kept_on_request(session: Any, ops: Any) -> None:
    pipeline = reading(ops)
    narrowed = session.discover(pipeline).narrow(pipeline, include_unsure=True)
    assert narrowed.node("read").site == BestOf(["north", "south", "east"])


# Documents, faults


def test_text_and_json(session: Any, ops: Any) -> None:
    result = session.discover(reading(ops))
    text = str(result)
    assert "sky.Read (read)" in text
    assert "can run at: north, south" in text
    assert "'gfs'  (north, south)" in text
    assert "east: model: the advisor raised ConnectionError" in text
    assert "model: 'icon'" in text
    document = json.loads(result.to_json())["nodes"][0]
    assert document["sites"] == ["north", "south"]
    assert document["choices"]["north"]["field"] == "model"
    assert document["fields"]["model"]["options"][0]["sites"] == ["north", "south"]


def test_faults_of_the_pipeline_are_still_faults(session: Any, ops: Any) -> None:
    with Pipeline() as pipeline:
        ops.sky.Read(model=Advise(), variables=[Advise()], nonsense=1, site="nowhere")
        Yield(Advise())
    with pytest.raises(PipelineError) as caught:
        session.discover(pipeline)
    text = str(caught.value)
    assert "no site 'nowhere'" in text
    assert "Advise() stands inside of a value" in text
    assert "Yield: Advise() is for session.discover" in text
    assert all(fault.location.file.endswith("test_discovery.py") for fault in caught.value.faults)


def test_advise_outside_of_discovery_is_a_fault(session: Any, ops: Any) -> None:
    with pytest.raises(PipelineError, match=r"Advise\(\) is for session.discover"):
        session.run(reading(ops))
    with pytest.raises(PipelineError, match=r"site=Advise\(\) is for session.discover"):
        session.run(reading(ops, model="gfs", variables=[], day="", site=Advise()))


def test_discoveries_at_the_same_time(session: Any, ops: Any) -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(session.discover(reading(ops)).nodes["read"].sites))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["north", "south"]] * 8


def test_a_pipeline_without_operations(session: Any) -> None:
    with Pipeline() as pipeline:
        Yield(1)
    assert len(session.discover(pipeline)) == 0


def test_an_advisor_does_not_object_to_a_parameter_that_nobody_gave(tmp_path: Path) -> None:
    (tmp_path / "optional.dfm.yaml").write_text(
        """
dfm: 1.0.0
operations:
  sky.Crop: {parameters: {box: {default: null}, scale: {default: 3}}}
sites:
  app: {interface: {sky.Crop: optional_crop.Crop}}
"""
    )
    (tmp_path / "optional_crop.py").write_text(
        """
from dfmesh import AdvisedDict, AdvisedOneOf, field_advisor

class Crop:
    def body(self, box, scale): ...

    @field_advisor("box")
    def box(self):
        return AdvisedDict({"west": AdvisedOneOf([0, 10])})

    @field_advisor("scale")
    def scale(self):
        return AdvisedOneOf([1, 2])
"""
    )
    federation = Federation.load(tmp_path / "optional.dfm.yaml")
    with federation.session("inproc") as session:
        assert ask(session, federation.ops.sky.Crop, scale=2).sites == ["app"]
        assert "scale: expected one of 1, 2, got 3" in ask(session, federation.ops.sky.Crop).cannot["app"]
        assert (
            "box: expected a dictionary, got 1" in ask(session, federation.ops.sky.Crop, box=1, scale=2).cannot["app"]
        )

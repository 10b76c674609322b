"""What stays at a site by a rule of residency gets into no log or journal of a job, but into the log of the site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from up_host import UpHost

from dfmesh import Federation, ForEach, Pipeline, Yield
from dfmesh.session.host import Host

FILE = Path(__file__).resolve().parents[1] / "federations" / "hospital" / "hospital.dfm.yaml"


@pytest.fixture
def host(place: Path) -> Iterator[UpHost]:
    host = UpHost(FILE)
    yield host
    host.stop()


def texts_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_only_the_log_of_the_site_has_the_texts(host: UpHost, place: Path) -> None:
    federation = Federation.load(FILE)
    h = federation.ops.h
    with Pipeline() as pipeline:
        with ForEach(h.Patients(), on_error="collect") as patient:
            number = h.Float(x=patient["name"])
        Yield(patient.collect(number))
        Yield(h.Say(x=h.Patients()), place="said")
        Yield(h.Add(a=h.Patients()[0], b=1), place="added")
    with federation.session(target="up") as session:
        job = session.submit(pipeline)
        job.wait(30)
        log, errors, results = str(job.log), repr(job.errors), repr(job.partial_result()["yield"])
    told: list[bytes] = []
    with Host(str(FILE)) as of_host:
        of_host.lines(lambda data, _: told.append(data), job.id)
    for text in (log, errors, results, b"".join(told).decode()):
        assert "SECRET" not in text
    assert "what it prints and logs stays at site 'h1'" in log
    host.stop()
    files = texts_below(place / "xdg_state_home")
    kept = {name for name, data in files.items() if b"SECRET" in data}
    assert kept
    assert all("lines" in Path(name).parts for name in kept), kept

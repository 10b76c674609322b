"""What a site's code says about its secrets does not leave the site; what it returns is its owner's own business."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, Pipeline, Session, Yield
from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS, HiddenSecrets

FILE = Path(__file__).resolve().parents[1] / "federations" / "secrets" / "secrets.dfm.yaml"
KEY = "it's 'very\\hush'/ü"
LIMIT = 30.0


@pytest.fixture(scope="module", params=["inproc", "local"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFM_SECRET_TOLD_KEY", KEY)
        patch.setenv("DFM_SECRET_SHORT_KEY", "abc")
        with Federation.load(FILE).session(target=request.param, measure=False, output="none") as opened:
            yield opened
        sys.modules.pop("secret_operations", None)
        HIDDEN_SECRETS.__init__()  # type: ignore[misc] - of the process of all tests


def ended(session: Session, operation: Any, **arguments: Any) -> Any:
    with Pipeline() as p:
        Yield(operation(**arguments))
    job = session.submit(p)
    assert job.wait(LIMIT)
    return job


@pytest.mark.parametrize("how", ["plain", "quoted", "json", "address", "cause", "unsendable"])
@pytest.mark.parametrize("site", ["same", "apart"])
def test_what_is_raised(session: Session, site: str, how: str) -> None:
    (error,) = ended(session, session.federation.ops.tell.Raise, how=how, site=site).errors
    told = f"{error.message} {error.traceback} {error.caused_by} {error}"
    assert "***" in told
    assert "hush" not in told


@pytest.mark.parametrize("how", ["stdout", "stderr", "log", "logger", "pieces"])
@pytest.mark.parametrize("site", ["same", "apart"])
def test_what_is_printed_and_logged(session: Session, site: str, how: str) -> None:
    job = ended(session, session.federation.ops.tell.Say, how=how, site=site)
    assert [line.text for line in job.log] == ["***" if how == "pieces" else "login with ***"]
    assert not any("hush" in line.logger for line in job.log)


def test_what_is_returned_is_left_alone_and_so_are_short_ones(session: Session) -> None:
    job = ended(session, session.federation.ops.tell.Give)
    assert job.result(LIMIT) == {"yield": [[KEY, KEY.encode()]]}
    assert [line.text for line in job.log] == ["the short one is abc"]


def test_the_longer_of_two_secrets_is_hidden_whole_and_each_line_of_a_long_one() -> None:
    hidden = HiddenSecrets()
    assert hidden.hide("abcd") == "abcd"
    hidden.remember(["abcd", {"key": b"abcdefgh"}, 7, None, "abc"])
    assert hidden.hide("abcdefgh abcd abc 7") == "*** *** abc 7"
    hidden.remember("-----BEGIN-----\nc2VjcmV0cw==\n}\n")
    assert hidden.hide("read c2VjcmV0cw== }") == "read *** }"

"""Target `local` with real processes: messages, large values, deaths, restarts."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from stub_federation import STUB, Config, Stubs

from dfmesh.engine.messages import JobStarted, SiteLost, StartJob, YieldPackage
from dfmesh.errors import SessionClosedError, SessionError
from dfmesh.targets.local.runner import LocalFederationRunner
from dfmesh.targets.local.supervisor import Supervisor

Run = Callable[..., None]


def test_messages_in_order_and_counted_by_both_sides(run_stubs: Run, transport: str) -> None:
    async def test(stubs: Stubs) -> None:
        size = stubs.runner.send(StartJob("job", b'["echo"]'))
        assert await stubs.hear() == JobStarted("job")
        before = (await stubs.runner.bytes_received())["c"]["b"]
        assert await stubs.ask("flood", "c", 100_000, to="b") == "c got 100000 from b, 0 out of order"
        received = await stubs.runner.bytes_received()
        assert before == 0
        assert received["c"]["b"] > 100_000 * 40
        client = next(name for name in received if name.startswith("client:"))
        assert received["a"][client] > size
        assert stubs.runner.outbox_bytes() == 0

    run_stubs(test, transport=transport)


def test_a_message_to_oneself_has_no_size(run_stubs: Run) -> None:
    async def test(stubs: Stubs) -> None:
        assert await stubs.ask("self") == "a got 1 from a, 0 out of order"
        assert await stubs.ask("self", to="b") == "b got 1 from b, 0 out of order"

    run_stubs(test)


def test_arrays_between_sites(run_stubs: Run, transport: str) -> None:
    async def test(stubs: Stubs) -> None:
        size = 3 * 2**20
        assert await stubs.ask("arrays", "c", 20, size, to="b") == "c got 20 from b, 0 out of order"
        expected = 20 * sum(range(256)) * (size // 256)
        assert await stubs.ask("sums", to="c") == f"20 {expected} False"
        total, in_use = map(int, (await stubs.ask("memory", to="b")).split())
        assert total < 128 * 2**20
        assert (in_use > 0) == (transport == "unix")
        assert await stubs.ask("drop", to="c") == "dropped"
        assert await stubs.memory_is_free("b")

    run_stubs(test, transport=transport)


def test_a_large_result_reaches_the_client_through_the_homesite(run_stubs: Run, transport: str) -> None:
    async def test(stubs: Stubs) -> None:
        for site in ("b", "a"):
            stubs.tell("yield", 5 * 2**20, to=site)
            package = await stubs.hear()
            if site == "a":  # the homesite's own result comes from itself
                assert isinstance(package, YieldPackage)
            value = stubs.runner.unpack(package.payload)
            assert value.nbytes == 5 * 2**20
            assert value[257] == 1
            del package, value
        assert (await stubs.ask("memory", to="a")).split()[0] in {"0", str(5 * 6 * 2**20)}

    run_stubs(test, transport=transport)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("exit", 3), "exited with code 3:\nabout to leave"),
        (("signal", signal.SIGKILL), "killed by SIGKILL"),
        (("signal", signal.SIGSEGV), "killed by SIGSEGV:\nFatal Python error: Segmentation fault"),
    ],
)
def test_a_dead_site_is_told_of_and_restarted(run_stubs: Run, transport: str, command: Any, reason: str) -> None:
    async def test(stubs: Stubs) -> None:
        assert await stubs.ask("calls", to="b", job="job-1") == "called"
        old = stubs.runner.processes["b"]
        stubs.tell(*command, to="b")
        heard = {await stubs.hear_text(), await stubs.hear_text()}  # a and c were told, and told us
        assert all(text.startswith(f"lost b: {reason}") for text in heard), heard
        assert all(text.endswith("(('job-1', 7, (0, 3)),)") for text in heard), heard
        assert await stubs.ask("flood", "b", 1000, to="c") == "b got 1000 from c, 0 out of order"
        assert stubs.runner.processes["b"] != old
        assert await stubs.ask("arrays", "c", 5, 2**20, to="b") == "c got 5 from b, 0 out of order"
        assert stubs.lost.empty()

    run_stubs(test, transport=transport)


def test_a_dead_homesite_is_told_of_and_restarted(run_stubs: Run, transport: str) -> None:
    async def test(stubs: Stubs) -> None:
        assert await stubs.ask("calls") == "called"
        os.kill(stubs.runner.processes["a"], signal.SIGKILL)
        loss = await asyncio.wait_for(stubs.lost.get(), 60)
        assert loss == SiteLost("", "a", "killed by SIGKILL", (("job", 7, (0, 3)),))
        stubs.tell("flood", "c", 1000, to="b")  # what is sent after the loss reaches the next life
        heard = {await stubs.hear_text() for _ in range(3)}
        assert heard == {"lost a: killed by SIGKILL (('job', 7, (0, 3)),)", "c got 1000 from b, 0 out of order"}

    run_stubs(test, transport=transport)


def test_memory_lent_to_a_dead_site_comes_back(run_stubs: Run) -> None:
    async def test(stubs: Stubs) -> None:
        assert await stubs.ask("arrays", "c", 5, 2**20, to="b") == "c got 5 from b, 0 out of order"
        assert (await stubs.ask("memory", to="b")).split()[1] != "0"
        stubs.tell("exit", 0, to="c")
        await stubs.hear_text()
        await stubs.hear_text()
        assert await stubs.memory_is_free("b")

    run_stubs(test)


def test_many_deaths_in_a_row(run_stubs: Run) -> None:
    """Each time both survivors hear of it before they meet the next life."""

    async def test(stubs: Stubs) -> None:
        for _ in range(4):
            stubs.tell("exit", 7, to="b")
            heard = [await stubs.hear_text(), await stubs.hear_text()]
            assert all(text.startswith("lost b: exited with code 7") for text in heard), heard
        stubs.tell("flood", "c", 10, to="b")
        assert await stubs.hear_text() == "c got 10 from b, 0 out of order"

    run_stubs(test)


def test_two_sites_die_together(run_stubs: Run) -> None:
    async def test(stubs: Stubs) -> None:
        stubs.tell("echo")  # or the homesite does not know us
        await stubs.hear()
        processes = stubs.runner.processes
        for name in ("b", "c"):
            os.kill(processes[name], signal.SIGKILL)
        heard = [await stubs.hear_text()]
        while not {text.split(":")[0] for text in heard} >= {"lost b", "lost c"}:
            heard.append(await stubs.hear_text())
        stubs.tell("flood", "c", 1000, to="b")
        while "c got 1000 from b, 0 out of order" not in heard:
            heard.append(await stubs.hear_text())

    run_stubs(test)


@pytest.mark.parametrize("command", ["garbage", "forge"])
def test_a_site_that_sends_garbage_is_ended(run_stubs: Run, command: str) -> None:
    async def test(stubs: Stubs) -> None:
        stubs.tell(command, "c", to="b")
        heard = [await stubs.hear_text(), await stubs.hear_text()]
        assert all("lost b: ended by dfmesh: c says it sent what is no message" in text for text in heard), heard
        assert await stubs.ask("flood", "c", 10, to="b") == "c got 10 from b, 0 out of order"

    run_stubs(test)


def test_prints_are_kept_and_do_no_harm(run_stubs: Run, capfd: pytest.CaptureFixture[str]) -> None:
    async def test(stubs: Stubs) -> None:
        assert await stubs.ask("print", "hello", to="b") == "printed"
        assert await stubs.ask("print", "x" * 1_000_000, to="b") == "printed"
        output = stubs.runner.output("b")
        assert output.endswith("xxx\nfrom a child\n")
        assert len(output) <= 64 * 1024
        assert stubs.runner.output("c") == ""

    run_stubs(test)
    assert capfd.readouterr().out == ""


def test_a_site_that_does_not_start(tmp_path: Path) -> None:
    async def body() -> None:
        runner = LocalFederationRunner(
            Config(tmp_path / "broken-b.dfm.yaml", "abc"),  # type: ignore[arg-type]
            "a",
            program=STUB,
        )
        with pytest.raises(SessionError) as caught:
            await runner.start(lambda message: None, lambda reason: None)
        assert "site 'b' did not start: exited with code 1" in str(caught.value)
        assert "this federation file is broken" in str(caught.value)
        assert runner.processes == {}
        await runner.close()

    asyncio.run(body())


def test_wrong_arguments() -> None:
    config: Any = Config(Path("x.dfm.yaml"), "ab")
    with pytest.raises(SessionError, match=r"no site 'z'.*a, b"):
        LocalFederationRunner(config, "z")
    with pytest.raises(SessionError, match="no transport 'pigeon'"):
        LocalFederationRunner(config, "a", transport="pigeon")
    with pytest.raises(SessionClosedError):
        LocalFederationRunner(config, "a").outbox_bytes()
    asyncio.run(LocalFederationRunner(config, "a").close())


@pytest.mark.parametrize("hang", [None, "hang_loop", "hang_hard"])
def test_close_ends_also_when_a_site_hangs(run_stubs: Run, hang: str | None) -> None:
    async def test(stubs: Stubs) -> None:
        if hang:
            assert await stubs.ask(hang, to="b") == "hanging"
            await asyncio.sleep(0.1)
        pids = list(stubs.runner.processes.values())
        children = [child for pid in pids for child in psutil.Process(pid).children()]
        async with asyncio.timeout(60):
            await stubs.runner.close()
            await stubs.runner.close()
        assert not any(psutil.pid_exists(pid) for pid in pids)
        assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
        assert stubs.runner.processes == {}

    run_stubs(test)


def test_an_idle_federation_does_nothing(run_stubs: Run) -> None:
    async def test(stubs: Stubs) -> None:
        assert await stubs.ask("flood", "c", 10, to="b")
        await asyncio.sleep(0.3)
        sites = [psutil.Process(pid) for pid in stubs.runner.processes.values()]
        before = [(p.cpu_times().user + p.cpu_times().system, p.num_ctx_switches().voluntary) for p in sites]
        await asyncio.sleep(1.0)
        after = [(p.cpu_times().user + p.cpu_times().system, p.num_ctx_switches().voluntary) for p in sites]
        assert all(b[1] - a[1] <= 1 for a, b in zip(before, after, strict=True)), "somebody polls"

    run_stubs(test)


def test_where_the_system_has_no_process_descriptors(monkeypatch: pytest.MonkeyPatch, run_stubs: Run) -> None:
    def missing(pid: int, flags: int = 0) -> int:
        raise OSError("not on this system")

    monkeypatch.setattr(os, "pidfd_open", missing, raising=False)

    async def test(stubs: Stubs) -> None:
        stubs.tell("exit", 4, to="b")
        assert (await stubs.hear_text()).startswith("lost b: exited with code 4")
        await stubs.hear_text()
        assert await stubs.ask("flood", "c", 10, to="b") == "c got 10 from b, 0 out of order"

    run_stubs(test)


def test_a_client_on_uvloop(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def body() -> None:
        runner = LocalFederationRunner(Config(tmp_path / "x.dfm.yaml", "abc"), "a", program=STUB)  # type: ignore[arg-type]
        stubs = Stubs(runner)
        await runner.start(stubs.got.put_nowait, stubs.lost.put_nowait)
        stubs.tell("yield", 2**20, to="b")
        assert runner.unpack((await stubs.hear()).payload).nbytes == 2**20
        os.kill(runner.processes["a"], signal.SIGKILL)
        assert (await asyncio.wait_for(stubs.lost.get(), 60)).reason == "killed by SIGKILL"
        stubs.tell("echo")
        while await stubs.hear() != JobStarted("job"):
            pass
        await runner.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(body())


def test_idle_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from dfmesh.targets.local import carrier as module

    monkeypatch.setattr(module, "_IDLE_SECONDS", 0.05)

    async def body() -> None:
        import socket

        a = module.LocalCarrier("a", ["b"], lambda *_: None)
        b = module.LocalCarrier("b", ["a"], lambda *_: None)
        got: list[Any] = []
        b.receive = lambda peer, message: got.append(message)
        left, right = socket.socketpair()
        a.connect("b", left)
        b.connect("a", right)
        a.send("b", YieldPackage("j", "p", (0,), "n", "a", a.pack(b"x" * 2**21)))
        while not got:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert b.unpack(got[0].payload) == b"x" * 2**21
        await asyncio.sleep(0.2)
        assert a.shared_bytes > 0, "it is lent"
        got.clear()
        async with asyncio.timeout(60):
            while a.shared_bytes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert a._trim_timer is None, "nothing wakes up for nothing"
        a.close()
        b.close()

    asyncio.run(body())


def test_the_homesite_hears_of_a_loss_after_the_others(monkeypatch: pytest.MonkeyPatch, run_stubs: Run) -> None:
    """So nothing that it starts afterwards can meet a site that has not heard of it."""
    order: list[str] = []
    tell = Supervisor._tell_homesite

    def spy(self: Supervisor, number: int) -> None:
        if number in self._untold:
            order.append(str(sorted(self._unnoted[number][1])))
        tell(self, number)

    monkeypatch.setattr(Supervisor, "_tell_homesite", spy)

    async def test(stubs: Stubs) -> None:
        stubs.tell("exit", 1, to="b")
        await stubs.hear_text()
        await stubs.hear_text()
        assert order == ["['a']"]

    run_stubs(test)

"""A site's own code: found, made once, called with what the federation file says."""

from __future__ import annotations

import asyncio
import inspect
import timeit
from collections.abc import AsyncIterator, Iterator
from textwrap import dedent, indent

import pytest

from dfmesh.engine.adapters import (
    AdapterArgumentError,
    AdapterKind,
    AdapterLoadError,
    SecretError,
    SiteAdapters,
)
from dfmesh.errors import DfmeshError


def one(adapter: str, parameters: str = "{x: {}}", required: str = "", site: str = "") -> str:
    """A federation with one operation `a.B`, offered by the site `us`."""
    listed = f", required: {required}" if required else ""
    return (
        f"dfm: 1.0.0\ninfo: {{code-package: fed, api-version: 1.2.3}}\n"
        f"operations: {{a.B: {{parameters: {parameters}{listed}}}}}\nsites:\n  us:\n"
        f"{indent(dedent(site), '    ')}    interface:\n      a.B: {adapter}\n"
    )


def call(adapters: SiteAdapters, **arguments: object) -> object:
    return adapters.find("a.B", None).bind(arguments)()


# -- kinds of adapters

KINDS = {
    "function": ("def B(x): return x", AdapterKind.FUNCTION),
    "coroutine": ("async def B(x): return x", AdapterKind.COROUTINE),
    "generator": ("def B(x): yield x", AdapterKind.GENERATOR),
    "async generator": ("async def B(x): yield x", AdapterKind.ASYNC_GENERATOR),
    "class": ("class B:\n    def body(self, x): return x", AdapterKind.FUNCTION),
    "async class": ("class B:\n    async def body(self, x): return x", AdapterKind.COROUTINE),
    "generator class": ("class B:\n    def body(self, x): yield x", AdapterKind.GENERATOR),
    "static": ("class B:\n    @staticmethod\n    async def body(x): yield x", AdapterKind.ASYNC_GENERATOR),
    "callable class": ("class B:\n    async def __call__(self, x): return x", AdapterKind.COROUTINE),
    "instance": ("class C:\n    def body(self, x): yield x\nB = C()", AdapterKind.GENERATOR),
    "callable instance": ("class C:\n    async def __call__(self, x): yield x\nB = C()", AdapterKind.ASYNC_GENERATOR),
    "partial": ("import functools\nasync def b(k, x): return x\nB = functools.partial(b, 1)", AdapterKind.COROUTINE),
    "cached": ("import functools\n@functools.cache\ndef B(x): return x", AdapterKind.FUNCTION),
    "annotated": (
        "from collections.abc import Iterator\ndef B(x) -> Iterator[int]: return iter([x])",
        AdapterKind.GENERATOR,
    ),
    "annotated as text": (
        "from __future__ import annotations\nimport typing as t\ndef B(x) -> t.Iterator[int]: return iter([x])",
        AdapterKind.GENERATOR,
    ),
    "decorated": (
        "import functools\ndef d(f):\n    @functools.wraps(f)\n    def w(*a, **k): return f(*a, **k)\n    return w\n"
        "@d\nasync def B(x): return x",
        AdapterKind.COROUTINE,
    ),
    "decorated to be synchronous": (
        "import functools\ndef d(f):\n    @functools.wraps(f)\n    def w(x): return x\n    return w\n"
        "@d\nasync def B(x): pass",
        AdapterKind.COROUTINE,
    ),
    "built in": ("import operator\nB = operator.itemgetter('x')\nB = lambda x: x", AdapterKind.FUNCTION),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_an_adapter_is_is_found_out_by_looking(adapters, name):
    code, kind = KINDS[name]
    adapter = adapters(one("lib.B"), code).find("a.B", None)
    assert adapter.kind is kind
    assert collect(adapter.bind({"x": 5})()) == 5


def collect(result: object) -> object:
    async def first(items: AsyncIterator[object]) -> object:
        return await anext(items)

    if inspect.iscoroutine(result):
        return asyncio.run(result)
    if isinstance(result, AsyncIterator):
        return asyncio.run(first(result))
    return next(result) if isinstance(result, Iterator) else result


def test_is_async_false_settles_what_a_decorator_leaves_open(adapters):
    code, _ = KINDS["decorated to be synchronous"]
    adapter = adapters(one("{adapter: lib.B, is-async: false}"), code).find("a.B")
    assert adapter.kind is AdapterKind.FUNCTION
    assert adapter.bind({"x": 5})() == 5


STREAMS = """
    from __future__ import annotations
    import typing
    from collections.abc import AsyncIterator, Generator, Iterable, Iterator
    if typing.TYPE_CHECKING:
        from nowhere import Thing
    def B(x: %s, y: list, k: Iterator[int] = ()): return x
"""


@pytest.mark.parametrize(
    ("annotation", "streams"),
    [
        ("Iterator[int]", True),
        ("AsyncIterator", True),
        ("Generator[int, None, None]", True),
        ("typing.AsyncGenerator[int, None]", True),
        ("Iterator[int] | list[int]", True),
        ("typing.Optional[Iterator[int]]", True),
        ("Iterator[Thing]", True),
        ("typing.Iterable[int]", False),
        ("Iterable[int]", False),
        ("list[int]", False),
        ("int", False),
    ],
)
def test_iterator_parameters_are_streams(adapters, annotation, streams):
    adapter = adapters(one("lib.B", "{x: {}, y: {}}"), STREAMS % annotation).find("a.B")
    assert adapter.streams_into("x") is streams
    assert not adapter.streams_into("y")
    mapped = adapters(one("{adapter: lib.B, args: {k: x, x: y, y: y}}", "{x: {}, y: {}}"), STREAMS % "int").find("a.B")
    assert mapped.streams_into("x")


# -- arguments


def test_parameters_are_handed_over_under_their_names(adapters):
    us = adapters(one("lib.B", "{x: {}, y: {default: 2}}"), "def B(x, y=3, z=4): return x, y, z")
    assert call(us, x=1) == (1, 2, 4)
    assert call(us, x=1, y=0) == (1, 0, 4)


def test_an_optional_parameter_that_is_not_given_leaves_the_adapters_own_default(adapters):
    us = adapters(one("lib.B", "{x: {}, y: {}}", "[x]"), "def B(x, y=3): return x, y")
    assert call(us, x=1) == (1, 3)
    assert call(us, x=1, y=None) == (1, None)
    mapped = adapters(
        one("{adapter: lib.B, args: {x: x, y: y}}", "{x: {}, y: {}}", "[x]"), "def B(x, y=3): return x, y"
    )
    assert call(mapped, x=1) == (1, 3)


def test_an_optional_parameter_without_any_default_is_none_as_in_dfm(adapters):
    us = adapters(one("{adapter: lib.B, args: {y: x}}", "{x: {}}", "[]"), "def B(y): return y")
    assert call(us) is None


@pytest.mark.parametrize("value", ["false", "0", "''", "null", "[]"])
def test_falsy_constants_arrive(adapters, value):
    us = adapters(one(f"{{adapter: lib.B, args: {{k: {{const: {value}}}}}}}", "{}"), "def B(k='no'): return k")
    assert call(us) != "no"
    assert not call(us)


SOURCES = """{adapter: lib.B, args: {
        x: {from-param: x},
        secret: {from-secrets: key, expose-as: {param: token, type: string}},
        region: {from-site: region},
        name: {from-site: federation_name},
        url: {from-provider: archive.url, expose-as: url},
        depth: {from-provider: archive.depth},
        n: {const: 7, expose-as: {param: n}}}}"""
SITE = "info: {region: north}\nproviders: {archive: {info: {url: 'http://a'}, impl: lib.Archive}}\n"
ARCHIVE = "class Archive:\n    depth = 3\ndef B(**given): return given\n"


def test_arguments_come_from_everywhere(adapters, monkeypatch):
    monkeypatch.setenv("DFM_SECRET_KEY", "s3cret")
    us = adapters(one(SOURCES, site=SITE), ARCHIVE)
    expected = {"x": 1, "secret": "s3cret", "region": "north", "name": "fed", "url": "http://a", "depth": 3, "n": 7}
    assert call(us, x=1) == expected
    monkeypatch.setenv("DFM_SECRET_KEY", "new")
    assert call(us, x=1)["secret"] == "new"


@pytest.mark.parametrize("value", [0, False, "", None, 5])
def test_what_the_user_gives_for_an_exposed_argument_wins(adapters, value):
    us = adapters(one(SOURCES, site=SITE), ARCHIVE)
    # nor is the secret looked for, which is not there
    assert call(us, x=1, token="t", n=value, url=value) == {
        "x": 1, "secret": "t", "region": "north", "name": "fed", "url": value, "depth": 3, "n": value,
    }  # fmt: skip


def test_an_argument_may_be_exposed_under_the_name_of_a_parameter(adapters):
    # as the DFM tutorial does
    us = adapters(
        one("{adapter: lib.B, args: {low: {const: -1, expose-as: {param: x, type: number}}}}", required="[]"),
        "def B(low): return low",
    )
    assert call(us) == -1
    assert call(us, x=0) == 0


def test_a_parameter_may_go_to_several_keywords_or_none(adapters):
    us = adapters(one("{adapter: lib.B, args: {a: x, b: x}}", "{x: {}, y: {}}"), "def B(a, b): return a, b")
    assert call(us, x=1, y=2) == (1, 1)
    assert call(us, x=1) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "operation a.B is called without 'x'"),
        ({"x": 1, "limt": 2}, r"operation a.B has no parameter 'limt' here, .* B\(x, limit\) \(did you mean 'limit'"),
        ({"x": 1, "z": 2}, r"operation a.B has the parameter 'z', but its adapter B\(x, limit\) does not take it"),
    ],
)
def test_wrong_arguments_are_refused_before_the_call(adapters, arguments, message):
    us = adapters(one("lib.B", "{x: {}, limit: {}, z: {}}", "[x]"), "def B(x, limit=1): return x")
    with pytest.raises(AdapterArgumentError, match=message):
        us.find("a.B").bind(arguments)


@pytest.mark.parametrize(
    ("adapter", "code", "message"),
    [
        ("lib.B", "def B(): pass", r"operation a.B has the parameter 'x', which B\(\) does not take"),
        ("lib.B", "def B(x, y): pass", r"B\(x, y\) needs 'y', which is neither a parameter of a.B"),
        ("{adapter: lib.B, args: {k: x}}", "def B(key): pass", r"'args' gives 'k', which B\(key\) does not take"),
        ("{adapter: lib.B, args: {}}", "def B(x): pass", r"B\(x\) needs 'x'"),
        ("lib.B", "def B(x, /): pass", "'x' can only be given by position"),
    ],
)
def test_an_adapter_that_no_call_can_fit_is_refused_when_loaded(adapters, adapter, code, message):
    us = adapters(one(adapter), code)
    with pytest.raises(AdapterLoadError, match=rf"fed\.dfm\.yaml:\d+:\d+: cannot load lib\.B: .*{message}"):
        us.find("a.B")


def test_binding_costs_about_a_microsecond(adapters):
    us = adapters(one("lib.B", "{x: {}, y: {}}"), "def B(x, y): return x, y")
    bind, arguments = us.find("a.B").bind, {"x": 1, "y": 2}
    assert min(timeit.repeat(lambda: bind(arguments), number=2000, repeat=5)) / 2000 < 5e-6


# -- making


def test_a_class_is_made_once_with_what_its_constructor_takes(adapters):
    us = adapters(
        """
        dfm: 1.0.0
        operations: {a.B: {}, a.C: {}, a.D: {}}
        sites:
          us:
            interface:
              a.B: {adapter: {path: lib.B, args: {width: 1}}}
              a.C: {adapter: {path: lib.B, args: {width: 2}}}
              a.D: {adapter: {path: lib.B, args: {width: 1}}}
            providers: {p: {interface: {a.B: {adapter: {path: lib.B, args: {width: 1}}}}}}
        """,
        """
        made = []
        class B:
            def __init__(self, site, provider, width): made.append((site, provider, width)); self.width = width
            def body(self): return self.width, made
        """,
    )
    width, made = us.find("a.B", None).bind({})()
    assert (width, len(made)) == (1, 1)
    assert made[0] == (us.site, None, 1)
    assert us.find("a.C", None).bind({})()[0] == 2
    assert us.find("a.D", None).target is us.find("a.B", None).target
    assert us.find("a.B", "p").bind({})() == (1, made)
    assert made[2][1] is us.provider("p")
    assert len(made) == 3
    assert us.find("a.B", None) is us.find("a.B", None)


def test_a_plain_function_may_ask_for_site_and_provider(adapters):
    us = adapters(
        one("{adapter: {path: lib.B, args: {k: 3}}}"), "def B(x, k, site, provider): return x, k, site.name, provider"
    )
    assert call(us, x=1) == (1, 3, "us", None)


def test_nothing_is_loaded_before_it_is_used(adapters):
    us = adapters(
        """
        dfm: 1.0.0
        operations: {a.Good: {}, a.Heavy: {}}
        sites: {us: {interface: {a.Good: lib.good, a.Heavy: a_heavy_package.Model}}}
        """,
        "def good(): return 1",
    )
    assert us.find("a.Good").bind({})() == 1
    with pytest.raises(AdapterLoadError, match=r"there is no module 'a_heavy_package' in .* or among the installed"):
        us.find("a.Heavy")
    assert us.find("a.Good").bind({})() == 1


BROKEN = {
    "misspelled": ("def Bb(x): pass", r"module 'lib' \(.*lib\.py\) has no 'B'; did you mean 'Bb'\?"),
    "syntax": ("def B(x)", r"importing it failed: SyntaxError: .*\[.*lib\.py:1\]"),
    "missing package": (
        "import no_such_thing",
        r"ModuleNotFoundError: .*'no_such_thing' \[.*lib\.py:1\]",
    ),
    "raises": ("a = 1\nraise RuntimeError('broken')", r"importing it failed: RuntimeError: broken \[.*lib\.py:2\]"),
    "exits": ("import sys\nsys.exit(3)", r"importing it failed: SystemExit: 3 \[.*lib\.py:2\]"),
    "constructor raises": (
        "class B:\n    def __init__(self): 1 / 0\n    def body(self, x): pass",
        r"making it failed: ZeroDivisionError: division by zero \[.*lib\.py:2\]",
    ),
    "constructor exits": (
        "class B:\n    def __init__(self): exit()\n    def body(self, x): pass",
        "making it failed: SystemExit",
    ),
    "constructor with unknown argument": (
        "class B:\n    def __init__(self, depth): pass\n    def body(self, x): pass",
        "making it failed: TypeError: .*missing 1 required positional argument: 'depth'",
    ),
    "no body": ("class B: pass", "it has no method 'body'"),
    "a number": ("B = 5", "it is of type int; an adapter is a function or a class with 'body'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_loaded_says_why_and_where(adapters, name):
    code, message = BROKEN[name]
    us = adapters(one("lib.B"), code)
    with pytest.raises(AdapterLoadError, match=rf"fed\.dfm\.yaml:7:12: cannot load lib\.B: .*{message}") as caught:
        us.find("a.B", None)
    assert isinstance(caught.value, DfmeshError)
    assert caught.value.location.line == 7


def test_control_c_passes(adapters):
    us = adapters(one("lib.B"), "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        us.find("a.B")


def test_what_a_site_does_not_offer(adapters, load):
    us = adapters(one("lib.B"), "")
    with pytest.raises(AdapterLoadError, match=r"site 'us' does not offer 'a\.C': did you mean 'a\.B'"):
        us.find("a.C", None)
    with pytest.raises(AdapterLoadError, match="site 'us' has no provider 'p'"):
        us.find("a.B", "p")
    with pytest.raises(AdapterLoadError, match="has no site 'uk'; it has us"):
        SiteAdapters(load(one("lib.B")), "uk")


def test_modules_in_packages_beside_the_federation(load, adapters):
    text = one("libpack.deep.module.Outer.run")
    code = "class Outer:\n    @staticmethod\n    def run(x): return x + 1\n"
    adapters(text, "")  # cleans up afterwards
    fed = load(text, files={"libpack/deep/module.py": code})
    assert call(SiteAdapters(fed, "us"), x=1) == 2


def test_two_federations_in_one_process_each_get_their_own_modules(load, adapters):
    adapters(one("lib.B"), "")
    for number in (1, 2):
        path = f"fed{number}/fed.dfm.yaml"
        fed = load(one("lib.B"), name=path, files={f"fed{number}/lib.py": f"def B(x): return {number}"})
        assert call(SiteAdapters(fed, "us"), x=0) == number


def test_a_module_that_hides_another_of_the_same_name(load, adapters):
    adapters(one("lib.B"), "")
    fed = load(one("json.B"), files={"json.py": "def B(x): return x"})
    with pytest.raises(AdapterLoadError, match=r"a module 'json' from .* is loaded already; rename the one in"):
        SiteAdapters(fed, "us").find("a.B")


# -- site and providers


def test_a_site_of_your_own(adapters, tmp_path):
    us = adapters(
        one(
            "{adapter: lib.B, args: {depth: {from-site: depth}}}",
            "{}",
            site="info: {region: north}\nimpl: {path: lib.Mine, args: {depth: 4}}\n",
        ),
        """
        from dfmesh.engine.adapters import Site
        class Mine(Site):
            def __init__(self, *args, **kwargs):
                self.depth = kwargs.pop("depth")
                super().__init__(*args, **kwargs)
        class B:
            def __init__(self, site): self.site = site
            def body(self, depth): return depth, self.site
        """,
    )
    depth, site = call(us)
    assert depth == 4
    assert (site.name, site.region, site.federation_name, site.api_version) == ("us", "north", "fed", "1.2.3")
    assert site.directory == tmp_path
    with pytest.raises(AttributeError, match="the site has no property 'nothing'"):
        site.nothing


def test_a_site_object_of_any_class(adapters):
    us = adapters(
        one("{adapter: lib.B, args: {d: {from-site: depth}, r: {from-site: region}}}", "{}",
            site="info: {region: north}\nimpl: lib.Mine\n"),
        "class Mine:\n    def __init__(self, site): self.depth = len(site.name)\ndef B(d, r): return d, r",
    )  # fmt: skip
    assert call(us) == (2, "north")


def test_a_provider_of_your_own(adapters):
    us = adapters(
        """
        dfm: 1.0.0
        operations: {a.B: {}}
        sites:
          us:
            providers:
              p:
                info: {url: "http://p"}
                impl: {path: lib.Mine, args: {depth: 4}}
                interface: {a.B: {adapter: lib.B, args: {u: {from-provider: p.url}, d: {from-provider: p.depth}}}}
        """,
        """
        from dfmesh.engine.adapters import Provider
        class Mine(Provider):
            def __init__(self, site, depth):
                super().__init__(site=site)
                self.depth = depth, self.name, self.url
        class B:
            def __init__(self, provider): self.provider = provider
            def body(self, u, d): return u, d, self.provider.site.name
        """,
    )
    assert us.find("a.B", "p").bind({})() == ("http://p", (4, "p", "http://p"), "us")


@pytest.mark.parametrize("source", ["from-site: nothing", "from-provider: p.nothing"])
def test_a_property_that_the_own_class_lacks(adapters, source):
    site = "impl: lib.Mine\nproviders: {p: {impl: lib.Mine}}\n"
    us = adapters(
        one(f"{{adapter: lib.B, args: {{k: {{{source}}}}}}}", "{}", site=site),
        "class Mine: pass\ndef B(k): return k",
    )
    with pytest.raises(AdapterArgumentError, match="has no property 'nothing'"):
        us.find("a.B").bind({})


def test_a_broken_site_class_is_a_load_error(adapters):
    us = adapters(
        one("lib.B", site="impl: lib.Mine\n"), "class Mine:\n    def __init__(self): 1/0\ndef B(x, site): pass"
    )
    with pytest.raises(AdapterLoadError, match=r"fed\.dfm\.yaml:6:11: cannot load lib\.Mine: making it failed: Zero"):
        us.find("a.B")


def test_secrets_come_from_the_environment(adapters, monkeypatch):
    text = one("{adapter: lib.B, args: {key: {from-secrets: api_key}}}", "{}")
    us = adapters(text, "def B(key): return key")
    with pytest.raises(SecretError, match="set the environment variable DFM_SECRET_API_KEY at the site"):
        us.find("a.B").bind({})
    monkeypatch.setenv("DFM_SECRET_API_KEY", "x")
    assert call(us) == "x"


@pytest.mark.parametrize(
    ("vault", "code"),
    [
        ("{args: {prefix: my_}}", ""),
        ("{path: lib.Vault, args: {word: hello}}", "class Vault:\n"
         "    def __init__(self, word): self.word = word\n    def secret_for_key(self, key): return self.word\n"),
    ],
)  # fmt: skip
def test_other_vaults(adapters, monkeypatch, vault, code):
    monkeypatch.setenv("MY_K", "hello")
    text = one("{adapter: lib.B, args: {key: {from-secrets: k}}}", "{}", site=f"secrets_vault: {vault}\n")
    assert call(adapters(text, f"{code}def B(key): return key")) == "hello"


def test_a_site_has_a_place_to_cache(adapters, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    us = adapters(one("lib.B"), "")
    place = us.site.cache_storage("deep/er")
    assert place == tmp_path / "cache/dfmesh/fed/us/deep/er"
    assert place.is_dir()
    there = adapters(one("lib.B", site="cache_config: {protocol: file, base_path: here}\n"), "").site.cache_storage()
    assert there == tmp_path / "here"


@pytest.mark.parametrize("name", ["../../elsewhere", "/tmp/elsewhere", "a/b"])
def test_no_name_of_a_federation_leads_out_of_the_cache(adapters, tmp_path, monkeypatch, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    us = adapters(one("lib.B").replace("info: {", f"info: {{name: {name}, "), "")
    assert us.site.cache_storage().parent.parent == tmp_path / "cache/dfmesh"


def test_the_cache_may_be_on_any_file_system(adapters):
    us = adapters(one("lib.B", site="cache_config: {protocol: memory, base_path: /c}\n"), "")
    file = us.site.cache_storage("d") / "x.txt"
    file.write_text("hello")
    assert file.exists()
    assert file.read_text() == "hello"
    assert (file.name, file.parent.path, str(file)) == ("x.txt", "/c/d", "memory:///c/d/x.txt")
    assert [path.name for path in file.parent.iterdir()] == ["x.txt"]
    with file.open("rb") as stream:
        assert stream.read() == b"hello"
    file.unlink()
    assert not file.exists()


def test_dfm_adapters_that_mark_spans_work(adapters):
    with adapters(one("lib.B"), "").site.telemetry_span("load") as span:
        assert span is None

"""How the Hub is reached is chosen: command line, settings, environment; and shown without secrets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tandem.errors import UsageError
from tandem.models.network import HUB, Network, Variable, environment, host_of, hosts, is_loopback, masked
from tandem.settings import Settings

MIRROR = "https://mirror.example"


def chosen(settings: Settings | None = None, endpoint: str | None = None, **environ: str) -> Network:
    return Network.chosen(settings, endpoint, environ)


def test_without_anything_it_is_the_hub_itself() -> None:
    assert chosen() == Network(HUB, "default", None, "default", False, "default")


def test_the_command_line_comes_before_the_settings_and_these_before_the_environment() -> None:
    settings = Settings(hub_endpoint="https://settings.example/")
    everywhere = chosen(settings, "https://line.example", HF_ENDPOINT=MIRROR)
    assert (everywhere.endpoint, everywhere.endpoint_from) == ("https://line.example", "command line")
    two = chosen(settings, None, HF_ENDPOINT=MIRROR)
    assert (two.endpoint, two.endpoint_from) == ("https://settings.example", "settings")
    one = chosen(None, None, HF_ENDPOINT=MIRROR)
    assert (one.endpoint, one.endpoint_from) == (MIRROR, "HF_ENDPOINT")


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_address_is_none(blank: str) -> None:
    assert chosen(Settings(hub_endpoint=blank), blank, HF_ENDPOINT=blank, HTTPS_PROXY=blank) == Network()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://mirror.example/", MIRROR),
        ("mirror.example", MIRROR),
        ("mirror:8080", "https://mirror:8080"),
        ("https://mirror", "https://mirror"),
        ("localhost", "https://localhost"),
        ("http://127.0.0.1:8080/hf/", "http://127.0.0.1:8080/hf"),
        ("  https://mirror.example/api/hf  ", "https://mirror.example/api/hf"),
        ("http://[::1]:80", "http://[::1]:80"),
    ],
)
def test_an_address_is_taken_as_people_write_it(text: str, address: str) -> None:
    assert chosen(endpoint=text).endpoint == address


@pytest.mark.parametrize(
    "text",
    [
        "ftp://mirror.example",
        "https://",
        "https://mirror.example:port",
        "https://mirror.example:99999",
        "https://mir ror.example",
        "https://mirror.example\r\nX-Evil: 1",
        "https://mirror.example/?a=b",
        "https://mirror.example/#top",
        "https://[::1",
        "notaurl",
        "notaurl/models",
        "mirror.",
    ],
)
def test_what_is_no_address_is_refused_with_a_sentence(text: str) -> None:
    said = set()
    for ask in (
        lambda: chosen(endpoint=text),
        lambda: chosen(Settings(hub_endpoint=text)),
        lambda: chosen(HF_ENDPOINT=text),
    ):
        with pytest.raises(UsageError) as refused:
            ask()
        said.add((refused.value.sentence, refused.value.remedy))
    ((sentence, remedy),) = said
    assert sentence.startswith("The address of the Hub, ")
    assert "https://host" in remedy


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as refused:
        chosen(endpoint="https://me:geheim@mirror.example")
    assert "geheim" not in refused.value.sentence + refused.value.remedy + refused.value.details
    with pytest.raises(UsageError) as refused:
        chosen(endpoint="ftp://me:geheim@mirror.example")
    assert "geheim" not in refused.value.sentence + refused.value.remedy + refused.value.details


def test_a_proxy_of_the_environment_is_the_one_for_the_scheme() -> None:
    network = chosen(HTTPS_PROXY="http://p.example:3128", http_proxy="q.example:80")
    assert (network.proxy, network.proxy_from) == ("http://p.example:3128", "HTTPS_PROXY")
    assert network.proxy_for("https://cdn.example/x") == "http://p.example:3128"
    assert network.proxy_for("http://cdn.example/x") == "http://q.example:80"


def test_the_lower_case_spelling_comes_first_and_all_proxy_last() -> None:
    both = chosen(
        https_proxy="http://low.example:1", HTTPS_PROXY="http://high.example:1", ALL_PROXY="http://a.example:1"
    )
    assert (both.proxy, both.proxy_from) == ("http://low.example:1", "https_proxy")
    every = chosen(ALL_PROXY="http://a.example:1")
    assert (every.proxy, every.proxy_from) == ("http://a.example:1", "ALL_PROXY")


def test_the_settings_proxy_comes_first_and_none_goes_without() -> None:
    environ = {"HTTPS_PROXY": "http://p.example:3128"}
    mine = Network.chosen(Settings(proxy="mine.example:8080"), environ=environ)
    assert (mine.proxy, mine.proxy_from) == ("http://mine.example:8080", "settings")
    without = Network.chosen(Settings(proxy="None"), environ=environ)
    assert (without.proxy, without.proxy_from) == (None, "settings")
    assert without.proxy_for("https://cdn.example") is None


@pytest.mark.parametrize(
    ("no_proxy", "url", "through"),
    [
        ("", "https://huggingface.co/x", True),
        ("*", "https://huggingface.co/x", False),
        ("huggingface.co", "https://huggingface.co/x", False),
        ("huggingface.co", "https://cdn.huggingface.co/x", False),
        (".huggingface.co", "https://cdn.huggingface.co/x", False),
        ("face.co", "https://huggingface.co/x", True),
        ("a.example, huggingface.co:443", "https://huggingface.co:443/x", False),
        ("a.example", "https://huggingface.co/x", True),
    ],
)
@pytest.mark.parametrize("spelling", ["NO_PROXY", "no_proxy"])
def test_no_proxy_is_heeded(no_proxy: str, url: str, through: bool, spelling: str) -> None:
    network = Network.chosen(environ={"HTTPS_PROXY": "http://p.example:3128", spelling: no_proxy})
    assert (network.proxy_for(url) is not None) == through


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST.", "hub.localhost", "[::1]"])
def test_this_machine_is_never_asked_through_a_proxy_of_the_environment(host: str) -> None:
    network = chosen(endpoint=f"http://{host}:8080", HTTP_PROXY="http://p.example:1", ALL_PROXY="http://p.example:1")
    assert network.proxy is None
    assert network.proxy_for(f"https://{host}/x") is None
    assert network.proxy_for("http://other.example/x") == "http://p.example:1"


def test_this_machine_is_asked_through_a_proxy_of_the_settings() -> None:
    network = chosen(Settings(proxy="http://127.0.0.1:9"), "http://127.0.0.1:8080")
    assert network.proxy_for("http://127.0.0.1:8080/api") == "http://127.0.0.1:9"


@pytest.mark.parametrize("text", ["ftp://p.example", "http://", "http://p.example/path", "p.example:port", "a b:1"])
def test_what_is_no_proxy_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="is no address of a proxy"):
        chosen(Settings(proxy=text))
    with pytest.raises(UsageError, match="is no address of a proxy"):
        chosen(HTTPS_PROXY=text)


def test_a_socks_proxy_is_refused_only_where_it_would_be_used() -> None:
    with pytest.raises(UsageError, match="SOCKS"):
        chosen(Settings(proxy="socks5://127.0.0.1:1080"))
    with pytest.raises(UsageError, match="SOCKS"):
        chosen(all_proxy="socks5h://127.0.0.1:1080")
    beside = chosen(all_proxy="socks5://127.0.0.1:1", https_proxy="http://127.0.0.1:2", http_proxy="http://127.0.0.1:2")
    assert beside.proxy == "http://127.0.0.1:2"
    assert chosen(endpoint="http://127.0.0.1:1", all_proxy="socks5://127.0.0.1:1").proxy is None
    assert chosen(all_proxy="socks5://127.0.0.1:1", no_proxy="huggingface.co").proxy is None


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("yes", True), ("ON", True), ("0", False), ("", False)])
@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_mode_is_read_as_huggingface_hub_reads_it(name: str, value: str, offline: bool) -> None:
    network = Network.chosen(environ={name: value})
    assert (network.offline, network.offline_from) == (offline, name if offline else "default")


def test_the_password_of_a_proxy_is_shown_nowhere() -> None:
    environ = {"HTTPS_PROXY": "http://me:geheim@p.example:3128", "HF_TOKEN": "hf_verborgen"}
    network = Network.chosen(environ=environ)
    assert network.proxy == "http://me:geheim@p.example:3128"
    assert network.proxy_shown == "http://•••@p.example:3128"
    shown = f"{network!r} {network} {environment(environ)}"
    assert "geheim" not in shown
    assert "verborgen" not in shown


def test_the_variables_that_count_are_listed_as_they_are_spelt() -> None:
    environ = {
        "HF_ENDPOINT": MIRROR,
        "HF_TOKEN": "hf_verborgen",
        "https_proxy": "me:geheim@p.example:3128",
        "NO_PROXY": "a.example",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": "/srv/hf",
        "ALL_PROXY": "",
        "PATH": "/usr/bin",
    }
    assert environment(environ) == (
        Variable("HF_ENDPOINT", MIRROR, "endpoint"),
        Variable("HF_TOKEN", "••••••••", "token"),
        Variable("HF_HUB_OFFLINE", "1", "offline"),
        Variable("https_proxy", "•••@p.example:3128", "proxy"),
        Variable("NO_PROXY", "a.example", "no-proxy"),
        Variable("HF_HOME", "/srv/hf", "token-file"),
    )
    assert environment({}) == ()


def test_the_hosts_that_can_be_contacted_are_named() -> None:
    assert hosts(Network()) == ("huggingface.co", "*.huggingface.co", "*.hf.co")
    assert hosts(chosen(endpoint="http://10.1.2.3:8080/hf")) == ("10.1.2.3:8080",)


@pytest.mark.parametrize(
    ("url", "trusted"),
    [
        ("https://huggingface.co/a/b", True),
        ("https://HUGGINGFACE.co:443/a", True),
        ("http://huggingface.co/a", False),
        ("https://huggingface.co:444/a", False),
        ("https://cdn.huggingface.co/a", False),
        ("https://huggingface.co.evil.example/a", False),
        ("https://huggingface.co@evil.example/a", False),
    ],
)
def test_a_token_may_go_to_the_endpoint_only(url: str, trusted: bool) -> None:
    assert Network().trusts(url) == trusted


@pytest.mark.parametrize("url", ["https://huggingface.co:99999/x", "https://[huggingface.co/x", "https:///x", ""])
def test_what_is_no_address_gets_no_token(url: str) -> None:
    assert not Network().trusts(url)


def test_a_port_that_is_none_does_not_keep_an_error_from_being_told() -> None:
    network = chosen(HTTPS_PROXY="http://p.example:1", NO_PROXY="other.example")
    assert network.proxy_for("https://a.example:99999/x") == "http://p.example:1"


def test_a_token_may_not_go_in_clear_over_a_network() -> None:
    assert not chosen(endpoint="http://192.168.1.2:80").trusts("http://192.168.1.2/a")
    assert chosen(endpoint="http://127.0.0.1:80").trusts("http://127.0.0.1/a")


def test_parts_of_an_address() -> None:
    assert host_of("https://a.example:443/x") == "a.example"
    assert host_of("http://a.example:8080/x") == "a.example:8080"
    assert host_of("http://[::1]:81/") == "[::1]:81"
    assert host_of("no address") == ""
    assert masked("http://p.example:1") == "http://p.example:1"
    assert is_loopback("127.1.2.3")
    assert not is_loopback("127.example")


def test_choosing_loads_nothing_that_could_connect() -> None:
    code = (
        "import sys; from tandem.models.network import Network, environment, hosts; hosts(Network.chosen());"
        "environment(); print([one for one in ('httpx2', 'huggingface_hub', 'keyring') if one in sys.modules])"
    )
    plain: Mapping[str, str] = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

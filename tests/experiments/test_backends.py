"""Where a sweep runs: what cannot be reached is one line, in seconds."""

from __future__ import annotations

import importlib.util
import socket

import pytest

from dapo_lib.cli import main
from dapo_lib.errors import BadInput
from dapo_lib.experiments.backends import backend, reachable


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_port_where_nothing_listens(scheme):
    with pytest.raises(BadInput, match="no Ray answers there"):
        reachable(f"{scheme}127.0.0.1:{closed_port()}")


def test_a_port_that_listens_is_let_through():
    with socket.create_server(("127.0.0.1", 0)) as server:
        reachable(f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("address", ["nowhere", "host:", ":1", "h:99999", "h:٣", ""])
def test_what_is_no_address(address):
    with pytest.raises(BadInput, match="expected host:port"):
        reachable(address)


def test_an_address_needs_ray():
    with pytest.raises(BadInput, match="--backend ray"), backend("loky", "auto"):
        pass


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is not None, reason="ray is installed here"
)
def test_without_ray_the_line_says_what_to_install(capsys):
    code = main(["sweep", "--backend", "ray", "--address", "auto", "--offline"])
    said = capsys.readouterr().err
    assert code == 2 and "dapo-book[ray]" in said and said.count("\n") == 1

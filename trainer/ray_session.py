"""A connection to Ray: one of our own on this machine, or someone's cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

_INSTALL = (
    "trainer.distributed needs Ray: pip install 'onbeat-trainer[distributed]' "
    "(or 'onbeat[distributed]')."
)
LOOPBACK = "127.0.0.1"
_TOKEN = secrets.token_hex(32)
_PATIENCE = 10.0  # Seconds for a first answer of a cluster.
_LONGEST_DIRECTORY = 40  # Ray adds names of its own, and sockets allow 107 bytes.


@dataclasses.dataclass(frozen=True)
class Session:
    """A connection to Ray.

    Attributes:
      ray: the module.
      is_local: whether Ray was started here and ends with the session.
      logs: directory of what collectors print, if it is on this machine.
    """

    ray: Any
    is_local: bool
    logs: str | None


def require_ray() -> None:
    """Raises ImportError, in one line, if Ray is not installed. Does not import it."""
    if importlib.util.find_spec("ray") is None:
        raise ImportError(_INSTALL)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Session]:
    """Connects to Ray, and leaves it as it was found.

    Args:
      address: of a running cluster, `auto` to look for one, None to start Ray on
        this machine: on the loopback interface, without dashboard, and with a token
        that only its own processes know. A connection that the process already has
        is used, and kept.

    Raises:
      ImportError: Ray is not installed.
      ConnectionError: there is no cluster at `address`.
    """
    require_ray()
    ray = importlib.import_module("ray")
    if ray.is_initialized():
        yield Session(ray, is_local=False, logs=None)
    elif address is None:
        with _local(ray) as session:
            yield session
    else:
        with _joined(ray, address) as session:
            yield session


@contextlib.contextmanager
def _local(ray: Any) -> Iterator[Session]:
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(_short_directory())
        stack.enter_context(_environment())
        stack.callback(ray.shutdown)
        with _quiet(), _signal_handler_kept():
            context = ray.init(
                address="local",
                include_dashboard=False,
                configure_logging=False,
                log_to_driver=False,
                _temp_dir=directory,
            )
        _check_loopback(context.address_info["node_ip_address"])
        logs = os.path.join(context.address_info["session_dir"], "logs")
        yield Session(ray, is_local=True, logs=logs)


@contextlib.contextmanager
def _joined(ray: Any, address: str) -> Iterator[Session]:
    with contextlib.ExitStack() as stack:
        stack.callback(ray.shutdown)
        _join(ray, address)
        yield Session(ray, is_local=False, logs=None)


def _join(ray: Any, address: str) -> None:
    errors = (OSError, RuntimeError, ValueError, ray.exceptions.RayError)
    try:
        _probe(address)
        with _quiet(), _signal_handler_kept(), _impatient():
            ray.init(address=address, configure_logging=False, log_to_driver=False)
    except errors as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ConnectionError(
            f"address is {address!r}, where no Ray cluster could be joined: "
            f"{lines[0].rstrip('.')}. Start one with `ray start --head`, or leave "
            "address out to run on this machine alone."
        ) from error


def _probe(address: str) -> None:
    """Raises OSError if nobody listens there; Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Ray asks once, for 40 s, instead of 20 times; the caller's own figure counts."""
    name = "RAY_gcs_server_port_wait_time_s"
    with mock.patch.dict(os.environ, {name: os.environ.get(name, "1")}):
        yield


@contextlib.contextmanager
def _short_directory() -> Iterator[str]:
    parent = tempfile.gettempdir()
    if len(parent) > _LONGEST_DIRECTORY and os.path.isdir("/tmp"):
        parent = "/tmp"
    directory = tempfile.mkdtemp(prefix="onbeat-ray-", dir=parent)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """What Ray and the processes it starts read from the environment."""
    variables = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # Keeps to the loopback interface, as Ray does by itself on other systems.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": _TOKEN,
    }
    # The same for a Ray that was imported before.
    constants = importlib.import_module("ray._private.ray_constants")
    try:
        with (
            mock.patch.dict(os.environ, variables),
            mock.patch.object(constants, "ENABLE_RAY_CLUSTER", False),
        ):
            _read_authentication()
            yield
    finally:
        _read_authentication()


def _read_authentication() -> None:
    """Has Ray read mode and token anew; it would keep the first ones it saw.

    A cluster that is joined later has others, and would never answer to these.
    """
    raylet = importlib.import_module("ray._raylet")
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ray tells whoever starts it about tokens and dashboards."""
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _signal_handler_kept() -> Iterator[None]:
    """Ray puts a handler of its own for SIGTERM, which would end a loop halfway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_loopback(host: str) -> None:
    if not host.startswith("127.") and host != "::1":
        raise RuntimeError(
            f"Ray listens on {host} instead of the loopback interface. It was stopped. "
            "Start it yourself with `ray start --head`, then pass address='auto'."
        )

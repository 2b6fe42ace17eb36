"""The management port: `/livez`, `/readyz`, `/metrics`, `/version`, answered from a thread of its own.

A thread, so that it answers while the event loop of the service is blocked, which is what `/livez` is for.
Neither liveness nor readiness asks whether the broker is reachable: restarting us would not bring it back.
"""

import asyncio
import errno
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import orjson
import uvicorn
from prometheus_client import CollectorRegistry, make_asgi_app

from holdshort import __version__

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Health(Protocol):
    """What a service says of itself; called from another thread, so only reads."""

    def live(self) -> bool:
        """The loop turns."""
        ...

    def ready(self) -> bool:
        """Everything assigned is restored and runs."""
        ...

    def report(self) -> Any:
        """The details, as JSON."""
        ...


class Management:
    """Serves the management port until it is stopped."""

    def __init__(self, host: str, port: int, health: Health, registry: CollectorRegistry) -> None:
        self._host, self._port = host, port
        self._health = health
        self._metrics = make_asgi_app(registry)
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            log_config=None,
            log_level="error",
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="management", daemon=True)

    @property
    def address(self) -> str:
        """Host and port; once started, the port that was found if any would do (0)."""
        port = self._socket.getsockname()[1] if self._socket else self._port
        return f"{self._host}:{port}"

    def start(self) -> None:
        """Returns once the port answers. Raises OSError, with what to set, if it cannot be had."""
        self._socket = self._bind()
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
            if not self._thread.is_alive():
                raise OSError(f"the management port {self.address} does not answer")

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            return socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "is taken" if taken else f"cannot be had ({error.strerror})"
            mend = "PORT to one that is free" if taken else "HOST and HOLDSHORT_MANAGEMENT_PORT"
            raise OSError(
                f"the management port {self.address} {why}: set HOLDSHORT_MANAGEMENT_{mend}"
            ) from error

    def stop(self) -> None:
        if self._socket is None:
            return
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()

    def _serve(self) -> None:
        assert self._socket is not None
        asyncio.run(self._server.serve(sockets=[self._socket]))

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/metrics":
            await self._metrics(scope, receive, send)
        elif path in ("/livez", "/readyz", "/healthz"):
            fine = self._health.live() if path == "/livez" else self._health.ready()
            await _answer(send, 200 if fine else 503, {"ok": fine, "lanes": self._health.report()})
        elif path == "/version":
            await _answer(send, 200, {"version": __version__})
        else:
            await _answer(send, 404, {"paths": ["/livez", "/readyz", "/metrics", "/version"]})


async def _answer(send: Send, status: int, body: Any) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(body)})

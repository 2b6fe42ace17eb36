"""The management port: `/livez`, `/readyz`, `/metrics`, `/version`, answered from a thread of its own.

A thread, so that it answers while the event loop of the service is blocked, which is what `/livez` is for.
Neither liveness nor readiness asks whether the broker is reachable: restarting us would not bring it back.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
        self.address = f"{host}:{port}"
        self._health = health
        self._metrics = make_asgi_app(registry)
        config = uvicorn.Config(
            self._app,
            host=host,
            port=port,
            interface="asgi3",
            log_config=None,
            log_level="error",
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="management", daemon=True)

    def start(self) -> None:
        """Returns once the port answers. Raises OSError if it cannot be had."""
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise OSError(f"the management port {self.address} cannot be used")
            self._thread.join(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=5)

    def _serve(self) -> None:
        with suppress(SystemExit):  # uvicorn's way of saying that the port is taken
            asyncio.run(self._server.serve())

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

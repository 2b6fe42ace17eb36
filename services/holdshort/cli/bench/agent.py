"""The load's agent: begins and ends every run that it is given, as the contract asks of agents."""

from typing import Any, Final

from holdshort.cli.bench.exact import fact_of
from holdshort.cli.bench.load import finished, started, thread_of
from holdshort.cli.bench.wire import Headers, Sender
from holdshort.contract.messages import ADMISSION, RUN

ECHOED: Final = frozenset({RUN, ADMISSION})


class Agent:
    """Answers records of `runs.default` at once, under the run id that was forwarded, echoing its headers."""

    def __init__(self, sender: Sender, agent_events: str) -> None:
        self._sender = sender
        self._topic = agent_events

    def run(self, message: Any) -> None:
        key, run = message.key(), fact_of(message).run
        headers: Headers = [header for header in message.headers() or () if header[0] in ECHOED]
        thread = thread_of(key)
        self._sender.send(self._topic, (key, started(thread, run)), headers)
        self._sender.send(self._topic, (key, finished(thread, run)), headers)

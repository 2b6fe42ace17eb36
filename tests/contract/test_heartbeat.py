"""Row *heartbeat* of contract 2: CUSTOM named `holdshort:heartbeat`."""

from tests.expected import ignored, lost, passed
from tests.playbook import Playbook, client, later, run_of, sdk


def test_it_is_not_shown() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.beats("r1") << ignored(emitted=[])


def test_it_renews_the_lease() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), later(minutes=10))
    play >> sdk.beats("r1") << ignored()
    play(later(minutes=14))
    assert play.state().run is not None

    play >> later(minutes=2) << lost()


def test_as_the_first_event_of_a_run_it_does_not_show_it_as_running() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.beats("r1") << ignored(emitted=[])
    assert run_of(play).seen_at == play.at

    play >> sdk.starts("r1") << passed(shown=["RUN_STARTED"])


def test_over_the_limit_it_is_still_a_heartbeat() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.beats("r1").adding(value="x" * 1024 * 1024) << ignored(emitted=[])


def test_custom_events_of_other_names_are_shown() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.event("CUSTOM", name="holdshort:other", value=1) << passed(shown=["CUSTOM"])
    play >> sdk.event("CUSTOM") << passed(shown=["CUSTOM"])


def test_it_brings_a_lost_run_back_without_showing_it() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> later(minutes=16) << lost()
    play >> sdk.beats("r1") << ignored(emitted=[])
    assert run_of(play).run_id == "r1"

    play >> sdk.says(run="r1") << passed(shown=["RUN_STARTED", "TEXT_MESSAGE_CONTENT"])

"""Row *same input again* of contract 3: byte for byte the input of the run in flight."""

from tests.expected import admitted, duplicate, opened, quietly_refused
from tests.playbook import Playbook, agent, client, sdk, team


def test_nothing_is_emitted_for_its_caller_already_follows_that_run() -> None:
    play = Playbook()
    play >> client.asks("r1") << admitted()
    before = play.state()
    play >> client.asks("r1") << duplicate
    assert play.state() == before


def test_a_covering_resume_again_is_not_forwarded_twice() -> None:
    play = Playbook()
    play >> agent.interrupts("r0", "a") << opened("a")
    play >> client.resumes("r1", a=True) << admitted()
    play(sdk.starts("r1"))
    play >> client.resumes("r1", a=True) << duplicate


def test_from_resumes_it_is_a_duplicate_too() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"), team.resumes("hs-1", a=True))
    play >> team.resumes("hs-1", a=True) << duplicate


def test_one_byte_of_difference_makes_it_another_input() -> None:
    play = Playbook()
    play >> client.asks("r1") << admitted()
    play >> client.asks("r1").padded(200) << quietly_refused("RUN_ID_IN_USE")


def test_headers_and_time_make_no_difference() -> None:
    play = Playbook()
    play >> client.asks("r1") << admitted()
    play >> client.asks("r1").having(agent="another").but(after=3600) << duplicate

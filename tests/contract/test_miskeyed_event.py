"""Row *miskeyed* of contract 2: a `threadId` that is not the key, or a partition that is not the thread's."""

from tests.expected import passed, unreadable
from tests.playbook import Playbook, agent

from holdshort.contract.keys import partition_of

MISKEYED = unreadable("MISKEYED_RECORD", emitted=["dead-letters"])


def test_a_thread_id_in_the_value_that_is_not_the_key_is_a_dead_letter() -> None:
    play = Playbook()
    play >> agent.starts("r1").adding(threadId="another") << MISKEYED


def test_a_thread_id_that_is_not_text_is_a_dead_letter() -> None:
    play = Playbook()
    play >> agent.starts("r1").adding(threadId=1) << MISKEYED


def test_a_thread_id_that_is_absent_null_or_blank_is_the_key() -> None:
    for absent in (None, "", "  "):
        play = Playbook()
        play >> agent.starts("r1").adding(threadId=absent) << passed()
        play >> agent.says(run="r1") << passed()


def test_a_record_without_a_key_is_a_dead_letter() -> None:
    play = Playbook()
    play >> agent.starts("r1").but(key=None) << MISKEYED


def test_a_blank_key_is_a_dead_letter() -> None:
    play = Playbook()
    play >> agent.starts("r1").but(key="  ").adding(threadId="  ") << MISKEYED


def test_a_key_that_is_not_text_is_a_dead_letter() -> None:
    play = Playbook()
    play >> agent.says(run="r1").but(key="\udcff") << MISKEYED


def test_a_partition_that_is_not_the_threads_is_a_dead_letter() -> None:
    play = Playbook(partitions=12)
    home = partition_of(b"t", 12)
    play >> agent.starts("r1").but(partition=(home + 1) % 12) << MISKEYED
    play >> agent.starts("r1").but(partition=home) << passed()

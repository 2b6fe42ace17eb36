"""Operators' and teams' commands under their own names: what each may is enough, what it may not is told."""

import json
from pathlib import Path

import pytest
from tests.clients import Json
from tests.security.people import read, send
from tests.security.secured import Served, Site, holdshort
from tests.security.test_refusals import wrong_password

pytestmark = [pytest.mark.broker, pytest.mark.system]


def objects(out: str) -> list[Json]:
    return [json.loads(line) for line in out.splitlines()]


def as_team(site: Site, team: str, **more: str) -> dict[str, str]:
    """A team has its credentials, and no configuration file."""
    known = site.environment(f"team-{team}", **more)
    return {
        name: one for name, one in known.items() if name.startswith("KAFKA_") or name == "HOLDSHORT_PREFIX"
    }


def test_a_question_is_seen_answered_and_abandoned_with_no_more_than_the_printed_rights(site: Site) -> None:
    operator = site.environment("operator")
    with (
        Served(site.environment("gatekeeper"), "gatekeeper") as gatekeeper,
        Served(site.environment("router"), "router") as router,
    ):
        gatekeeper.until_ready()
        router.until_ready()
        for thread in ("t-answered", "t-abandoned"):
            interrupts = [{"id": thread, "reason": "payments:transfer"}]
            ids = {"threadId": thread, "runId": "r1"}
            outcome = {"type": "interrupt", "interrupts": interrupts}
            send(site, "agent-default", "agent-events.default", {"type": "RUN_STARTED", **ids})
            send(
                site,
                "agent-default",
                "agent-events.default",
                {"type": "RUN_FINISHED", **ids, "outcome": outcome},
            )
            read(site, "team-payments", "approvals.payments", 1, threadId=thread)

        listed = holdshort(operator, "interrupts", "list", "--json", "--team", "payments")
        cancelled = holdshort(operator, "interrupts", "cancel", "t-abandoned", "--yes")
        abandoned = holdshort(operator, "interrupts", "abandon", "t-abandoned", "--yes")
        answered = holdshort(
            as_team(site, "payments"), "approve", "--team=payments", "answer", "t-answered", "--deny"
        )

    assert {one["threadId"] for one in objects(listed.stdout)} >= {"t-answered", "t-abandoned"}, listed.stderr
    assert {one["team"] for one in objects(listed.stdout)} == {"payments"}
    assert cancelled.returncode == 1
    assert "may not be read with these rights: abandon it, or say --incomplete" in cancelled.stderr
    assert (abandoned.returncode, "abandoned" in abandoned.stdout) == (0, True), abandoned.stderr
    assert (answered.returncode, "accepted" in answered.stdout) == (0, True), answered.stderr


def test_an_operator_has_a_thread_forgotten_and_an_auditor_proves_the_audit_whole(site: Site) -> None:
    with (
        Served(site.environment("gatekeeper"), "gatekeeper") as gatekeeper,
        Served(site.environment("router"), "router") as router,
    ):
        gatekeeper.until_ready()
        router.until_ready()
        ids = {"threadId": "t-forgotten", "runId": "r1"}
        asked = {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "payments:transfer"}]}
        for event in ({"type": "RUN_STARTED"}, {"type": "RUN_FINISHED", "outcome": asked}):
            send(site, "agent-default", "agent-events.default", {**event, **ids})
        read(site, "team-payments", "approvals.payments", 1, threadId="t-forgotten")

        forgotten = holdshort(site.environment("operator"), "threads", "forget", "t-forgotten", "--yes")
        verified = holdshort(site.environment("auditor"), "audit", "verify")

    assert forgotten.returncode == 0, forgotten.stderr
    assert verified.returncode == 0, verified.stdout
    assert "are whole, their newest records included" in verified.stdout


def test_a_team_may_not_look_into_another_teams_queue(site: Site) -> None:
    done = holdshort(as_team(site, "payments"), "approve", "--team", "dba", "list")

    assert done.returncode == 2
    assert f"you may not even see the topic {site.prefix}approvals.dba" in done.stderr
    assert "Traceback" not in done.stderr


def test_who_only_looks_may_list_and_may_not_end_anything(site: Site) -> None:
    tool = site.environment("tool")

    listed = holdshort(tool, "interrupts", "list")
    ended = holdshort(tool, "interrupts", "abandon", "anything", "--yes")

    assert listed.returncode == 0, listed.stderr
    assert ended.returncode == 2
    assert f"you may not even see the topic {site.prefix}resumes" in ended.stderr


def test_an_operator_reads_dead_letters_and_may_not_write_everywhere_they_came_from(site: Site) -> None:
    with Served(site.environment("gatekeeper"), "gatekeeper") as gatekeeper:
        gatekeeper.until_ready()
        send(site, "client", "inputs", {"threadId": "t-letter"})
        read(site, "operator", "dead-letters", 1, threadId="t-letter")
    operator = site.environment("operator")

    listed = holdshort(operator, "dlq", "list", "--json", "--key", "t-letter")
    replayed = holdshort(operator, "dlq", "replay", "--yes", "--key", "t-letter")

    assert [one["code"] for one in objects(listed.stdout)] == ["MALFORMED_INPUT"]
    assert replayed.returncode == 1
    assert "you may not write inputs (`holdshort acls print` says who may)" in replayed.stdout


@pytest.mark.parametrize("principal", ["gatekeeper", "router"])
def test_the_doctor_finds_a_service_to_have_all_it_needs(principal: str, site: Site) -> None:
    done = holdshort(
        site.environment(principal), "doctor", "--json", "--principal", principal, "--write", "--patience=5"
    )

    found = objects(done.stdout)
    fine = {one["check"] for one in found if one["status"] == "ok"}
    assert {"tls", "sasl", "topics", "rights", "transaction"} <= fine, done.stdout + done.stderr
    assert [one for one in found if one["status"] == "finding"] == []
    [tls] = [one["said"] for one in found if one["check"] == "tls"]
    assert "TLSv1.3, its certificate is good for" in tls


def test_the_doctor_finds_the_rights_that_are_missing(site: Site) -> None:
    done = holdshort(
        site.environment("team-payments"), "doctor", "--json", "--principal", "operator", "--patience=5"
    )

    assert done.returncode == 1, done.stderr
    missing = [one for one in objects(done.stdout) if one["check"] == "rights"]
    assert {one["said"] for one in missing} == {
        f"no right to Write on {site.prefix}resumes",
        f"no right to Read on {site.prefix}pending",
        f"no right to Read on {site.prefix}gathering",
        f"no right to Read on {site.prefix}dead-letters",
    }
    assert {one["advice"] for one in missing} == {
        "`holdshort acls print --principal operator` has what to give"
    }


def test_the_doctor_finds_a_transaction_that_is_not_allowed(site: Site) -> None:
    done = holdshort(site.environment("router"), "doctor", "--json", "--principal=gatekeeper", "--patience=5")

    [said] = [one["said"] for one in objects(done.stdout) if one["check"] == "transaction"]
    assert "the transaction is not allowed" in said


def test_the_doctor_says_who_is_not_let_in_and_never_with_which_password(site: Site, tmp_path: Path) -> None:
    more = wrong_password(site.secured, tmp_path)

    done = holdshort(site.environment("operator", **more), "doctor")

    assert done.returncode == 1
    assert f"does not let {site.user('operator')} in" in done.stdout
    assert "KAFKA_SASL_*" in done.stdout
    assert "not-the-password" not in done.stdout + done.stderr


def test_a_wrong_password_is_one_sentence(site: Site, tmp_path: Path) -> None:
    more = wrong_password(site.secured, tmp_path)

    done = holdshort(as_team(site, "payments", **more), "approve", "--team", "payments", "list")

    [line] = done.stderr.splitlines()
    assert (done.returncode, "does not let" in line) == (2, True)

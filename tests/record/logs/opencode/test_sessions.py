"""Sessions of OpenCode: children, what was taken back, shares, titles, order, and versions of one record."""

from __future__ import annotations

import json
from typing import Any

from support.native_logs import Imported
from support.opencode_logs import (
    SESSION,
    START,
    answers,
    assistant,
    conversation,
    export,
    import_messages,
    import_text,
    part,
    session,
    tool,
    user,
)

CHILD = "ses_6000000000000000000000b2"


def _child(**members: Any) -> dict[str, Any]:
    told = session(id=CHILD, title="Child session - 2026-07-01T10:00:03Z", agent="explore")
    told["time"] = {"created": START + 3_000, "updated": START + 9_000}
    opening = user(3, id="msg_0003child", sessionID=CHILD)
    later = user(4, id="msg_0004child", sessionID=CHILD)
    aside = user(5, id="msg_0005child", sessionID=CHILD)
    return {
        "info": told | members,
        "messages": answers(
            [
                (opening, [part(opening, 1, "text", text="Find the bug")]),
                (later, [part(later, 1, "text", text="Look again")]),
                (aside, [part(aside, 1, "text", text="Hello from Alice")]),
            ]
        ),
    }


def _parent() -> dict[str, Any]:
    message = assistant(2)
    calls = [
        tool(message, number, "task", input={"prompt": prompt}, metadata={"sessionId": CHILD})
        for number, prompt in ((1, "Find the bug"), (2, "Look again"))
    ]
    return {"info": session(), "messages": answers([*conversation()[:1], (message, calls)])}


def _import(*values: Any) -> Imported:
    imported = import_text("".join(json.dumps(value) for value in values).encode())
    imported.assert_sound()
    return imported


def test_a_sub_agent_is_a_child_session() -> None:
    """D-LOG-11: the agent above says the prompts of its calls, a person says what no call says."""
    vcon = _import(_child(parentID=SESSION), _parent()).vcon
    root, child = vcon["sessions"]
    assert (root["agent_session_id"], child["agent_session_id"]) == (SESSION, CHILD)
    assert child["format"] == "autonomous"
    said = {entry["body"]: entry["parties"][0] for entry in vcon["dialog"]}
    assert said["Find the bug"] == said["Look again"] == said["Why does the shop fail?"] + 1
    assert said["Hello from Alice"] == 0
    assert vcon["parties"][-1]["name"] == "explore"


def test_the_call_links_a_child_that_names_no_parent() -> None:
    """A session that only the task call names is its child all the same."""
    vcon = _import(_parent(), _child()).vcon
    assert [told["agent_session_id"] for told in vcon["sessions"]] == [SESSION, CHILD]


def test_a_child_without_its_parent_is_told_so() -> None:
    """`parentID` of a session that is not in the import stands in session-start."""
    imported = _import(_child(parentID="ses_gone"))
    assert imported.codes["child-unlinked"] == 1
    assert imported.events("session-start")[0]["data"]["parent"] == {"agent_session_id": "ses_gone"}


def test_sessions_that_are_their_own_parents_do_not_loop() -> None:
    """R-19 for sessions: circles are cut."""
    alone = {"info": session(id="x", parentID="x"), "messages": []}
    imported = _import({**_parent(), "info": session(parentID=CHILD)}, _child(parentID=SESSION), alone)
    assert len(imported.sessions) == 3


def test_what_was_taken_back_is_superseded() -> None:
    """D-LOG-09: from the message of `revert` on everything is flagged, and still counts."""
    imported = import_messages(conversation(), revert={"messageID": "msg_0005user", "snapshot": "5ca1ab1e"})
    flagged = [
        entry["body"] for entry in imported.dialogs if "superseded" in entry["onrecord"].get("flags", ())
    ]
    assert flagged == ["Thank you."]
    assert imported.events("rewind")[0]["data"] == {"messageID": "msg_0005user", "snapshot": "5ca1ab1e"}
    assert imported.codes["superseded"] == 2
    assert imported.counts()["responses"] == 2


def test_a_part_can_be_where_it_was_taken_back_to() -> None:
    """`revert.partID` leaves the parts before it."""
    answer = conversation()[1][0]["id"]
    imported = import_messages(conversation(), revert={"messageID": answer, "partID": "prt_0002assistant04"})
    flags = {entry["body"]: entry["onrecord"].get("flags") for entry in imported.dialogs}
    assert flags["It does not fail any more."] == ["superseded"]
    assert not imported.events("tool-call")[0]["onrecord"].get("flags")


def test_a_place_that_is_missing_is_told() -> None:
    """A `revert` to an unknown message flags nothing."""
    imported = import_messages(conversation(), revert={"messageID": "msg_gone"})
    assert imported.codes["rewind-target-missing"] == 1
    assert imported.codes["superseded"] == 0


def test_share_secrets_are_left_out() -> None:
    """D-LOG-13: of a share only the host stays, wherever it stands."""
    share = {"url": "https://share.example.com/s/abc", "secret": "secret-of-the-share"}
    imported = import_messages(conversation(), share=share)
    assert imported.events("session-start")[0]["data"]["share"] == {"host": "share.example.com"}
    assert imported.codes["share-secret-dropped"] == 1
    glued = _import(session(), {"id": "abc", **share}, {"type": "brand-new", "deep": [{"share": share}]})
    assert glued.codes["share-secret-dropped"] == 2
    for text in (*imported.texts, *glued.texts):
        assert b"secret-of-the-share" not in text
        assert b"/s/abc" not in text


def test_the_title_of_a_model_is_the_subject() -> None:
    """D-LOG-29: the title is an event and the vCon's subject."""
    imported = import_messages(conversation())
    assert imported.vcon["subject"] == "A bug in the shop"
    assert imported.events("title")[0]["data"] == {"title": "A bug in the shop"}


def test_messages_and_parts_are_sorted() -> None:
    """Messages come by time and id, parts by id, whatever the order of the log."""
    messages = conversation()
    mixed = [(info, parts[::-1]) for info, parts in reversed(messages)]
    assert import_messages(mixed).bodies == import_messages(messages).bodies
    kinds = [
        event["type"] for event in import_messages(mixed).vcon["events"] if event["type"] != "system-event"
    ]
    assert kinds == ["reasoning", "tool-call", "tool-result", "tool-call", "tool-result"]


def test_parts_without_sortable_ids_keep_their_order() -> None:
    """Ids of another kind say nothing about the order."""
    message = user(1)
    parts = [part(message, number, "text", text=text) for number, text in ((2, "first"), (1, "second"))]
    for number, value in enumerate(parts):
        value["id"] = f"{'zy'[number]}-part"
    assert import_messages([(message, parts)]).bodies == ["first", "second"]


def test_the_same_record_again_is_a_duplicate() -> None:
    """R-16: an equal record is skipped; of two that differ the newest counts."""
    first = user(1)
    text = part(first, 1, "text", text="Hello")
    imported = _import(session(), first, text, first, {**text, "text": "Hello Bob"})
    assert imported.bodies == ["Hello Bob"]
    assert (imported.codes["duplicate-entry"], imported.codes["duplicate-entry-differs"]) == (1, 1)
    assert imported.accounting[0]["of_duplicates"] == {"duplicate-entry": 1, "older-version": 1}


def test_parts_without_message_are_orphans() -> None:
    """Nobody knows who said the text of an orphan; calls and thoughts stay what they are."""
    gone = assistant(2)
    imported = _import(session(), tool(gone, 1), part(gone, 2, "text", text="Who said this?"))
    assert not imported.dialogs
    (text,) = imported.events("orphan-text")
    assert (text["data"], text["onrecord"]["flags"]) == ({"text": "Who said this?"}, ["orphan"])
    assert imported.events("tool-call")[0]["onrecord"]["flags"] == ["orphan"]
    assert imported.codes["orphan-part"] == 2


def test_an_unknown_parent_is_kept() -> None:
    """R-19: a parent that is not there stands in `onrecord.parent`."""
    answer = assistant(1, parentID="msg_gone")
    imported = import_messages([(answer, [part(answer, 1, "text", text="Hi")])])
    assert imported.dialogs[0]["onrecord"]["parent"] == "msg_gone"
    assert imported.codes["dangling-parent"] == 1


def test_a_message_that_is_its_own_parent_does_not_loop() -> None:
    """R-19: circles of messages lose the link that closes them."""
    first = assistant(1, parentID="msg_0002assistant")
    second = assistant(2, parentID="msg_0001assistant")
    imported = import_messages([(one, [part(one, 1, "text", text="Hi")]) for one in (first, second)])
    assert imported.codes["parent-cycle"] == 1


def test_the_working_directory_may_change() -> None:
    """D-LOG-20: a message in another directory leaves a system-event."""
    first, second = assistant(1, parentID=None), assistant(2, path={"cwd": "/home/alice/other", "root": "/"})
    imported = import_messages([(one, [part(one, 1, "text", text="Hi")]) for one in (first, second)])
    assert imported.events("working-dir-change")[0]["data"] == {
        "from": "/home/alice/shop",
        "to": "/home/alice/other",
    }
    assert imported.vcon["sessions"][0]["environment"]["working_dir"] == "/home/alice/shop"


def test_the_import_is_a_function_of_the_bytes() -> None:
    """D-LOG-22: two imports of one export give the same vCon."""
    data = export(conversation())
    assert import_text(data).texts == import_text(data).texts


def test_share_secrets_inside_of_other_members_are_left_out() -> None:
    """D-LOG-13: the share of a session is no less secret below another member of session or message."""
    share = {"url": "https://share.example.com/s/abc", "secret": "secret-of-the-share"}
    (asked, parts), *others = conversation()
    imported = import_messages(
        [({**asked, "metadata": {"share": share}}, parts), *others], extra={"of": share}
    )
    assert imported.codes["share-secret-dropped"] == 2
    for text in imported.texts:
        assert b"secret-of-the-share" not in text
        assert b"share.example.com" in text

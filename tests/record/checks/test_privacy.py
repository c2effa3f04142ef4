"""Credentials, task handles and refused arguments: reported by place and pattern, never by text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.checks.checker import check
from onrecord.record.checks.privacy import member_names
from support.vcons import answer, decision, faults, findings, invocation, text, vcon

TOKEN = "Bearer abcdefghijklmnopqrstuv"


def json_body(value):
    return {"mediatype": "application/json", "encoding": "json", "body": value}


class TestCredentials:
    @pytest.mark.parametrize(
        "kind",
        ["tool-invocation", "tool-pending", "tool-progress", "tool-input", "tool-input-response", "tool-result",
         "tool-failure", "tool-error", "tool-denied", "tool-timeout", "tool-cancel"],
    )  # fmt: skip
    @pytest.mark.req("TI-207", "TI-208")
    def test_error_in_tool_events(self, kind):
        """A credential in a tool event is an error, in content and in headers alike."""
        body = json_body({"headers": {"Authorization": TOKEN}, "text": TOKEN})
        event = invocation(**body) if kind == "tool-invocation" else answer(kind, **body)
        found = {entry for entry in faults(vcon(event)) if entry[0].startswith("credential")}
        assert found == {
            ("credential-key", "error", "/events/0/body/headers/Authorization"),
            ("credential-found", "error", "/events/0/body/headers/Authorization"),
            ("credential-found", "error", "/events/0/body/text"),
        }

    def test_reason_is_searched(self):
        """The reason of a decision is searched like content."""
        assert ("credential-found", "error", "/events/0/reason") in faults(vcon(decision(reason=TOKEN)))

    def test_warning_elsewhere(self):
        """In messages and in open objects a credential is a warning: imported logs keep their text."""
        made = vcon(dialog=[{"type": "text", "start": "2026-11-02T12:00:00Z", "parties": 0,
                             "mediatype": "text/plain", "encoding": "none", "body": TOKEN}])  # fmt: skip
        made["sessions"][0]["dialog"] = [0]
        assert faults(made) == [("credential-found", "warning", "/dialog/0/body")]

    def test_escaped_spelling(self):
        """Spelling a letter as an escape hides nothing."""
        data = text(vcon(invocation(**json_body({"x": TOKEN})))).replace(b"Bearer", b"\\u0042earer")
        assert ("credential-found", "error", "/events/0/body/x") in findings(data)

    def test_replaced_is_clean(self):
        """What was replaced is not reported again."""
        body = json_body({"password": "[credential replaced: password]", "x": "[credential removed]"})
        assert faults(vcon(invocation(**body))) == []

    def test_binary_bodies_are_not_searched(self):
        """A base64url body is bytes, not text."""
        body = {"mediatype": "application/octet-stream", "encoding": "base64url", "body": "sk-" + "a" * 25}
        assert faults(vcon(invocation(**body))) == []

    def test_text_is_not_in_the_report(self):
        """The report names the pattern; the credential itself is nowhere in it."""
        result = check(text(vcon(invocation(**json_body({"password": "hunter2-hunter2", "x": TOKEN})))))
        report = json.dumps(result.to_json())
        assert "hunter2" not in report
        assert "abcdefghijklmnop" not in report

    def test_urls(self):
        """User information in a URL is found in content and in url members."""
        made = vcon(invocation(**json_body({"see": "at https://u:p@example.com/"})))
        assert faults(made) == [("url-userinfo", "error", "/events/0/body/see")]
        made = vcon(invocation(url="https://u@example.com/x", content_hash="sha512-" + "A" * 86))
        assert faults(made) == [("url-userinfo", "error", "/events/0/url")]

    @pytest.mark.parametrize(
        "place", ["https://example.com/bearer", "basic words", "sk-short", "ghp_x .eyJ AKIA"]
    )
    def test_texts_that_look_like_it(self, place):
        """The beginning of a credential, or an address without user information, is none."""
        assert faults(vcon(invocation(**json_body({"see": place, "url": "https://example.com/@x"})))) == []

    @pytest.mark.parametrize("blank", [" ", "\t", "\n", "\u2003", " \r\n "])
    def test_blanks(self, blank):
        """Any white space may stand before a token, however the text of the file spells it."""
        made = vcon(invocation(**json_body({"x": f"Bearer{blank}abcdefghijklmnopqrstuv"})))
        for data in (text(made), json.dumps(made, ensure_ascii=False).encode()):
            assert ("credential-found", "error", "/events/0/body/x") in findings(data)

    def test_quoted_user_information(self):
        """A quotation mark in the user information does not hide it."""
        made = vcon(invocation(**json_body({"see": 'https://u"x:p@example.com/'})))
        assert faults(made) == [("url-userinfo", "error", "/events/0/body/see")]

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=15,
        )
    )
    def test_member_names(self, value):
        """The names of all members are found, at every depth."""
        names = set()

        def collect(pairs):
            names.update(name for name, _ in pairs)

        json.loads(json.dumps(value), object_pairs_hook=collect)
        assert member_names(value) == names

    def test_validation(self):
        """The method of validation is named; four digits in a row are the data itself."""
        made = vcon()
        made["parties"][0]["validation"] = "PIN 4711"
        assert faults(made) == [("validation-secret", "warning", "/parties/0/validation")]


class TestProtocol:
    @pytest.mark.parametrize("body", [{"taskId": "t-1"}, {"task": {"taskId": "t-1", "status": "working"}}])
    def test_task_handle(self, body):
        """A task id in clear is a handle that may still open something."""
        found = faults(vcon(invocation(), answer("tool-pending", **json_body(body))))
        assert [entry[0] for entry in found] == ["task-handle-clear"]

    def test_request_state(self):
        """The requestState is never recorded, wherever it stands in a tool event."""
        made = vcon(invocation(), answer("tool-input", **json_body({"a": [{"requestState": "x"}]})))
        assert faults(made) == [("request-state-recorded", "error", "/events/1/body/a/0/requestState")]


class TestRefused:
    @pytest.mark.req("TI-124")
    def test_arguments_of_a_disallowed_call(self):
        """Arguments recorded for an operation that was disallowed are an error; without them there is none."""
        made = vcon(decision("disallowed"), invocation(**json_body({"a": 1})))
        assert ("refused-arguments", "error", "/events/1") in faults(made)
        made = vcon(decision("disallowed"), invocation())
        assert [entry[0] for entry in faults(made)] == ["invocation-after-disallowed"]

    def test_input_of_a_refused_tool_call(self):
        """The model's view of a refused call has input null; otherwise it is a warning."""
        call = {"type": "tool-call", "time": "2026-11-02T12:00:00Z", "session": 0, "party": 0, "tool_name": "now",
                "input": {"a": 1}, "call_id": "a"}  # fmt: skip
        made = vcon(call, decision("permission-required"), extensions=["ai_agent", "tool-invocation"])
        assert faults(made) == [("refused-arguments", "warning", "/events/0")]
        made["events"][0]["input"] = None
        assert faults(made) == []

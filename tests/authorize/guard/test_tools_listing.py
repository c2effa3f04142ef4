"""What tools a server has, asked for by the guard itself."""

import json

import pytest

from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.tools_listing import MAX_PAGES, ToolsListing
from onrecord.authorize.tool_names import MAX_TOOLS

SCHEMA = {"type": "object"}
HASH = "sha-256:PbXYhYgJiYf7YTUO3yUdI5qGrgfX1GWFg9ZzwQ6Wksk"


class Listing:
    def __init__(self):
        self.sent = []
        self.reports = []
        self.settled = 0
        self.failed = 0
        self.log = GuardLog(None)
        self.listing = ToolsListing(
            send=lambda line: self.sent.append(json.loads(line)),
            report=lambda tools, done: self.reports.append((list(tools), done)),
            settled=self._settle,
            failed=self._fail,
            log=self.log,
        )

    def _settle(self):
        self.settled += 1

    def _fail(self):
        self.failed += 1

    def answer(self, result, **more):
        message = {"jsonrpc": "2.0", "id": self.sent[-1]["id"], "result": result, **more}
        if result is None:
            del message["result"]
        line = json.dumps(message).encode()
        return self.listing.take(message, line)

    def names(self):
        return [tool.name for tool in self.reports[-1][0]]


def tool(name="a", schema=SCHEMA):
    return {"name": name, "inputSchema": schema}


def test_pages_are_followed_and_hidden():
    """All pages, ids of the guard's own, and the answers are taken."""
    it = Listing()
    it.listing.begin()
    assert it.answer({"tools": [tool("a")], "nextCursor": "2"})
    assert it.sent[1]["params"]["cursor"] == "2"
    assert it.answer({"tools": [tool("b")]})
    assert [one["id"] for one in it.sent] == ["onrecord-tools-1", "onrecord-tools-2"]
    assert it.names() == ["a", "b"]
    assert not it.listing.is_settled
    it.reports[0][1]()
    assert it.listing.is_settled
    assert it.settled == 1
    assert not it.listing.take({"id": "other"}, b"")


def test_modern_requests_name_their_revision():
    """Each request of the modern era carries version and capabilities."""
    it = Listing()
    it.listing.begin(revision="2026-07-28")
    assert it.sent[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    it.answer({"tools": [], "nextCursor": "x"})
    assert it.sent[1]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}


@pytest.mark.parametrize(
    ("tools", "reported"),
    [
        ([tool("a"), tool("a")], ["a"]),
        ([tool("a"), tool("a", {"type": "array"}), tool("b")], ["b"]),
        ([tool("a", {"maximum": 2**63}), tool("b")], ["b"]),
        ([{"name": 5}, "x", None, tool("b")], ["b"]),
        ([], []),
    ],
)
def test_what_cannot_be_pinned_is_left_out(tools, reported):
    """A name with two schemas, or a schema without canonical form, is unknown to policy and so denied."""
    it = Listing()
    it.listing.begin()
    it.answer({"tools": tools})
    assert it.names() == reported


def test_a_change_makes_calls_wait_again():
    """After list_changed nothing is settled until the new list is acknowledged; a late acknowledgement does not count."""  # noqa: E501
    it = Listing()
    it.listing.begin()
    it.answer({"tools": [tool()]})
    it.listing.begin()
    it.reports[0][1]()
    assert not it.listing.is_settled
    it.answer({"tools": [tool(schema={"type": "array"})]})
    it.reports[1][1]()
    assert it.listing.is_settled
    assert it.reports[0][0] != it.reports[1][0]


def test_a_change_during_a_listing_starts_it_anew():
    """The answer under way may be half old, half new."""
    it = Listing()
    it.listing.begin()
    it.listing.begin()
    assert len(it.sent) == 1
    it.answer({"tools": [tool("old")]})
    assert it.reports == []
    it.answer({"tools": [tool("new")]})
    assert it.names() == ["new"]


def test_a_server_without_tools_reports_none():
    """-32601 means that there are none; another error means that it is not known."""
    it = Listing()
    it.listing.begin()
    it.answer(None, error={"code": -32601, "message": "x"})
    assert it.names() == []
    it = Listing()
    it.listing.begin()
    it.answer(None, error={"code": -32600, "message": "x"})
    assert it.reports == []
    assert it.failed == 1
    assert not it.listing.has_begun


@pytest.mark.parametrize("result", [{}, {"tools": None}, {"tools": {}}, [], "x"])
def test_an_answer_that_is_none_settles_nothing(result):
    """A malformed list leaves all tools unknown."""
    it = Listing()
    it.listing.begin()
    it.answer(result)
    assert it.reports == []
    assert it.failed == 1


def test_a_cursor_that_never_ends_is_stopped():
    """A server that always names a next page is not followed for ever."""
    it = Listing()
    it.listing.begin()
    for _ in range(MAX_PAGES):
        it.answer({"tools": [tool()], "nextCursor": "again"})
    assert len(it.sent) == MAX_PAGES
    assert it.names() == ["a"]


@pytest.mark.parametrize("name", ["", "x" * 257, "\u00e9" * 129, "\ud800" * 90])
def test_a_name_that_cannot_be_called_takes_no_other_tool_away(name):
    """The authority refuses a whole report for it, so it is left out here."""
    it = Listing()
    it.listing.begin()
    it.answer({"tools": [tool("a"), tool(name), tool("b" * 256)]})
    assert it.names() == ["a", "b" * 256]


def test_too_many_tools_are_cut_to_what_a_report_holds():
    """The same for their number, however they are spread over pages."""
    it = Listing()
    it.listing.begin()
    it.answer({"tools": [tool(f"t{number}") for number in range(MAX_TOOLS + 1)], "nextCursor": "2"})
    assert it.names() == [f"t{number}" for number in range(MAX_TOOLS)]


def test_an_acknowledgement_for_the_list_before_settles_nothing():
    """The tools have changed and cannot be listed now: what the authority knows is out of date."""
    it = Listing()
    it.listing.begin()
    it.answer({"tools": [tool()]})
    it.listing.begin()
    it.answer(None, error={"code": -32603, "message": "not now"})
    (_, acknowledged) = it.reports[0]
    acknowledged()
    assert not it.listing.is_settled
    assert (it.settled, it.failed) == (0, 1)

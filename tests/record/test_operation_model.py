"""The state model against a slow one: record.md 4.5 to 4.7 written down a second time, and run by plain searches."""

from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.operations import read_operations
from onrecord.record.standing import STRICTNESS
from support.vcons import answer, decision, invocation, standing

TABLE = """
    running           pending  stay  input  none  timed  cancel
    pending           out      stay  input  none  timed  cancel
    input-required    out      busy  out    back  timed  cancel
    timed-out         out      stay  out    none  out    cancel
    cancel-requested  out      stay  out    none  out    out
"""
"""What each signal does in each state: where it leads, or it stays, with the finding of `CODES` if it has one."""

SIGNALS = (
    "tool-pending",
    "tool-progress",
    "tool-input",
    "tool-input-response",
    "tool-timeout",
    "tool-cancel",
)
ENDS = {
    "tool-result": "completed",
    "tool-failure": "failed",
    "tool-error": "errored",
    "tool-denied": "denied",
}
NEXT = {
    "pending": "pending",
    "input": "input-required",
    "timed": "timed-out",
    "cancel": "cancel-requested",
}
CODES = {
    ("tool-pending", "out"): "pending-out-of-model",
    ("tool-input", "out"): "input-out-of-model",
    ("tool-timeout", "out"): "timeout-out-of-model",
    ("tool-cancel", "out"): "cancel-out-of-model",
    ("tool-input-response", "none"): "input-response-without-input",
    ("tool-progress", "busy"): "progress-while-input-required",
}
CELLS = {
    (state, signal): cell
    for state, *cells in map(str.split, TABLE.strip().splitlines())
    for signal, cell in zip(SIGNALS, cells, strict=True)
}
WORKING = ("running", "pending", "input-required")
ACTIVE = (*WORKING, "timed-out", "cancel-requested")


def machine(kinds):
    """The state after each event of an attempt, and the finding that each gives."""
    state, origin, started = "none", "running", False
    told = []
    for kind in kinds:
        code = None
        if kind == "tool-invocation":
            if started:
                code = "operation-id-reused"
            elif state == "none":
                state = "running"
            started = True
        else:
            early, state = state == "none", "running" if state == "none" else state
            if state in ENDS.values():
                code = "second-end" if kind in ENDS else "event-after-end"
            elif kind in ENDS:
                code = None if state in WORKING else "late-response"
                state = ENDS[kind]
            else:
                cell = CELLS[state, kind]
                code = CODES.get((kind, cell))
                if cell == "back":
                    state = origin
                elif cell in NEXT:
                    state, origin = NEXT[cell], state if cell == "input" else origin
            code = "response-before-invocation" if early else code
        told.append((state, code))
    return told


class Slow:
    """One record, searched from its beginning for every question."""

    def __init__(self, events):
        moments, last = [], ""
        for event in events:
            last = event["time"] if event["time"].startswith("2026") else last
            moments.append(last)
        order = sorted(range(len(events)), key=lambda index: (moments[index], index))
        known = ("policy-decision", "tool-invocation", *SIGNALS, *ENDS)
        self.events = [(index, events[index]) for index in order if events[index]["type"] in known]

    def of_attempt(self, operation_id, attempt, until=None):
        """Index and type of the events of an attempt, before a place."""
        return [
            (index, event["type"])
            for index, event in self.events[:until]
            if event["type"] != "policy-decision"
            and (event["operation_id"], event["attempt"]) == (operation_id, attempt)
        ]

    def attempts(self, operation_id, until=None):
        """The attempts of an operation in the order in which they were first seen."""
        return list(
            dict.fromkeys(
                event["attempt"]
                for _, event in self.events[:until]
                if event["type"] != "policy-decision" and event["operation_id"] == operation_id
            )
        )

    def state(self, operation_id, attempt, until=None):
        kinds = [kind for _, kind in self.of_attempt(operation_id, attempt, until)]
        return machine(kinds)[-1][0]

    def is_started(self, operation_id, attempt, until=None):
        return "tool-invocation" in [kind for _, kind in self.of_attempt(operation_id, attempt, until)]

    def once(self, operation_id, until=None):
        """Attempt, place, index and value of the once decisions of an operation before a place."""
        return [
            (event["attempt"], place, index, event["decision"])
            for place, (index, event) in enumerate(self.events[:until])
            if event["type"] == "policy-decision"
            and event["policy_life"] == "once"
            and event["operation"] == "tool-invocation"
            and event["operation_id"] == operation_id
        ]

    def in_effect(self, party, server, until):
        """The standing decisions in effect before a place, by tool; None is the whole server."""
        return {
            event.get("tool"): (event["decision"], index)
            for index, event in self.events[:until]
            if event["type"] == "policy-decision"
            and event["policy_life"] == "standing"
            and event["operation"] == "tool-invocation"
            and (event["party"], event["server"]) == (party, server)
            and isinstance(event.get("tool", ""), str)
        }

    def effective(self, place):
        """Decision, source and event of what is in effect for a tool-invocation (D-49 to D-51)."""
        _, event = self.events[place]
        fitting = [one for one in self.once(event["operation_id"], place) if one[0] <= event["attempt"]]
        if fitting:
            _, _, index, value = max(fitting)
            return value, "once", index
        standing = self.in_effect(event["party"], event["server"], place)
        for tool, source in ((event["tool"], "standing-tool"), (None, "standing-server")):
            if tool in standing:
                value, index = standing[tool]
                return value, source, index
        return None, "none", None

    def findings(self):
        """Code, event and severity (None is the usual one) of every finding of the state model."""
        found = []
        for place, (index, event) in enumerate(self.events):
            if event["type"] != "policy-decision":
                found += self._of_signal(place, index, event)
            elif event["operation"] != "tool-invocation":
                continue
            elif event["policy_life"] == "once":
                found += self._of_once(place, index, event)
            elif "tool" not in event:
                own = self.in_effect(event["party"], event["server"], place)
                mildest = min((STRICTNESS[value] for tool, (value, _) in own.items() if tool), default=9)
                if mildest < STRICTNESS[event["decision"]]:
                    found.append(("standing-conflict", index, None))
        for name in {event["operation_id"] for _, event in self.events if "operation_id" in event}:
            attempts = [number for number in self.attempts(name) if self.is_started(name, number)]
            for number in attempts:
                if self.state(name, number) in ACTIVE:
                    own = self.of_attempt(name, number)
                    start = next(index for index, kind in own if kind == "tool-invocation")
                    found.append(("attempt-unfinished", start, None))
            last = {number: index for number, _, index, _ in self.once(name)}
            seen = max(self.attempts(name), default=0)
            found += [("not-performed", last[n], None) for n in last if n > seen]
        return found

    def _of_signal(self, place, index, event):
        name, number = event["operation_id"], event["attempt"]
        before = self.of_attempt(name, number, place)
        code = machine([kind for _, kind in [*before, (index, event["type"])]])[-1][1]
        if code is not None:
            yield code, index, None
        seen = self.attempts(name, place)
        if number not in seen and number != max(seen, default=0) + 1:
            yield "attempt-gap", index, None
        if event["type"] != "tool-invocation" or code == "operation-id-reused":
            return
        others = [other for other in seen if other != number]
        previous = self.state(name, others[-1], place) if others else "none"
        if previous in ACTIVE:
            yield "attempt-overlap", index, "warning" if previous in WORKING else None
        value, _, _ = self.effective(place)
        performing = {
            None: "undecided",
            "permission-required": "permission-unobserved",
            "disallowed": "invocation-after-disallowed",
        }
        if value in performing:
            yield performing[value], index, None

    def _of_once(self, place, index, event):
        name, number = event["operation_id"], event["attempt"]
        if self.is_started(name, number, place):
            yield "decision-after-invocation", index, None
        elif number in [other for other, *_ in self.once(name, place)]:
            yield "decision-changed", index, None
        standing = self.in_effect(event["party"], event["server"], place)
        if event["tool"] in standing or None in standing:
            yield "once-under-standing", index, None

    def summaries(self):
        """By operation: its outcome, and by attempt its state, decision, source, event and lateness."""
        found = {}
        for place, (_, event) in enumerate(self.events):
            name = event.get("operation_id")
            if name is None or event.get("operation", "tool-invocation") != "tool-invocation":
                continue
            attempts = found.setdefault(name, {})
            if event["type"] == "tool-invocation" and not self.is_started(name, event["attempt"], place):
                attempts[event["attempt"]] = self.effective(place)
            elif event["type"] != "policy-decision":
                attempts.setdefault(event["attempt"], (None, "none", None))
        return {name: self._summary(name, attempts) for name, attempts in found.items()}

    def _summary(self, name, attempts):
        told = {}
        for number, decided in attempts.items():
            steps = machine([kind for _, kind in self.of_attempt(name, number)])
            told[number] = (steps[-1][0], *decided, "late-response" in [code for _, code in steps])
        if not told:
            return "not-performed", told
        state = told[max(told)][0]
        return state if state in ENDS.values() else "unfinished", told


_values = st.sampled_from(sorted(STRICTNESS))


@st.composite
def any_event(draw):
    second = draw(st.integers(0, 4))
    own = {
        "operation_id": draw(st.sampled_from("aaab")),
        "attempt": draw(st.sampled_from([1, 1, 1, 2, 2, 3, 4])),
        "party": draw(st.sampled_from([0, 0, 0, 1])),
    }
    target = {"server": draw(st.sampled_from("ssssr")), "tool": draw(st.sampled_from("tttu"))}
    kind = draw(st.sampled_from(["once", "standing", *["signal"] * 4, *["invocation"] * 3, "foreign"]))
    if kind == "once":
        other = draw(st.sampled_from(["tool-invocation"] * 5 + ["delegation"]))
        event = decision(draw(_values), second, operation=other, **own, **target)
    elif kind == "standing":
        tool = draw(st.sampled_from(["t", "t", "u", None, None, 5, ["t", "u"]]))
        event = standing(draw(_values), second, party=own["party"], server=target["server"], tool=tool)
    elif kind == "invocation":
        event = invocation(second, **own, **target)
    elif kind == "signal":
        event = answer(draw(st.sampled_from([*SIGNALS, *ENDS])), second, **own)
    else:
        event = {"type": "join", "time": f"2026-11-02T12:00:{second:02d}Z", "sessions": 0, "party": 0}
    return {**event, "time": "soon"} if draw(st.integers(0, 9)) == 0 else event


@settings(max_examples=100, deadline=None)
@given(st.lists(any_event(), min_size=6, max_size=20))
def test_same_findings_and_summaries(events):
    """Every finding, state, decision and outcome is the one that the slow model finds."""
    history, slow = read_operations(events), Slow(events)
    apart = ("party-changed", "operation-target-changed")
    quick = [(one.code, one.event, one.severity) for one in history.remarks if one.code not in apart]
    assert sorted(quick, key=repr) == sorted(slow.findings(), key=repr)
    assert {
        one.operation_id: (
            one.outcome,
            {
                own.attempt: (own.state, own.decision, own.decision_source, own.decision_event, own.late)
                for own in one.attempts
            },
        )
        for one in history.operations
    } == slow.summaries()

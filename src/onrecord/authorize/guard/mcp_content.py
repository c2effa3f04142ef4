"""What of an MCP message is recorded as content, and what never is.

Protocol envelopes stay out: `_meta`, request ids, progress tokens, elicitation ids, task ids, requestState.

Source: record.md 4.9 (D-55 to D-66), PR-02, PR-03, PR-05, PR-06.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from onrecord.base.namespaces import CALL_PROOF_REASONS, CALL_PROOF_REJECTED

SAMPLING: Final = "sampling/createMessage"
ASKING_METHODS: Final = frozenset(("elicitation/create", "roots/list"))
"""Requests of a server that count as questions to the user's side (D-63); sampling is not recorded."""

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

URL_ELICITATION_REQUIRED: Final = -32042
MAX_CONTENT_DEPTH: Final = 58
"""Deepest content in an entry: an entry stands inside of record/append, whose lines may have 66 levels."""

_ENVELOPE_RESULT: Final = ("_meta", "resultType")
_DIGITS: Final = bytes(1 if 0x30 <= byte <= 0x39 else 0 for byte in range(256))
_LONG_NUMBER: Final = b"\1" * 19
MAX_NUMBER: Final = 2**63 - 1
"""Largest integer that stays a number in an entry; the recorder's writer keeps no larger ones."""


def result_kind(result: dict[str, Any]) -> str:
    """Return "failure" for a result with isError true, else "result": the payload decides, never a status (D-57)."""
    return "failure" if result.get("isError") is True else "result"


def result_content(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without its envelope (D-66)."""
    return {name: value for name, value in result.items() if name not in _ENVELOPE_RESULT}


def error_kind(error: Any) -> str:
    """Return "denied" for a call-proof rejection, else "error" (D-60)."""
    if type(error) is dict and error.get("code") == CALL_PROOF_REJECTED and _proof_reason(error) is not None:
        return "denied"
    return "error"


def error_content(error: Any) -> Any:
    """Return a JSON-RPC error; of a rejection only code, message and data.reason, of -32042 no ids and bare URLs."""
    if type(error) is not dict:
        return {"code": 0, "message": "not an error object"}
    if error_kind(error) == "denied":
        reason = _proof_reason(error)
        return {
            "code": CALL_PROOF_REJECTED,
            "message": str(error.get("message", "")),
            "data": {"reason": reason},
        }
    content = {name: value for name, value in error.items() if name in ("code", "message", "data")}
    data = content.get("data")
    if error.get("code") == URL_ELICITATION_REQUIRED and type(data) is dict:
        asked = data.get("elicitations")
        if type(asked) is list:
            content["data"] = {**data, "elicitations": [question_content(one) for one in asked]}
    return content


def question_content(params: Any) -> Any:
    """Return the parameters of a question without envelope, elicitation id, and query of a URL."""
    if type(params) is not dict:
        return params
    content = {name: value for name, value in params.items() if name not in ("_meta", "elicitationId")}
    if type(content.get("url")) is str:
        content["url"] = bare_url(content["url"])
    return content


def input_requests(requests: Any) -> tuple[dict[str, Any] | None, frozenset[str]]:
    """Return recordable input requests, or None if there are none, and the keys that were left out (D-63)."""
    if type(requests) is not dict:
        return None, frozenset()
    kept: dict[str, Any] = {}
    left_out: set[str] = set()
    for key, request in requests.items():
        if type(request) is dict and request.get("method") == SAMPLING:
            left_out.add(key)
        elif type(request) is dict:
            members = {name: value for name, value in request.items() if name != "_meta"}
            if "params" in members:
                members["params"] = question_content(members["params"])
            kept[key] = members
        else:
            kept[key] = request
    return kept or None, frozenset(left_out)


def input_responses(responses: Any, left_out: frozenset[str]) -> dict[str, Any] | None:
    """Return recordable input responses, or None if there are none."""
    if type(responses) is not dict:
        return None
    kept = {}
    for key, response in responses.items():
        if key in left_out or _is_sampled(response):
            continue
        if type(response) is dict:
            kept[key] = {name: value for name, value in response.items() if name != "_meta"}
        else:
            kept[key] = response
    return kept or None


def _is_sampled(response: Any) -> bool:
    """Say whether a response is one of a model. An answer to another question stays, whatever else it carries."""
    return (
        type(response) is dict
        and response.keys() >= {"role", "model"}
        and not response.keys() & {"action", "roots"}
    )


def related_task(params: Any) -> str | None:
    """Return the id of the task that a question names, or None."""
    meta = params.get("_meta") if type(params) is dict else None
    related = meta.get(RELATED_TASK) if type(meta) is dict else None
    task = related.get("taskId") if type(related) is dict else None
    return task if type(task) is str else None


def task_content(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task object with the hash of its id in place of the id, which may be a bearer secret (D-64)."""
    content = {name: value for name, value in task.items() if name not in ("taskId", *_ENVELOPE_RESULT)}
    content["task_sha256"] = hashlib.sha256(
        str(task.get("taskId", "")).encode("utf-8", "replace")
    ).hexdigest()
    return content


def progress_content(params: dict[str, Any]) -> dict[str, Any]:
    """Return a progress report without its token."""
    return {name: value for name, value in params.items() if name not in ("progressToken", "_meta")}


def bare_url(url: str) -> str:
    """Return a URL without userinfo, query and fragment; the empty text if it is no URL."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def needs_care(line: bytes) -> bool:
    """Say whether a line that a server sent may hold values that an entry cannot: huge numbers, deep nesting."""
    return _LONG_NUMBER in line.translate(_DIGITS) or line.count(b"{") + line.count(b"[") > MAX_CONTENT_DEPTH


def storable(value: Any, *, _depth: int = 1) -> Any:
    """Return a value that an entry can hold: huge integers and infinities as text, broken surrogates replaced.

    What is nested too deep becomes the text "[nested too deep]". The values stay readable; the bytes that the client
    got are not changed by this.
    """
    if type(value) is int:
        return value if -MAX_NUMBER <= value <= MAX_NUMBER else str(value)
    if type(value) is float:
        return value if value - value == 0 else str(value)
    if type(value) is str:
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if type(value) is dict:
        if _depth > MAX_CONTENT_DEPTH:
            return "[nested too deep]"
        return {storable(name): storable(member, _depth=_depth + 1) for name, member in value.items()}
    if type(value) is list:
        if _depth > MAX_CONTENT_DEPTH:
            return "[nested too deep]"
        return [storable(member, _depth=_depth + 1) for member in value]
    return value


def _proof_reason(error: dict[str, Any]) -> str | None:
    data = error.get("data")
    reason = data.get("reason") if type(data) is dict else None
    if type(reason) is not str:
        return None
    folded = reason.lower().replace("-", "_").replace(" ", "_")
    return folded if folded in CALL_PROOF_REASONS else None

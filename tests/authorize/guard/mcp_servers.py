"""Small MCP servers in plain Python, one per behaviour: `python mcp_servers.py KIND [FILE]`.

Each tool call is written to FILE, so a test sees what really ran.
"""

import json
import os
import sys

OUT = sys.stdout
KIND = sys.argv[1]
SPY = sys.argv[2] if len(sys.argv) > 2 else None
TOOL = {
    "name": "echo",
    "description": "gives its text back",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


def send(message):
    OUT.write(json.dumps(message, separators=(",", ":")) + "\n")
    OUT.flush()


def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def fail(request, code, message, data=None):
    error = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    send({"jsonrpc": "2.0", "id": request["id"], "error": error})


def spy(request):
    if SPY:
        with open(SPY, "a", encoding="utf-8") as file:
            file.write(json.dumps(request) + "\n")


def text(value, **more):
    result = {"content": [{"type": "text", "text": value}], **more}
    if KIND in ("modern", "mrtr", "task"):
        result["resultType"] = "complete"
    return result


def call(request):
    spy(request)
    params = request["params"]
    arguments = params.get("arguments", {})
    if KIND == "mrtr" and "inputResponses" not in params:
        question = {"method": "elicitation/create", "params": {"mode": "form", "message": "Sure?"}}
        answer(
            request,
            {
                "resultType": "input_required",
                "inputRequests": {"sure": question},
                "requestState": "st-secret",
            },
        )
    elif KIND == "task":
        answer(request, {"resultType": "task", "taskId": "tsk-secret", "status": "working"})
    elif KIND == "elicit":
        send(
            {"jsonrpc": "2.0", "id": "ask-1", "method": "elicitation/create", "params": {"message": "Name?"}}
        )
        said = json.loads(sys.stdin.readline())
        answer(request, text("hello " + said["result"]["action"]))
    elif KIND == "progress":
        token = params.get("_meta", {}).get("progressToken")
        for step in (1, 2):
            send(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": step},
                }
            )
        answer(request, text("done"))
    elif KIND == "crash":
        os._exit(3)
    elif KIND == "hang":
        return
    elif arguments.get("text") == "fail":
        answer(request, text("it failed", isError=True))
    elif params["name"] != "echo":
        fail(request, -32602, "Unknown tool")
    elif arguments.get("text") == "environment":
        answer(request, text(json.dumps(dict(os.environ))))
    elif arguments.get("text") == "context":
        answer(request, text(json.dumps(request)))
    else:
        answer(request, text(arguments.get("text", "")))
        if KIND == "changing":
            TOOL["description"] = TOOL["inputSchema"]["title"] = "another"
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


def main():
    if KIND == "noisy":
        OUT.write("Welcome to the noisy server!\n{not json\n42\n")
        OUT.flush()
        sys.stderr.write("starting \x1b[31mup\x1b[0m\n")
        sys.stderr.flush()
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "test-server", "version": "1.0"},
            }
            answer(request, result)
        elif method == "server/discover":
            if KIND in ("modern", "mrtr", "task"):
                answer(
                    request,
                    {
                        "resultType": "complete",
                        "supportedVersions": ["2026-07-28"],
                        "capabilities": {"tools": {}},
                    },
                )
            else:
                fail(request, -32601, "Method not found")
        elif method == "tools/list":
            if KIND == "pages" and "cursor" not in request.get("params", {}):
                answer(request, {"tools": [TOOL], "nextCursor": "2"})
            elif KIND == "pages":
                answer(request, {"tools": [{"name": "second", "inputSchema": {"type": "object"}}]})
            else:
                answer(
                    request,
                    {
                        "tools": [TOOL],
                        **({"resultType": "complete"} if KIND in ("modern", "mrtr", "task") else {}),
                    },
                )
        elif method == "tools/call":
            call(request)
        elif method == "ping":
            answer(request, {})
        elif method == "tasks/get":
            answer(
                request,
                {
                    "resultType": "complete",
                    "taskId": "tsk-secret",
                    "status": "completed",
                    "result": text("late"),
                },
            )
        elif "id" in request and method is not None:
            fail(request, -32601, "Method not found")


main()

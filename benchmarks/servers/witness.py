"""An echo server in plain Python that writes the text of each call to a file before anything else: `witness.py FILE`.

One write per call, so that a kill leaves whole lines, and what stands in the file was executed.
"""

import json
import os
import sys

FILE = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def result(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "witness", "version": "1.0"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        os.write(FILE, json.dumps(params["arguments"]["text"]).encode() + b"\n")
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result(request)}
    if answer["result"] is None:
        del answer["result"]
        answer["error"] = {"code": -32601, "message": "Method not found"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()

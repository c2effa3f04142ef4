"""The official client, connected to a program over its standard input and output."""

from contextlib import asynccontextmanager


@asynccontextmanager
async def connect(command, *, mode="auto", log, cwd=None, env=None, proof_aware=False, extensions=(), **more):
    """Start a command and yield the client. `log` is the file for its complaints, `more` are options of the client."""
    import mcp
    from mcp.client import advertise

    from onrecord.base.namespaces import CALL_PROOF_EXTENSION

    with open(log, "ab") as errors:
        parameters = mcp.StdioServerParameters(command=command[0], args=command[1:], cwd=cwd, env=env)
        declared = [*extensions, *([advertise(CALL_PROOF_EXTENSION)] if proof_aware else [])]
        transport = mcp.stdio_client(parameters, errlog=errors)
        async with mcp.Client(transport, mode=mode, extensions=declared or None, **more) as client:
            yield client

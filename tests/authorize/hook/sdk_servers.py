"""Servers with the SDK hook: `python sdk_servers.py KIND SPY`. Each tool that runs is written to SPY."""

import json
import os
import sys

from onrecord.authorize.hook import protect, serve_stdio

KIND, SPY = sys.argv[1], sys.argv[2]


def spy(**facts):
    with open(SPY, "a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


def seen(context):
    """Return everything of a context that tool code could print."""
    request = context.request_context
    named = {name: getattr(request, name, None) for name in dir(request) if not name.startswith("__")}
    return repr([named, vars(request.session)])


def add_tools(server, context_type):
    """Add the same tools to an MCPServer or a FastMCP."""

    def echo(text: str = "") -> str:
        spy(name="echo", text=text)
        return text

    def add(a: int, b: int = 1) -> int:
        spy(name="add", a=repr(a), b=repr(b))
        return a + b

    def context(ctx):
        spy(name="context")
        return seen(ctx)

    context.__annotations__ = {"ctx": context_type, "return": str}

    def stray(text: str = "") -> str:
        """Write to the channel and read from it, as careless or hostile tool code does."""
        spy(name="stray")
        sys.stdout.write('{"jsonrpc":"2.0","id":999,"result":{}}\n')
        sys.stdout.flush()
        os.write(1, b'{"jsonrpc":"2.0","id":998,"result":{}}\n')
        return repr(os.read(0, 100))

    def fail(text: str = "") -> str:
        spy(name="fail")
        raise ValueError(text)

    def broken(text: str = "") -> str:
        spy(name="broken")
        return "\ud800"

    for tool in (echo, add, context, stray, fail, broken):
        server.tool(tool) if KIND.startswith("fastmcp") else server.add_tool(tool)


def mcpserver():
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

    server = MCPServer("hooked")
    add_tools(server, Context)
    if KIND == "mcpserver-explicit":
        protect(server, config=sys.argv[3], server_id="files")
    else:
        protect(server)
    server.run()


def fastmcp():
    from fastmcp import Context, FastMCP

    server = FastMCP("hooked")
    add_tools(server, Context)
    protect(server)
    server.run(show_banner=KIND == "fastmcp-banner")


def lowlevel():
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(ctx, params):
        return types.ListToolsResult(
            tools=[types.Tool(name="echo", input_schema={"type": "object", "properties": {}})]
        )

    async def call_tool(ctx, params):
        spy(name=params.name, **(params.arguments or {}))
        if KIND == "lowlevel-crash":
            os._exit(3)
        text = (params.arguments or {}).get("text", "")
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server = Server("hooked", on_list_tools=list_tools, on_call_tool=call_tool)
    if KIND == "lowlevel-unprotected":
        from mcp.server.stdio import stdio_server

        async def serve():
            async with stdio_server() as (reader, writer):
                await server.run(reader, writer, server.create_initialization_options())

        anyio.run(serve)
        return
    protect(server)
    if KIND == "lowlevel-other-transport":
        from mcp.server.stdio import stdio_server

        async def serve_other():
            async with stdio_server() as (reader, writer):
                await server.run(reader, writer, server.create_initialization_options())

        anyio.run(serve_other)
        return
    anyio.run(serve_stdio, server)


{"mcpserver": mcpserver, "fastmcp": fastmcp, "lowlevel": lowlevel}[KIND.split("-")[0]]()

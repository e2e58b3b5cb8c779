"""Cancels a call as a client of the Python SDK: client.py TARGET, where TARGET is an address or, as JSON, a command with
its arguments. It gives up a call once that makes progress, makes another, and leaves while a third one runs. What it
prints is the text of the second; what the SDK finds wrong goes to standard error."""

import json
import logging
import sys

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

logging.basicConfig(level=logging.WARNING)


def connect(target):
    if target.startswith("http"):
        return streamable_http_client(target)
    command, *args = json.loads(target)
    return stdio_client(StdioServerParameters(command=command, args=args))


def pipeline(ms):
    items = {"type": "command", "command": "jq", "args": ["-n", "-c", "{ms: (1, %d)}" % ms]}
    return {"pipeline": [items, {"type": "tool", "server": "demo", "name": "slow", "for_each": True}]}


async def give_up(session):
    """Gives up a call of a minute once it makes progress, which tells the server so."""
    with anyio.CancelScope() as scope:

        async def progress(done, total, message):
            scope.cancel()

        await session.call_tool("execute_pipeline", pipeline(60000), progress_callback=progress)


async def main():
    async with connect(sys.argv[1]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await give_up(session)
        result = await session.call_tool("execute_pipeline", pipeline(2))
        print(result.content[-1].text)  # a note comes before the output
        await give_up(session)


anyio.run(main)

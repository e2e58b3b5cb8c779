"""Prints what a client of the Python SDK gets of the tools that a gateway exposes: exposed.py URL."""

import json
import sys

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main():
    async with streamable_http_client(sys.argv[1]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        steps = []

        async def step(progress, total, message):
            steps.append("%d/%d" % (progress, total))

        said = await session.call_tool("every__echo", {"message": "héllo"})
        structured = await session.call_tool("every__get-structured-content", {"location": "Chicago"})
        links = await session.call_tool("every__get-resource-links", {"count": 1})
        failed = await session.call_tool("every__get-sum", {"a": "x", "b": 1})
        await session.call_tool("every__trigger-long-running-operation", {"duration": 1, "steps": 2}, progress_callback=step)
        print(
            json.dumps(
                {
                    "tools": [t.name for t in tools],
                    "said": said.content[0].text,
                    "structured": structured.structured_content,
                    "links": [str(c.uri) for c in links.content if c.type == "resource_link"],
                    "failed": failed.is_error and failed.content[0].text,
                    "steps": steps[-1:],
                }
            )
        )


anyio.run(main)

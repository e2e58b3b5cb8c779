"""Calls tools of servers as a client of the Python SDK. Standard input is an array of sessions, {target, token, cwd, calls:
[{tool, args}]}; what it prints is, of each, the names of the tools and the results."""

import json
import sys

import anyio
import httpx2
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def run(job, streams):
    async with ClientSession(*streams[:2]) as session:
        await session.initialize()
        tools = await session.list_tools()  # then it checks results against the schemas
        results = [await session.call_tool(c["tool"], c["args"]) for c in job["calls"]]
    return {"tools": [t.name for t in tools.tools], "results": [json.loads(r.model_dump_json(by_alias=True, exclude_none=True)) for r in results]}


async def answer(job):
    target = job["target"]
    if isinstance(target, list):
        command, *args = target
        async with stdio_client(StdioServerParameters(command=command, args=args, cwd=job["cwd"])) as streams:
            return await run(job, streams)
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + job["token"]}) as http:
        async with streamable_http_client(target, http_client=http) as streams:
            return await run(job, streams)


async def main():
    print(json.dumps([await answer(job) for job in json.load(sys.stdin)]))


anyio.run(main)

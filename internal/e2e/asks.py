"""Runs a pipeline whose server asks in the middle of its calls, with a client of the Python SDK: asks.py MODE URL PIPELINE. It
answers each question with the last line of its message, and prints the output and the questions."""

import json
import sys

import anyio
from mcp import Client
from mcp.types import ElicitResult

asked = []


async def answer(context, params):
    asked.append(params.message)
    return ElicitResult(action="accept", content={"name": params.message.split("  | ")[-1]})


async def main():
    mode, url, pipeline = sys.argv[1:]
    async with Client(url, mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("execute_pipeline", {"pipeline": json.loads(pipeline)})
        print(json.dumps({"version": client.protocol_version, "output": result.content[-1].text, "asked": sorted(asked)}))


anyio.run(main)

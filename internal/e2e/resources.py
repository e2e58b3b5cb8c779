"""Prints what a client of the Python SDK sees of what a gateway's servers offer beside tools: resources.py URL RESOURCE
RESOURCE PROMPT."""

import json
import sys

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import PromptReference


async def main():
    url, first, second, name = sys.argv[1:]
    async with streamable_http_client(url) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        resources = (await session.list_resources()).resources
        templates = (await session.list_resource_templates()).resource_templates
        prompts = (await session.list_prompts()).prompts
        read = []
        for uri in (first, second):
            content = (await session.read_resource(uri)).contents[0]
            read.append("%s %s" % (content.uri, content.text))
        prompt = await session.get_prompt(name, {"city": "Rome"})
        ref = PromptReference(type="ref/prompt", name="every__completable-prompt")
        completed = await session.complete(ref, {"name": "department", "value": "E"})
        print(
            json.dumps(
                {
                    "resources": [str(r.uri) for r in resources],
                    "templates": [t.uri_template for t in templates],
                    "prompts": [p.name for p in prompts],
                    "read": read,
                    "got": prompt.messages[0].content.text,
                    "complete": completed.completion.values,
                }
            )
        )


anyio.run(main)

"""Subscribes to a resource as a client of the Python SDK, prints the URI of the first update, and ends the subscription:
subscriptions.py ERA URL URI, where ERA is legacy or auto."""

import sys

import anyio
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ResourceUpdatedNotification


async def legacy(url, uri):
    updated = anyio.Event()
    seen = []

    async def heard(message):
        message = getattr(message, "root", message)
        if isinstance(message, ResourceUpdatedNotification):
            seen.append(message.params.uri)
            updated.set()

    async with streamable_http_client(url) as streams, ClientSession(*streams[:2], message_handler=heard) as session:
        await session.initialize()
        await session.subscribe_resource(uri)
        await updated.wait()
        await session.unsubscribe_resource(uri)
    print(seen[0])


async def newer(url, uri):
    async with Client(url) as client, client.listen(resource_subscriptions=[uri]) as subscription:
        async for event in subscription:
            print(event.uri)
            return


async def main():
    era, url, uri = sys.argv[1:]
    await (legacy if era == "legacy" else newer)(url, uri)


anyio.run(main)

"""A server whose tool asks: in its result, or in the middle of the call, as the era has it."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("asks")


class Name(BaseModel):
    name: str


async def ask(secret: str) -> Elicit[Name]:
    return Elicit(f"the secret is {secret}", Name)


@server.tool()
async def greet(secret: str, who: Annotated[Name, Resolve(ask)]) -> str:
    return f"{secret}: hello, {who.name}"


server.run(transport="stdio")

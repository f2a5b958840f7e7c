"""The server: tools of `ToolBox` over stdio or streamable HTTP, with the official SDK."""

import functools
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from starlette.types import ASGIApp

from ackscope import __version__
from ackscope.errors import AckscopeError
from ackscope.log import redact
from exporter.mcp_server.tools import ToolBox
from exporter.web.config import WebConfig
from exporter.web.gate import LoginGate
from exporter.web.server import AsgiListener

INSTRUCTIONS = """\
ackscope diagnoses RabbitMQ clusters: causes with evidence and next steps. Start with `findings`. Then `explain` the
worst one: it has the evidence and the commands. `queue` and `client` show one object, `history` what weeks of
measurements say. Nothing here changes a broker; commands in the steps are for a person to run."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATH = "/mcp"


def make_server(tools: ToolBox) -> MCPServer[Any]:
    """The server with all tools that are configured."""
    server: MCPServer[Any] = MCPServer("ackscope", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
    offered: list[Callable[..., str]] = [tools.findings, tools.explain, tools.queue, tools.client, tools.bundle]
    offered += [tools.history] if tools.rollups is not None else []
    offered += [tools.diagnose] if tools.broker is not None else []
    for tool in offered:
        server.add_tool(_reported(tool), annotations=reads, structured_output=False)
    return server


def _reported(tool: Callable[..., str]) -> Callable[..., str]:
    """The tool; its errors are one line for the caller, without secrets."""

    @functools.wraps(tool)
    def call(*args: Any, **keywords: Any) -> str:
        try:
            return tool(*args, **keywords)
        except AckscopeError as error:
            raise ToolError(redact(str(error))) from None

    return call


def make_app(server: MCPServer[Any], host: str, web: WebConfig) -> ASGIApp:
    """The HTTP application. On loopback, only requests to loopback names are answered, against DNS rebinding."""
    guarded = None if host in LOOPBACK else TransportSecuritySettings(enable_dns_rebinding_protection=False)
    # Stateless: every request is answered alone, so that a restart or a second process ends no session.
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        stateless_http=True,
        json_response=True,
        transport_security=guarded,
        max_request_body_size=64 * 1024,
    )
    return LoginGate(app, web)


def serve_http(server: MCPServer[Any], listen: tuple[str, int], web: WebConfig) -> None:
    """Serve until SIGTERM or SIGINT, with the limits, users and certificates of the exporter's own port.

    Raises:
        UsageError: the address cannot be used.
    """
    AsgiListener(listen, make_app(server, listen[0], web), web).serve_until_stopped()


def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve the client that started this process, until it closes the pipe."""
    server.run("stdio")

"""The MCP server: findings for other programs. It reads the HTTP API of an exporter and changes nothing."""

"""The agents' gateway: a fenced, counted and recorded part of the operations, over HTTP and MCP."""

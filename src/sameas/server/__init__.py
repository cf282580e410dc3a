"""The service: REST, WebSocket RPC and event streams over extraction, for one tenant or many."""

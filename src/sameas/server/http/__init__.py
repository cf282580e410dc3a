"""What clients speak to: routes, RPC, the gate before them, the OpenAPI document."""

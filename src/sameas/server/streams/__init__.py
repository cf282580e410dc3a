"""Events to those who listen: server-sent events, subscribers, who may still listen."""

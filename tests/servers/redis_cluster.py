"""A Redis Cluster of one to three masters without replicas, on loopback, with every slot assigned."""

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.servers.redis import AppendOnly, RedisServer
from tests.servers.server import ServerFailedError

SLOTS = 16_384
LARGEST = 3
# A Redis master refuses writes for two seconds after it started; joining takes about one more.
FORMED_WITHIN_SECONDS = 30.0


class RedisCluster:
    """Nodes that know each other; `url` is that of the first."""

    def __init__(self, *, nodes: int = LARGEST, appendonly: AppendOnly = "no") -> None:
        if not 1 <= nodes <= LARGEST:
            message = f"a cluster here has 1 to {LARGEST} nodes, not {nodes}"
            raise ValueError(message)
        self.nodes = tuple(RedisServer(topology="cluster", appendonly=appendonly) for _ in range(nodes))
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """For redis-py's RedisCluster.from_url."""
        return self.nodes[0].url

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node)
            self._share_out_slots()
            self._wait_until_whole()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _share_out_slots(self) -> None:
        for index, node in enumerate(self.nodes):
            slots = range(index * SLOTS // len(self.nodes), (index + 1) * SLOTS // len(self.nodes))
            with node.client() as client:
                # Equal epochs would be settled by an election-like round that takes seconds.
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", index + 1)
                client.execute_command("CLUSTER ADDSLOTS", *slots)
        with self.nodes[0].client() as client:
            for node in self.nodes[1:]:
                client.execute_command("CLUSTER MEET", node.host, node.port)

    def _wait_until_whole(self) -> None:
        deadline = time.monotonic() + FORMED_WITHIN_SECONDS
        while not all(self._is_whole(node) for node in self.nodes):
            if time.monotonic() > deadline:
                problem = f"the cluster did not form in {FORMED_WITHIN_SECONDS} s"
                raise ServerFailedError(problem, log=self.nodes[0].log)
            time.sleep(0.05)

    def _is_whole(self, node: RedisServer) -> bool:
        with node.client() as client:
            facts: dict[str, str] = client.execute_command("CLUSTER INFO") or {}
        return (
            facts.get("cluster_state") == "ok"
            and facts.get("cluster_slots_ok") == str(SLOTS)
            and facts.get("cluster_size") == str(len(self.nodes))
        )

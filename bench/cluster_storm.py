"""A storm over several machines: 2 API nodes, 4 workers, RabbitMQ, Redis, PostgreSQL and S3 on loopback, then Redis as the
broker. For 60 seconds they are killed and started again and connections are cut, while clients send 2,000 requests of which half are duplicates.

    ./run bench cluster_storm [SECONDS [REQUESTS [BROKER]]]
"""

from contextlib import ExitStack
from typing import Literal

from tests.storm.cluster_storm import ClusterStorm, Machines, Victim

_SEQUENCE: tuple[Victim, ...] = (
    *("worker", "api", "connections", "worker", "redis"),
    *("worker", "broker", "connections", "worker", "postgres"),
)


def main(seconds: str = "60", requests: str = "2000", only: str = "") -> None:
    brokers: tuple[Literal["rabbitmq", "redis"], ...] = ("rabbitmq", "redis")
    for seed, broker in enumerate(brokers, 1):
        if only not in ("", broker):
            continue
        with ExitStack() as stack:
            machines = Machines(stack, workers=4, broker=broker, settings={}, with_proxies=True)
            storm = ClusterStorm(
                machines,
                seconds=float(seconds),
                requests=int(requests),
                victims=_SEQUENCE,
                every=1.5,
                clients=24,
                answered_within=float(seconds) + 180.0,
                seed=seed,
            )
            report = storm.run()
        print(f"\nbroker: {broker}")
        print("\n".join(report.lines()))
        print("clean" if report.is_clean else f"NOT CLEAN: {report}")

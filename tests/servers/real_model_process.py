"""The process of the real model: `python -m tests.servers.real_model_process WEIGHTS PORT CONTEXT KEY`. One thread."""

import signal
import sys

from xllamacpp import CommonParams, Server

from tests.servers.port import LOOPBACK


def main(weights: str, port: str, context: str, api_key: str) -> None:
    params = CommonParams()
    params.model.path = weights
    params.model_alias = {"smollm2"}
    params.hostnames = [LOOPBACK]
    params.api_keys = [api_key] if api_key else []
    params.port = int(port)
    params.n_ctx = int(context)
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.n_gpu_layers = 0
    server = Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main(*sys.argv[1:])

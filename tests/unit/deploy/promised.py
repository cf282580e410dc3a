"""What of a cluster is not shown by a single service without one: the files of deployment may name it all the same."""

APP = "sameas.cluster.app:app"
QUEUES = {"sameas"}
METRICS = {
    "sameas_queue_oldest_seconds",
    "sameas_queue_length",
    "sameas_worker_slots",
    "sameas_runs_waiting",
}

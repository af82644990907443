"""asyncio parts that know no Kubernetes: supervision, queues, clocks, backoff, turns."""

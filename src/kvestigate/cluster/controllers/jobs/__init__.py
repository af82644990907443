"""Jobs and CronJobs: pods that run to completion, when they start, and when they are forgotten."""

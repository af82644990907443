"""HorizontalPodAutoscalers: what metrics say, which size follows from it, and setting that size."""

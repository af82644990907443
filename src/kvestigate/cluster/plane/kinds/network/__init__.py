"""Kinds that lead to pods: Services, endpoints, Ingresses, network policies."""

"""CEL, the language of validation rules and admission policies, with Kubernetes' own functions.

An expression is parsed, checked against the types of its variables and turned into closures in
one pass; running those is all that a request pays for. What is accepted, what comes out and how
mistakes are told is kube-apiserver's. Nothing here does I/O, and no expression runs for ever:
every step of a loop is paid from a budget. Pure.
"""

from kvestigate.kube.cel.budget import Purse
from kvestigate.kube.cel.failures import CompileError, EvalError, OutOfBudget
from kvestigate.kube.cel.program import Program, compiled

__all__ = ["CompileError", "EvalError", "OutOfBudget", "Program", "Purse", "compiled"]

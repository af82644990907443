"""The planes and fleets of a running server, for the commands and for `cybernet`.

Requests are those of `kvestigate_client.contract`, the one definition that the SDK sends too; they
go over the connection that a kubeconfig describes. Answers are read into the structures that
commands print, whose JSON is the contract's own. Knows nothing of how planes are served.
"""

"""`python -m kvestigate` is `kvestigate`."""

from kvestigate.cli.main import kvestigate

kvestigate()

"""The command line: flags become options, options run an operation, results are rendered."""

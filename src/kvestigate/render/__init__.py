"""Pure presentation: tables, text, JSON, YAML, NDJSON, HTML. Takes values, returns text."""

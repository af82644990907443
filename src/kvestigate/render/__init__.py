"""Pure presentation: tables, text, JSON, YAML, HTML. Takes values, returns text."""

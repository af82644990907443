"""The SDK that agents and trainers import: light, typed, independent of the toolkit."""

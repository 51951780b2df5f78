"""The studies of the course by name: `ppo-lessons study run parts`."""

STUDIES: dict = {}

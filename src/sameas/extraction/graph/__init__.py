"""What is found in a text and how it becomes a graph: mentions and claims, guard, stance, resolution, grounding.

From outside: `model`, `name_forms`.
"""

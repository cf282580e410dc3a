"""What is found and what is believed: mentions and claims, guard, stance, resolution, grounding."""

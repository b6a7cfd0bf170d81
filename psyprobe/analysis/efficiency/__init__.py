"""How well a task is done in noise, beside an ideal observer."""

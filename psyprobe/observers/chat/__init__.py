"""What answers in words: servers, models in this process, functions."""

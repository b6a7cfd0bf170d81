"""From answers in words to psychometric functions and contrast sensitivity."""

"""A person as an observer: their screen's geometry and light, and the page that asks them."""

"""A person as an observer: the geometry and light of the screen in front of them, and what the page
draws there.
"""

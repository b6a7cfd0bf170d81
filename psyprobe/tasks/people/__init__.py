"""A person at this screen: what the page of `psyprobe observe` goes through, for patterns and for
pictures.
"""

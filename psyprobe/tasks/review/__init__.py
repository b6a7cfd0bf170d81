"""A page on this machine where people review and label, with the keyboard and from where they left
off.
"""

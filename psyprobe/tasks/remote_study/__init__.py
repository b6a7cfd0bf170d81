"""Studies away from this machine: an experiment as a static jsPsych folder, and its answers back
into the store.
"""

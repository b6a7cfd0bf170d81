"""Studies on screens elsewhere: an experiment as a jsPsych folder, and its answers in the store."""

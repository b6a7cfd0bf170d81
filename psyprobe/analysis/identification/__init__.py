"""Which of several labels was shown: replies, confusions, biases and thresholds by label."""

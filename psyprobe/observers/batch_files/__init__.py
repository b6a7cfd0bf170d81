"""Questions in files for Batch APIs of OpenAI's form, and their answers when they are there."""

"""Asks what is not answered yet, once, and keeps every answer as it comes: one question, one store,
one loop.

It knows no probe: whatever is asked, of encoders, metrics, chat models, judges and people, is a
`Schedule` of batches of questions, and the store keeps what came back by the content of the
question.
"""

"""Cases that provoke every message karat can show; tests/test_messages.py compares the wording."""

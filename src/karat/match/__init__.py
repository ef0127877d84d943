"""Match runs against gold by item id, by span or by evidence text."""

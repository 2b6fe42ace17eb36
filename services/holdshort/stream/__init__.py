"""A small exactly-once stream engine on Kafka: one transaction a batch."""

"""A small exactly-once stream engine on Kafka: records in, records out, keyed state, one transaction a batch."""

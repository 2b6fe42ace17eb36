"""Where a thread lives (row *miskeyed* needs it): Kafka's default partitioner."""

import pytest

from holdshort.contract.keys import murmur2, partition_of

# From Kafka's own test of its murmur2, as signed 32-bit numbers.
KAFKA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), KAFKA.items())
def test_keys_are_hashed_as_kafkas_clients_do(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32


def test_a_partition_is_the_hash_without_its_sign_modulo_the_partitions() -> None:
    assert partition_of(b"21", 12) == (-973932308 % 2**31) % 12


def test_long_keys_have_a_partition_too() -> None:
    assert partition_of(b"k" * 100_000, 12) in range(12)

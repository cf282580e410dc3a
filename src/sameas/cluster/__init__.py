"""Several machines: work over a broker, live events over Redis Streams. Correctness rests on neither."""

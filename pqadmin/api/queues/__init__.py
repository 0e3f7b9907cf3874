"""Operations on queues: by name, in groups, and what is kept beside them."""

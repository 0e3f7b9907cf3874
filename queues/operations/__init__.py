"""Operations: the verbs of a queue, one module for each family."""

"""Clients that take an answer: slow ones have their time, those that only pretend to take it are cut off."""

from pqadmin.server.receive_rate import LEAST, WITHIN, Pace

PART = 1_000_000


def seconds_until_cut_off(bytes_a_second: int, *, most: int) -> int | None:
    """Return after how many seconds of waiting in one answer; None is never."""
    pace, unsent = Pace(), 3 * PART
    pace.sending(0, unsent)
    for second in range(1, most):
        unsent -= bytes_a_second
        pace.waited(1.0, unsent)
        if pace.too_slow:
            return second
        if unsent <= PART:
            pace.sending(unsent, unsent + PART)
            unsent += PART
    return None


def test_a_client_that_reads_enough_is_never_cut_off() -> None:
    assert seconds_until_cut_off(LEAST // 60 + 1, most=5_000) is None
    assert seconds_until_cut_off(PART, most=5_000) is None


def test_a_client_that_reads_a_byte_now_and_then_is_cut_off() -> None:
    for slow in (0, 1, 1_000):
        assert seconds_until_cut_off(slow, most=5_000) == WITHIN + 1


def test_small_parts_begin_no_time_anew() -> None:
    pace, unsent = Pace(), PART
    pace.sending(0, unsent)
    for _ in range(int(WITHIN)):  # each part is waited for by itself, and taken in a second
        pace.sending(unsent, unsent + 10)
        pace.waited(1.0, unsent)
    assert not pace.too_slow
    pace.sending(unsent, unsent + 10)
    pace.waited(1.0, unsent)
    assert pace.too_slow


def test_what_is_taken_while_we_do_not_wait_counts() -> None:
    pace = Pace()
    pace.sending(0, PART)
    pace.waited(WITHIN, PART)
    pace.sending(PART - LEAST, PART)
    pace.waited(WITHIN, PART)
    assert not pace.too_slow
    pace.waited(1.0, PART)
    assert pace.too_slow

"""Which requests the event loop may execute itself."""

from pqadmin.server.lone_client import IN_A_ROW, LONGEST, PAUSE, LoneClient


def asked(lone: LoneClient, connection: object, number: int) -> list[bool]:
    return [lone.asks(connection, others=False) for _ in range(number)]


def test_a_connection_is_alone_after_some_requests_in_a_row() -> None:
    lone, first, second = LoneClient(), object(), object()
    assert asked(lone, first, IN_A_ROW + 2) == [False] * IN_A_ROW + [True] * 2
    assert asked(lone, second, 1) == [False]
    assert asked(lone, first, IN_A_ROW) == [False] * IN_A_ROW
    assert asked(lone, first, 1) == [True]


def test_two_connections_by_turns_are_never_alone() -> None:
    lone, connections = LoneClient(), (object(), object())
    assert not any(lone.asks(connections[n % 2], others=False) for n in range(100))


def test_a_connection_is_not_alone_beside_a_request_under_way() -> None:
    lone, connection = LoneClient(), object()
    asked(lone, connection, IN_A_ROW)
    assert not lone.asks(connection, others=True)
    assert not any(asked(lone, connection, IN_A_ROW - 1))


def test_after_a_slow_request_the_next_ones_go_to_a_thread() -> None:
    lone, connection = LoneClient(), object()
    asked(lone, connection, IN_A_ROW + 1)
    lone.took(LONGEST)
    assert asked(lone, connection, 1) == [True]
    lone.took(2 * LONGEST)
    assert not any(asked(lone, connection, PAUSE))
    assert asked(lone, connection, IN_A_ROW + 1)[-1]


def test_the_next_connection_of_a_client_that_left_begins_anew() -> None:
    lone, connection = LoneClient(), object()
    asked(lone, connection, IN_A_ROW)
    lone.forget(object())
    assert asked(lone, connection, 1) == [True]
    lone.forget(connection)
    assert asked(lone, connection, 1) == [False]

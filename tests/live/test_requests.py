"""What a client may say."""

import json

import pytest

from pqadmin.live.requests import MAX_MESSAGE, MAX_SCREEN, Ack, BadRequest, Resync, Visible, Watch, parse


def test_good_messages_are_parsed() -> None:
    assert parse('{"t":"ack","seq":7}') == Ack(seq=7)
    assert parse('{"t":"resync"}') == Resync()
    assert parse('{"t":"visible","visible":false}') == Visible(visible=False)
    watch = parse('{"t":"watch","topic":"overview","queues":["7","7","8"],"grow":true}')
    assert isinstance(watch, Watch)
    assert (watch.topic, watch.ids, watch.grow) == ("overview", {7, 8}, True)
    watch = parse('{"t":"watch","topic":"queue:a:b"}')
    assert isinstance(watch, Watch)
    assert watch.queue == "a:b"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not-json"),
        ("[]", "not-json"),
        ("[" * 20_000, "not-json"),
        ('{"t":', "not-json"),
        ("{}", "unknown-message"),
        ('{"t":"pop"}', "unknown-message"),
        ('{"t":["watch"]}', "unknown-message"),
        ('{"t":"watch"}', "unknown-topic"),
        ('{"t":"watch","topic":"everything"}', "unknown-topic"),
        ('{"t":"watch","topic":"queue:"}', "unknown-topic"),
        ('{"t":"watch","topic":"queue:a\\u0000b"}', "unknown-topic"),
        ('{"t":"watch","topic":7}', "unknown-topic"),
        (json.dumps({"t": "watch", "topic": "queue:" + "x" * 300}), "unknown-topic"),
        ('{"t":"watch","topic":"overview","queues":"7"}', "bad-field"),
        ('{"t":"watch","topic":"overview","queues":[7]}', "bad-field"),
        ('{"t":"watch","topic":"overview","queues":["-7"]}', "bad-field"),
        ('{"t":"watch","topic":"overview","queues":["٧"]}', "bad-field"),
        (json.dumps({"t": "watch", "topic": "overview", "queues": ["9" * 30]}), "bad-field"),
        ('{"t":"watch","topic":"overview","grow":1}', "bad-field"),
        (json.dumps({"t": "watch", "topic": "overview", "queues": ["1"] * (MAX_SCREEN + 1)}), "too-many"),
        ('{"t":"ack"}', "bad-field"),
        ('{"t":"ack","seq":true}', "bad-field"),
        ('{"t":"ack","seq":-1}', "bad-field"),
        ('{"t":"ack","seq":1e400}', "bad-field"),
        ('{"t":"ack","seq":NaN}', "not-json"),
        ('{"t":"visible"}', "bad-field"),
        ("x" * (MAX_MESSAGE + 1), "too-large"),
        ('"' + "ü" * (MAX_MESSAGE - 10) + '"', "too-large"),
    ],
)
def test_bad_messages_are_refused_by_code(text: str, code: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse(text)
    assert caught.value.code == code
    assert str(caught.value)

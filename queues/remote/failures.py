"""Errors of calls that got no answer."""

import errno
import os
import ssl
from collections.abc import Iterator

import httpx

from queues.errors import AnswerLost, ServerUnreachable, Worded

#: Errors before a request was sent.
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


def unreachable(failure: httpx.TransportError, host: str, *, lost: bool) -> Worded:
    """Return the error of a request that was not sent or, where `lost`, may have been executed."""
    reason = _reason(failure)
    if lost:
        return AnswerLost(
            "{host} did not answer: {reason}. The request may have been executed.", host=host, reason=reason
        )
    return ServerUnreachable("{host} cannot be reached: {reason}.", host=host, reason=reason)


def silent(seconds: float, host: str, *, lost: bool) -> Worded:
    """Return the error of a request without an answer in time, which may have been executed where `lost`."""
    values = {"host": host, "seconds": f"{seconds:g}"}
    if lost:
        return AnswerLost("{host} did not answer within {seconds} s. The request may have been executed.", **values)
    return ServerUnreachable("{host} did not answer within {seconds} s.", **values)


def refused_later(error: Worded, host: str) -> AnswerLost:
    """Return the error of a request without an answer, for the repetition of which the server answered an error."""
    lost = AnswerLost(
        "{host} gave no answer first, and then this: {words} The request may have been executed.",
        host=host,
        words=error.words,
    )
    lost.__cause__ = error
    return lost


def is_final(failure: BaseException) -> bool:
    """Say whether the same failure comes again at once: of a certificate, above all."""
    final = ssl.SSLCertVerificationError | httpx.UnsupportedProtocol
    return any(isinstance(cause, final) for cause in _causes(failure))


def _reason(failure: httpx.TransportError) -> str:
    """Return why there was no answer, in a few words."""
    for cause in _causes(failure):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not valid ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):  # its number is none of the system's errors
            return f"TLS fails ({(cause.reason or str(cause)).replace('_', ' ').lower()})"
        if isinstance(cause, httpx.ConnectTimeout):
            return os.strerror(errno.ETIMEDOUT)
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return str(failure).rstrip(".") or type(failure).__name__


def _causes(failure: BaseException) -> Iterator[BaseException]:
    """Iterate a failure and what caused it."""
    cause: BaseException | None = failure
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__

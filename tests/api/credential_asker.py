"""A process with credentials of its own: reads a token a line, writes its caller or why it is refused."""

import asyncio
import sys

import django

django.setup()

from pqadmin.accounts.authentication import Badge, Credentials, Unauthenticated, digest  # noqa: E402 # after the setup


async def answer(credentials: Credentials, secret: str) -> str:
    try:
        caller = await credentials.caller(Badge(token=digest(secret)))
    except Unauthenticated as error:
        return error.refusal.name
    return f"{caller.name} {' '.join(name for name in ('orders:eu', 'mail') if caller.scope.sees(name))}".strip()


async def main() -> None:
    credentials = Credentials()
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(await answer(credentials, line.strip()), flush=True)


asyncio.run(main())

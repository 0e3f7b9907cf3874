"""Reference page of the HTTP API, made from its schema. Run by `make reference`."""

import os
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "http-api.md"
HEAD = """# HTTP API

For programs of every language. All addresses begin with `/api/v1`. The schema is at
`/api/v1/openapi.json` (OpenAPI 3.1), this reference of a running site at `/api/v1/docs`. This page is
made from the schema by `make reference`.

```
curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"value": "resize image 7", "priority": 5}' https://host/api/v1/queues/jobs/items
curl -H "Authorization: Bearer $TOKEN" -X POST "https://host/api/v1/queues/jobs/lease?wait=30"
curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"leases": ["…"]}' https://host/api/v1/queues/jobs/ack
```

- A program sends a token ([access](access.md)), never in the address. A browser's session works
  too; its writes need the header `X-CSRFToken`.
- Pop, lease and what settles leases are verbs of programs: they give whole values, and are counted
  in the traffic. Everything else is what pages do: by the same rights, redacted by the same rules,
  in the audit and the trash. What a caller may not see is not there (404).
- `Idempotency-Key` on a write: it is executed once, and the same request sent again within 24 hours
  gets the first answer, across processes and restarts ([idempotency keys](idempotency-keys.md)).
- `If-Match` with the `ETag` of what was seen: if that has changed since, nothing is done (412).
  An address that does not list this header refuses it on a write (422).
- A program may name itself: `PQ-Client: ID PID HOST PROGRAM`, with 16 hexadecimal digits of its own and the
  names percent-encoded. Then it is a consumer of the queues from which it takes.
- `PQ-Queue-ID` with the id of a queue: if the queue of the name in the address has another id by now, nothing
  is done (404). So a program that keeps to one queue never uses another one that has got its name.
- `wait` holds the request until an item comes, for a minute at most: send it again.
- HEAD is answered as GET, without the content.
- Lists have a `next`, to be sent as `cursor` (of queues: as `after`); null is the end.
- Refusals are problem details (RFC 9457) with a `code` and a `type` for each error:
  [errors](errors.md#over-http).
- A parameter of the query, or a field of a body, that an address does not have is refused (422), so that
  a slip in its name is seen. So is one that is given twice (in a body: 400), and a body where an address takes
  none: the parameters of pop and lease are in the query.
- Where one of many items that are pushed is refused, `index` in the problem is its place in the list, from 0.
- Where a request is over a limit of a queue, a value or a body, `most` in the problem is the limit.
  Rates of tokens, long polls and streams at once are limited too: 429 with `Retry-After`
  ([tokens](access.md#tokens)).
- People, boards and all tokens are for admins: by a session, or by a token with the verb `administer`, which
  gives no more than its own verbs allow, and changes no admin. Only sessions create tokens and reset
  passwords ([tokens](access.md#tokens)). Passwords, secrets and links of screens are in the
  first answer alone; one that is repeated under an `Idempotency-Key` has null in their place.
- For people alone, on pages, are signing in, arming, and the looks of a reader's own pages. The audit is
  read page by page.
- `/events` tells what changes as it happens ([events](events.md)).
- Times are ISO 8601 with a zone; numbers are exact, so read priorities and counts as integers of
  any size.
"""


def page() -> str:
    """Return the page."""
    from pqadmin.api.application import api
    from pqadmin.api.docs import openapi, reference

    document = openapi.document(api)
    parts = [HEAD]
    for group in reference.groups(document):
        parts.append(f"\n## {group.name}\n\n{group.words}\n")
        parts += [_operation(each) for each in group.operations]
    parts.append("\n## Objects\n\nWhat bodies and answers hold. A * is required.\n")
    for name, words, fields in reference.models(document):
        parts.append(f"\n### {name}\n\n{words}\n\n{_table(fields, places=False)}")
    return "".join(parts)


def _operation(each: object) -> str:
    from pqadmin.api.docs.reference import Operation

    assert isinstance(each, Operation)
    words = "\n\n".join(each.words)
    fields = f"\n{_table(each.fields, places=True)}" if each.fields else ""
    bodies = f"\nBodies: {', '.join(f'`{kind}`' for kind in each.bodies)}.\n" if each.bodies else ""
    answers = "; ".join(f"{status} {kind}".strip() for status, kind in each.answers)
    refusals = ", ".join(each.refusals)
    return (
        f"\n### {each.title}\n\n`{each.method} {each.path}`\n\n{words}\n{fields}{bodies}"
        f"\nAnswers: {answers}. Refusals: {refusals}.\n"
    )


def _table(fields: object, *, places: bool) -> str:
    from pqadmin.api.docs.reference import Field

    assert isinstance(fields, list)
    rows = [
        "| name | in | kind | meaning |\n|---|---|---|---|" if places else "| name | kind | meaning |\n|---|---|---|"
    ]
    for field in fields:
        assert isinstance(field, Field)
        name, words = f"`{field.name}`{' *' if field.required else ''}", field.words.replace("|", "\\|")
        rows.append(f"| {name} | {f'{field.place} | ' if places else ''}{field.kind} | {words} |")
    return "\n".join(rows) + "\n"


def errors_section() -> str:
    """Return the section about problems of docs/reference/errors.md."""
    from pqadmin.api import problems

    rows = ["| code | status |\n|---|---|"]
    rows += [f"| {code} | {status} |" for code, status in sorted(problems.STATUSES.items()) if code != "Worded"]
    own = ["| code | status | meaning |\n|---|---|---|"]
    own += [f"| {code} | {status} | {words} |" for code, (status, words) in sorted(problems.OWN.items())]
    return (
        "## Over HTTP\n\n"
        "The [HTTP API](http-api.md) answers every error as a problem (RFC 9457) whose `code` is the name\n"
        "of the error and whose `type` is `/api/v1/problems/` and that name in kebab case.\n\n"
        + "\n".join(rows)
        + "\n\nProblems of the API alone:\n\n"
        + "\n".join(own)
        + "\n"
    )


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pqadmin.settings")
    django.setup()
    PAGE.write_text(page(), "utf-8")

"""Ends with 0 if the site on this machine can serve: the health check of the container image.

Asks /readyz directly; the image has no curl, and urllib would go through a proxy that the environment names.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException

PATIENCE = 4.0  # seconds


def main() -> int:
    """Return 0 for 200; say what came otherwise and return 1."""
    port = int(os.environ.get("PQADMIN_PORT") or 8000)
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read(1000).decode(errors="replace")
    except (OSError, HTTPException) as error:
        sys.stderr.write(f"/readyz cannot be asked: {error}\n")
        return 1
    finally:
        connection.close()
    sys.stdout.write(f"{answer.status} {body}\n")
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())

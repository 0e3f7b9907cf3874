"""The site with few file descriptors and little patience: for the test of slow connections."""

import os
import resource


def main() -> None:
    """Run a command of the site, with 256 descriptors at most and five seconds for a head instead of twenty."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 256))
    os.environ["DJANGO_SETTINGS_MODULE"] = "pqadmin.settings"
    os.environ["PQADMIN_CONNECTIONS_PER_ADDRESS"] = "0"
    import django

    django.setup(set_prefix=False)
    from pqadmin.cli import main as run
    from pqadmin.server import daphne_server, http_channel  # noqa: F401 # the reactor first

    http_channel.HEAD_WITHIN = 5.0
    run()


main()

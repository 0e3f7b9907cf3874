"""The exit codes of commands: the one table of docs/reference/command-line.md, which a test compares with this."""

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended; a fatal signal ends one with the signal's own number."""

    DONE = 0
    #: Refused or failed; one line on standard error says why.
    FAILED = 1
    #: The arguments or settings are not understood.
    USAGE = 2
    #: Some lines of an import were bad; all good ones are pushed.
    SOME_BAD = 3
    #: `pop` and `lease` took nothing, as nothing was ready.
    EMPTY = 4
    #: The command of `--exec` failed; its item was released.
    EXEC_FAILED = 5
    #: Stopped by SIGINT, SIGTERM or SIGHUP, as a shell reports it. After SIGINT alone the process dies of that signal.
    INTERRUPTED = 130
    #: The reader of the output went away, as a shell reports it.
    PIPE_CLOSED = 141

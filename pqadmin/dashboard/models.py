"""Forms that were sent: each form that changes something works once, however often it is sent."""

from django.db import models


class SentForm(models.Model):
    """A form's one-time number, noted before its act. Kept for a day, which is also how long a form can be sent."""

    number = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField(db_index=True)
    #: Where the first sending led; empty while its act is under way or if its outcome was never learnt.
    answer = models.CharField(max_length=1000, blank=True)

    def __str__(self) -> str:
        return self.number

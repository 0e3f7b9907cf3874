"""Forms that were sent, as each works once."""

from django.db import models


class SentForm(models.Model):
    """A form's one-time number, noted before its act. Kept for a day, which is also how long a form can be sent."""

    number = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField(db_index=True)
    #: Where the first sending led; empty while its act is under way or if its outcome was never learnt.
    answer = models.CharField(max_length=1000, blank=True)

    class Meta:
        app_label = "dashboard"  # the table's name in databases of release 0.1

    def __str__(self) -> str:
        return self.number

"""Forms: those that were sent, as each works once, and those that people keep to push alike items again."""

from django.db import models


class SentForm(models.Model):
    """A form's one-time number, noted before its act. Kept for a day, which is also how long a form can be sent."""

    number = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField(db_index=True)
    #: Where the first sending led; empty while its act is under way or if its outcome was never learnt.
    answer = models.CharField(max_length=1000, blank=True)

    def __str__(self) -> str:
        return self.number


class PushTemplate(models.Model):
    """What somebody filled into a queue's push form and gave a name, for everybody who pushes there."""

    #: The queue's number: it stays through renames, and through deleting and restoring.
    queue_id = models.BigIntegerField()
    name = models.CharField(max_length=80)
    #: The fields of the form as they were typed.
    fields = models.JSONField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue_id", "name"], name="one_template_of_a_name")]

    def __str__(self) -> str:
        return self.name

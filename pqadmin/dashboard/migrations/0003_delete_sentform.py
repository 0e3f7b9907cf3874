from django.db import migrations


class Migration(migrations.Migration):
    """Forms are request keys in the queue store."""

    dependencies = [("dashboard", "0002_pushtemplate")]
    operations = [migrations.DeleteModel("SentForm")]

"""Keep which groups of the overview a user has shut."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_favorites")]

    operations = [migrations.AddField("preference", "folded", models.JSONField(default=list))]

"""Spell `favorites` as the pages do."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_grants_and_preferences")]

    operations = [migrations.RenameField("preference", "favourites", "favorites")]

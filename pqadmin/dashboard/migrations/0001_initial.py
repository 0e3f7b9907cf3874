"""The table of sent forms."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="SentForm",
            fields=[
                ("number", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_index=True)),
                ("answer", models.CharField(blank=True, max_length=1000)),
            ],
        ),
    ]

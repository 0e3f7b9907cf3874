"""The table of push templates."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="PushTemplate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("queue_id", models.BigIntegerField()),
                ("name", models.CharField(max_length=80)),
                ("fields", models.JSONField()),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("queue_id", "name"), name="one_template_of_a_name"),
                ],
            },
        ),
    ]

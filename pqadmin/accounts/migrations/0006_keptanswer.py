"""Answers of requests with an idempotency key."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_token")]
    operations = [
        migrations.CreateModel(
            name="KeptAnswer",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("content", models.CharField(max_length=64)),
                ("value", models.BinaryField()),
                ("at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]

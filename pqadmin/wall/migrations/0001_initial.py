"""The tables of boards and links."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Board",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=60, unique=True)),
                ("name", models.CharField(max_length=80)),
                ("globs", models.JSONField(default=list)),
                (
                    "order",
                    models.CharField(
                        choices=[("worst", "Worst first"), ("name", "By name"), ("depth", "Deepest first")],
                        default="worst",
                        max_length=8,
                    ),
                ),
                (
                    "density",
                    models.CharField(
                        choices=[("far", "Far"), ("middle", "Middle"), ("near", "Near")], default="far", max_length=8
                    ),
                ),
                (
                    "theme",
                    models.CharField(
                        choices=[("dark", "Dark"), ("light", "Light"), ("auto", "As the screen's system")],
                        default="dark",
                        max_length=8,
                    ),
                ),
                ("rotation", models.JSONField(default=list)),
                ("seconds", models.PositiveIntegerField(default=30)),
                ("made_by", models.CharField(max_length=150)),
                ("made_at", models.DateTimeField()),
                ("changed_by", models.CharField(max_length=150)),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Link",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=80)),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("cookie_hash", models.CharField(max_length=64, null=True, unique=True)),
                ("made_by", models.CharField(max_length=150)),
                ("made_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField(null=True)),
                ("seen_from", models.CharField(blank=True, max_length=64)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("revoked_by", models.CharField(blank=True, max_length=150)),
                (
                    "board",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="links", to="wall.board"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
    ]

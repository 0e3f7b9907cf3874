"""The table of login attempts and the groups that are roles."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def create_groups(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create one group for each role."""
    group = apps.get_model("auth", "Group")
    for name in ("viewer", "operator", "admin"):
        group.objects.using(schema_editor.connection.alias).get_or_create(name=name)


class Migration(migrations.Migration):
    initial = True
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = [
        migrations.CreateModel(
            name="LoginAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["key", "at"], name="attempt_key_at"),
                    models.Index(fields=["at"], name="attempt_at"),
                ],
            },
        ),
        migrations.RunPython(create_groups, migrations.RunPython.noop),
    ]

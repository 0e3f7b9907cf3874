from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("wall", "0002_board_language"),
    ]

    operations = [
        migrations.AddField(
            model_name="link",
            name="code_hash",
            field=models.CharField(max_length=64, null=True, unique=True),
        ),
    ]

"""Entries belong to snapshots. Those stored so far follow from the ratings, and are computed anew from them."""

import django.core.serializers.json
import django.core.validators
import django.db.models.deletion
import scooter_site.common.storage
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0003_mark_boards_of_demonstrations"),
        ("imagedb", "0010_find_unverified_images"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.DeleteModel(name="Entry"),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("participants", models.PositiveIntegerField()),
                ("ratings", models.PositiveIntegerField()),
                ("ratings_modified", models.PositiveIntegerField(verbose_name="ratings of modified images")),
                ("ratings_clean", models.PositiveIntegerField(verbose_name="ratings of clean images")),
                ("images_modified", models.PositiveIntegerField(verbose_name="modified images")),
                ("images_clean", models.PositiveIntegerField(verbose_name="clean images")),
                (
                    "images_unverified",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Modified images that were rated, and whose effect on the model is unknown.",
                        verbose_name="unverified images",
                    ),
                ),
                ("mean_modified", models.FloatField(blank=True, null=True)),
                ("sd_modified", models.FloatField(blank=True, null=True, verbose_name="SD modified")),
                ("mean_clean", models.FloatField(blank=True, null=True)),
                ("sd_clean", models.FloatField(blank=True, null=True, verbose_name="SD clean")),
                (
                    "mean_difference",
                    models.FloatField(
                        blank=True, help_text="Mean of all ratings of modified minus that of clean images.", null=True
                    ),
                ),
                (
                    "difference",
                    models.FloatField(
                        blank=True,
                        help_text="Of the mixed model, modified minus clean: above zero, people notice.",
                        null=True,
                    ),
                ),
                ("standard_error", models.FloatField(blank=True, null=True)),
                ("degrees_of_freedom", models.FloatField(blank=True, help_text="Satterthwaite's.", null=True)),
                ("ci90_low", models.FloatField(blank=True, null=True, verbose_name="90 % interval from")),
                ("ci90_high", models.FloatField(blank=True, null=True, verbose_name="90 % interval to")),
                ("ci95_low", models.FloatField(blank=True, null=True, verbose_name="95 % interval from")),
                ("ci95_high", models.FloatField(blank=True, null=True, verbose_name="95 % interval to")),
                (
                    "p_lower",
                    models.FloatField(
                        blank=True, help_text="One-sided.", null=True, verbose_name="p that it is above the lower bound"
                    ),
                ),
                (
                    "p_upper",
                    models.FloatField(
                        blank=True, help_text="One-sided.", null=True, verbose_name="p that it is below the upper bound"
                    ),
                ),
                (
                    "holm_p_value",
                    models.FloatField(
                        blank=True,
                        help_text="Of the two tests together, over the snapshot.",
                        null=True,
                        verbose_name="Holm-adjusted p value",
                    ),
                ),
                (
                    "supported_bound",
                    models.FloatField(
                        blank=True, help_text="The smallest bound these ratings could support.", null=True
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("imperceptible", "Imperceptible"),
                            ("perceptible", "Perceptible"),
                            ("inconclusive", "Inconclusive"),
                            ("not_estimable", "Not estimable"),
                        ],
                        default="not_estimable",
                        max_length=15,
                    ),
                ),
                (
                    "rank",
                    models.PositiveIntegerField(
                        blank=True, help_text="1 is the smallest absolute difference.", null=True
                    ),
                ),
                (
                    "rank_low",
                    models.PositiveIntegerField(
                        blank=True, help_text="With 90 % probability the rank is from this one ...", null=True
                    ),
                ),
                ("rank_high", models.PositiveIntegerField(blank=True, help_text="... to this one.", null=True)),
                ("rank_probabilities", models.JSONField(blank=True, default=list, help_text="Of the ranks 1, 2, ...")),
                ("auc", models.FloatField(blank=True, null=True, verbose_name="AUC")),
                ("auc_low", models.FloatField(blank=True, null=True, verbose_name="95 % interval of the AUC from")),
                ("auc_high", models.FloatField(blank=True, null=True, verbose_name="95 % interval of the AUC to")),
                (
                    "accuracy_modified",
                    models.FloatField(
                        blank=True,
                        help_text="Share of ratings of modified images on the modified side; middle: half.",
                        null=True,
                    ),
                ),
                (
                    "accuracy_clean",
                    models.FloatField(blank=True, help_text="The same for clean images and the clean side.", null=True),
                ),
                ("d_prime", models.FloatField(blank=True, null=True, verbose_name="d'")),
                ("icc_single", models.FloatField(blank=True, null=True, verbose_name="ICC(2,1)")),
                ("icc_mean", models.FloatField(blank=True, null=True, verbose_name="ICC(2,k)")),
                ("krippendorff_alpha", models.FloatField(blank=True, null=True, verbose_name="Krippendorff's alpha")),
                ("split_half", models.FloatField(blank=True, null=True, verbose_name="split-half reliability")),
                (
                    "attack_success_rate",
                    models.FloatField(
                        blank=True,
                        help_text="Share of the rated modified images that the target model is known to misclassify, 0 to 1.",
                        null=True,
                    ),
                ),
                (
                    "fools_unnoticed",
                    models.FloatField(
                        blank=True,
                        help_text="Share of the rated modified images that the target model is known to misclassify and that people rate at most the equivalence bound above clean images, 0 to 1.",
                        null=True,
                        verbose_name="fools the model and nobody notices",
                    ),
                ),
                ("flags", models.JSONField(blank=True, default=list, help_text="Codes of leaderboard.models.Flag.")),
                (
                    "details",
                    models.JSONField(blank=True, default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder),
                ),
                (
                    "inputs",
                    models.FileField(
                        help_text="The ratings that it follows from (leaderboard/inputs.py says how they are written).",
                        max_length=200,
                        storage=scooter_site.common.storage.private_storage,
                        upload_to=scooter_site.common.storage.opaque_name("results"),
                    ),
                ),
                ("inputs_sha256", models.CharField(editable=False, help_text="Of the stored file.", max_length=64)),
                ("inputs_bytes", models.PositiveBigIntegerField(default=0, editable=False)),
                (
                    "input_digest",
                    models.CharField(
                        help_text="SHA-256 over the ratings that went in: equal digests, equal results.", max_length=64
                    ),
                ),
                ("code_version", models.CharField(blank=True, max_length=64)),
                (
                    "data_cutoff",
                    models.DateTimeField(
                        blank=True,
                        help_text="The newest change of which participations count that is in it.",
                        null=True,
                    ),
                ),
                ("computed_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "entries",
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="ExternalResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "high_means",
                    models.CharField(
                        choices=[("modified", "Modified"), ("clean", "Unmodified")],
                        default="modified",
                        max_length=10,
                        verbose_name="a high rating means",
                    ),
                ),
                (
                    "file",
                    models.FileField(
                        max_length=200,
                        storage=scooter_site.common.storage.private_storage,
                        upload_to=scooter_site.common.storage.opaque_name("external"),
                        verbose_name="ratings",
                    ),
                ),
                ("file_sha256", models.CharField(editable=False, max_length=64, verbose_name="SHA-256 of the file")),
                ("file_bytes", models.PositiveBigIntegerField(editable=False, verbose_name="size in bytes")),
                (
                    "secret",
                    models.CharField(
                        editable=False,
                        help_text="Makes public ids of its participants that nobody can trace back.",
                        max_length=64,
                    ),
                ),
                ("citation", models.TextField(help_text="How the authors want it cited.")),
                ("source_url", models.URLField(blank=True, verbose_name="where it is published")),
                (
                    "attack_success_rate",
                    models.FloatField(
                        blank=True,
                        help_text="As its authors state it, 0 to 1.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                ("added_at", models.DateTimeField(auto_now_add=True)),
                (
                    "withdrawn_at",
                    models.DateTimeField(editable=False, help_text="Since then it is shown nowhere.", null=True),
                ),
                ("withdrawal_reason", models.TextField(blank=True, editable=False)),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="Recomputation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "requested_at",
                    models.DateTimeField(help_text="Since when it waits; empty: nothing does.", null=True),
                ),
                (
                    "taken",
                    models.DateTimeField(
                        help_text="The request that a worker last began with; a later one is another, and waits.",
                        null=True,
                    ),
                ),
                ("failures", models.PositiveSmallIntegerField(default=0, help_text="Runs in a row that failed.")),
                ("problem", models.TextField(blank=True, help_text="Why the last run failed.")),
                (
                    "covered",
                    models.JSONField(
                        default=list,
                        help_text="The state of the valid participations that the stored results follow from.",
                    ),
                ),
                ("runs", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "number",
                    models.PositiveIntegerField(
                        blank=True, help_text="1, 2, ... on its board; a draft has none.", null=True
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[("draft", "Draft"), ("published", "Published"), ("retracted", "Retracted")],
                        default="draft",
                        max_length=10,
                    ),
                ),
                (
                    "rules",
                    models.JSONField(
                        default=dict, help_text="The board's rules as they were; of a draft those of now apply."
                    ),
                ),
                ("seed", models.PositiveIntegerField(default=0, help_text="Of everything that is drawn at random.")),
                (
                    "data_cutoff",
                    models.DateTimeField(
                        blank=True,
                        help_text="The newest change of what counts that is in it; later ones are not.",
                        null=True,
                    ),
                ),
                (
                    "code_version",
                    models.CharField(blank=True, help_text="Of the program that computed the entries.", max_length=64),
                ),
                (
                    "input_digest",
                    models.CharField(
                        blank=True,
                        help_text="SHA-256 over the digests of its entries' inputs, and the rules.",
                        max_length=64,
                    ),
                ),
                ("entry_count", models.PositiveIntegerField(default=0, editable=False, help_text="Once published.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("published_at", models.DateTimeField(blank=True, null=True)),
                ("note", models.TextField(blank=True, help_text="What a person said of it when publishing.")),
                ("retracted_at", models.DateTimeField(blank=True, null=True)),
                ("retraction_reason", models.TextField(blank=True)),
            ],
            options={
                "ordering": ["board", "-number"],
            },
        ),
        migrations.AlterModelOptions(
            name="board",
            options={
                "ordering": ["is_demo", "name"],
                "permissions": [("publish_board", "Can publish and retract snapshots")],
            },
        ),
        migrations.RemoveConstraint(
            model_name="board",
            name="one_board_per_scale",
        ),
        migrations.AddField(
            model_name="board",
            name="alpha",
            field=models.FloatField(
                default=0.05,
                help_text="Level of each of the two one-sided tests.",
                validators=[
                    django.core.validators.MinValueValidator(0.0001),
                    django.core.validators.MaxValueValidator(0.4999),
                ],
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="equivalence_bound",
            field=models.FloatField(
                blank=True,
                help_text="In points of the scale, to each side; empty: 5 % of its width. Set it before ratings are seen.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1e-09)],
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="is_public",
            field=models.BooleanField(
                default=True, help_text="Off: nobody sees it outside the admin.", verbose_name="public"
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="minimum_participants",
            field=models.PositiveIntegerField(
                default=10, help_text="An entry of fewer valid participants is marked “few raters”."
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="protocol",
            field=models.CharField(
                blank=True, help_text="Only studies made from this preset; empty: of any protocol.", max_length=20
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="ranks_few_raters",
            field=models.BooleanField(
                default=True,
                help_text="Off: they are shown, and have no rank.",
                verbose_name="rank entries of few raters",
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="target_models",
            field=models.ManyToManyField(
                blank=True,
                help_text="Only attacks on these; none chosen: on any.",
                related_name="boards",
                to="imagedb.targetmodel",
            ),
        ),
        migrations.AddField(
            model_name="board",
            name="verified_images_only",
            field=models.BooleanField(
                default=False,
                help_text="Leave out ratings of modified images that are not known to mislead their target model.",
            ),
        ),
        migrations.AlterField(
            model_name="board",
            name="description",
            field=models.TextField(blank=True, help_text="For visitors: what is compared here."),
        ),
        migrations.AlterField(
            model_name="board",
            name="slug",
            field=models.SlugField(
                help_text="Part of the board's address, which people cite.", max_length=100, unique=True
            ),
        ),
        migrations.AddConstraint(
            model_name="board",
            constraint=models.CheckConstraint(
                condition=models.Q(("equivalence_bound__isnull", True), ("equivalence_bound__gt", 0), _connector="OR"),
                name="board_bound_is_positive",
            ),
        ),
        migrations.AddConstraint(
            model_name="board",
            constraint=models.CheckConstraint(
                condition=models.Q(("alpha__gt", 0), ("alpha__lt", 0.5)), name="board_alpha_between_0_and_a_half"
            ),
        ),
        migrations.AddField(
            model_name="entry",
            name="attack",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="entries", to="imagedb.attack"
            ),
        ),
        migrations.AddField(
            model_name="entry",
            name="target_model",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="entries", to="imagedb.targetmodel"
            ),
        ),
        migrations.AddField(
            model_name="externalresult",
            name="added_by",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="externalresult",
            name="attack",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="external_results", to="imagedb.attack"
            ),
        ),
        migrations.AddField(
            model_name="externalresult",
            name="board",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="external_results", to="leaderboard.board"
            ),
        ),
        migrations.AddField(
            model_name="externalresult",
            name="target_model",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="external_results", to="imagedb.targetmodel"
            ),
        ),
        migrations.AddField(
            model_name="entry",
            name="external_result",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="entries",
                to="leaderboard.externalresult",
            ),
        ),
        migrations.AddField(
            model_name="recomputation",
            name="attack",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="imagedb.attack"),
        ),
        migrations.AddField(
            model_name="recomputation",
            name="target_model",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="imagedb.targetmodel"
            ),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="board",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="snapshots", to="leaderboard.board"
            ),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="published_by",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: the board's policy.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="retracted_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="entry",
            name="snapshot",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="entries", to="leaderboard.snapshot"
            ),
        ),
        migrations.AddConstraint(
            model_name="externalresult",
            constraint=models.UniqueConstraint(
                condition=models.Q(("withdrawn_at__isnull", True)),
                fields=("board", "attack", "target_model"),
                name="one_external_result_per_pair_and_board",
                violation_error_message="The board has an external result of this pair. Withdraw it first.",
            ),
        ),
        migrations.AddConstraint(
            model_name="externalresult",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("withdrawal_reason", ""), ("withdrawn_at__isnull", True)),
                    models.Q(("withdrawn_at__isnull", False), models.Q(("withdrawal_reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="withdrawn_result_has_a_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="recomputation",
            constraint=models.UniqueConstraint(fields=("attack", "target_model"), name="one_recomputation_per_pair"),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "draft")), fields=("board",), name="one_draft_snapshot_per_board"
            ),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.UniqueConstraint(fields=("board", "number"), name="snapshot_number_once_per_board"),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("number__isnull", True), ("published_at__isnull", True), ("status", "draft")),
                    models.Q(
                        ("number__gte", 1),
                        ("published_at__isnull", False),
                        ("status__in", ["published", "retracted"]),
                        models.Q(("input_digest", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="snapshot_has_a_number_once_published",
            ),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("retracted_at__isnull", False),
                        ("status", "retracted"),
                        models.Q(("retraction_reason", ""), _negated=True),
                    ),
                    models.Q(
                        models.Q(("status", "retracted"), _negated=True),
                        ("retracted_at__isnull", True),
                        ("retraction_reason", ""),
                    ),
                    _connector="OR",
                ),
                name="retracted_snapshot_has_a_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="entry",
            constraint=models.UniqueConstraint(
                fields=("snapshot", "attack", "target_model"), name="one_entry_per_pair_and_snapshot"
            ),
        ),
        migrations.AddConstraint(
            model_name="entry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("difference__isnull", True), ("standard_error__isnull", True), ("verdict", "not_estimable")
                    ),
                    models.Q(
                        ("difference__isnull", False),
                        ("standard_error__isnull", False),
                        models.Q(("verdict", "not_estimable"), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="estimated_entry_has_its_error_and_verdict",
            ),
        ),
        migrations.AddConstraint(
            model_name="entry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("rank__isnull", True), models.Q(("difference__isnull", False), ("rank__gte", 1)), _connector="OR"
                ),
                name="only_an_estimated_entry_is_ranked",
            ),
        ),
    ]

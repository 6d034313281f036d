"""All settings, read from environment variables (docs/settings.md and .env.example list them).

With DEBUG off the site refuses to start on an insecure setting rather than warn about it.
"""

import logging
from pathlib import Path

import environ
from celery.schedules import crontab
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from scooter_site.common.rates import parse_rate
from scooter_site.common.s3_url import storage_settings

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

# --- Security -------------------------------------------------------------------------------------------------

DEFAULT_SECRET_KEY = "insecure-development-key"  # noqa: S105 - refused below unless DEBUG is on
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default=DEFAULT_SECRET_KEY)
# Earlier keys, newest first: sessions, links and stored secrets made with them stay good.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1"] if DEBUG else [])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
CSRF_FAILURE_VIEW = "scooter_site.errors.csrf_failure"

# Off only where no TLS exists, as on a laptop: cookies then travel unencrypted.
HTTPS = env.bool("HTTPS", default=not DEBUG)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=3600) if HTTPS else 0
SECURE_REDIRECT_EXEMPT = [r"^health/$"]
BEHIND_TLS_PROXY = env.bool("BEHIND_TLS_PROXY", default=False)
if BEHIND_TLS_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Subdomains may be somebody else's, and the browsers' preload list is a decision for good: not ours to take.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- Database -------------------------------------------------------------------------------------------------

DATABASES = {"default": env.db_url("DATABASE_URL", default=f"sqlite:///{BASE_DIR / 'var' / 'scooter.sqlite3'}")}
DATABASES["default"]["ATOMIC_REQUESTS"] = False  # services open their own, short transactions
USES_SQLITE = DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3"
if USES_SQLITE:
    # IMMEDIATE takes the write lock when a transaction begins, so that two writers queue up (for at most the
    # time-out) instead of failing with "database is locked" half-way. Foreign keys are on by Django's default.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 60,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
    }
    Path(str(DATABASES["default"]["NAME"])).parent.mkdir(parents=True, exist_ok=True)
    if TEST_SQLITE_FILE := env.str("TEST_SQLITE_FILE", default=""):
        # Tests with threads need what production has: connections of their own to a file, not one shared memory.
        DATABASES["default"]["TEST"] = {"NAME": TEST_SQLITE_FILE}
elif DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    DATABASES["default"]["ENGINE"] = "scooter_site.common.postgresql"  # looks after a connection without asking
# Reconnecting costs either database more than a small request does; for SQLite it also rewrites its log.
DATABASES["default"]["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=60)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = not USES_SQLITE
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Refusals -------------------------------------------------------------------------------------------------

if not DEBUG:
    if SECRET_KEY in {"", DEFAULT_SECRET_KEY}:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set. Set it to a long random string, or set DEBUG=on for development "
            "(cp .env.example .env), or run `make demo`."
        )
    if not ALLOWED_HOSTS:
        raise ImproperlyConfigured("ALLOWED_HOSTS is empty. Set it to the host names of this site, comma-separated.")
    if USES_SQLITE and not env.bool("ALLOW_SQLITE", default=False):
        raise ImproperlyConfigured(
            "The database is SQLite. Set DATABASE_URL to a PostgreSQL database "
            "(postgres://user:password@host/name), or set ALLOW_SQLITE=on if you mean it."
        )

# --- Redis / Valkey and Celery --------------------------------------------------------------------------------

REDIS_URL = env.str("REDIS_URL", default="")
# Without a broker, tasks can only run where they are enqueued: fine for one developer, too slow for visitors.
CELERY_TASK_ALWAYS_EAGER = env.bool("CELERY_TASK_ALWAYS_EAGER", default=DEBUG and not REDIS_URL)
if not (REDIS_URL or CELERY_TASK_ALWAYS_EAGER):
    raise ImproperlyConfigured(
        "REDIS_URL is not set, so that no worker would ever get a task. Set it to a Redis or Valkey server "
        "(redis://host:6379/0), or set CELERY_TASK_ALWAYS_EAGER=on to run tasks within requests."
    )
if REDIS_URL:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CELERY_BROKER_URL = REDIS_URL or "memory://localhost/"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A web request must not hang on a broker that is away: give up within seconds; beat's reconciling tasks
# find what was not enqueued.
# A task whose worker died without a word is delivered again after the visibility timeout (seconds); it must be longer
# than any task runs.
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {
        "visibility_timeout": env.int("CELERY_VISIBILITY_TIMEOUT", default=3600),
        "socket_connect_timeout": 3,
        "socket_timeout": 10,
        "connect_retries_timeout": 1,
        "interval_start": 0,
        "interval_step": 0.2,
    }
    if REDIS_URL
    else {}
)
# Results of a pair are computed so many seconds after its ratings changed: what changes meanwhile comes with it.
RECOMPUTE_DELAY_SECONDS = env.int("RECOMPUTE_DELAY_SECONDS", default=5)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_EAGER_PROPAGATES = True
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
# How many tasks do one import at the same time; more than there are worker processes is of no use.
IMPORT_TASKS = env.int("IMPORT_TASKS", default=2)
CELERY_BEAT_SCHEDULE = {
    "delete-stale-previews": {"task": "studies.tasks.delete_stale_previews", "schedule": 600.0},
    "resume-lost-builds": {"task": "studies.tasks.resume_lost_builds", "schedule": 300.0},
    "close-timed-out-participations": {"task": "studies.tasks.close_timed_out_participations", "schedule": 300.0},
    "process-waiting-webhook-events": {"task": "studies.tasks.process_waiting_webhook_events", "schedule": 120.0},
    "read-panel-studies": {"task": "studies.tasks.read_panel_studies", "schedule": 600.0},
    "continue-payment-runs": {"task": "studies.tasks.continue_payment_runs", "schedule": 300.0},
    "recompute-outdated-entries": {"task": "leaderboard.tasks.recompute_outdated_entries", "schedule": 120.0},
    "refresh-entries": {"task": "leaderboard.tasks.refresh_entries", "schedule": crontab(hour=2, minute=30)},
    "publish-daily": {"task": "leaderboard.tasks.publish_daily", "schedule": crontab(hour=4, minute=0)},
    "resume-interrupted-imports": {"task": "imagedb.tasks.resume_interrupted_imports", "schedule": 60.0},
    "abandon-stale-uploads": {"task": "imagedb.tasks.abandon_stale_uploads", "schedule": 3600.0},
}

# --- Files ----------------------------------------------------------------------------------------------------

# One variable: S3_URL=https://KEY:SECRET@endpoint/bucket?region=eu-west-1 ; empty means local files below
# MEDIA_ROOT. Either way the code sees the same three storages (scooter_site/common/storage.py).
MEDIA_ROOT = Path(env.str("MEDIA_ROOT", default=str(BASE_DIR / "var" / "media")))
S3_URL = env.str("S3_URL", default="")
_file_storages = storage_settings(S3_URL, MEDIA_ROOT)
# Where the web server in front finds MEDIA_ROOT, if it sends the files itself (docs/storage.md).
X_ACCEL_PREFIX = env.str("X_ACCEL_PREFIX", default="")
if X_ACCEL_PREFIX and not (X_ACCEL_PREFIX.startswith("/") and X_ACCEL_PREFIX.endswith("/")):
    raise ImproperlyConfigured("X_ACCEL_PREFIX must begin and end with a slash, as the nginx location does.")
STORAGES = {
    "default": _file_storages["private"],
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
    **_file_storages,
}
STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")))
STATICFILES_DIRS = [BASE_DIR / "scooter_site" / "static"]
# How many archives of images a web process sends at a time; the rest of its threads (4) is for pages.
ARCHIVE_DOWNLOADS_PER_PROCESS = env.int("ARCHIVE_DOWNLOADS_PER_PROCESS", default=2)
# A client that takes in less than a mebibyte of an archive in so many seconds is cut off; it can resume.
ARCHIVE_STALL_SECONDS = env.int("ARCHIVE_STALL_SECONDS", default=120)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
# Of one file that is uploaded in parts (docs/uploads.md).
MAX_UPLOAD_BYTES = env.int("MAX_UPLOAD_BYTES", default=50 * 1024**3)

# --- Applications ---------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "axes",
    "csp",
    "django_celery_beat",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
    "storages",
    "scooter_site.common",
    "scooter_site.accounts",
    "imagedb",
    "studies",
    "leaderboard",
    "scooter_site.demo",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "scooter_site.common.middleware.ContentSecurityPolicyMiddleware",
    "scooter_site.common.middleware.AdminContentSecurityPolicyMiddleware",
    "scooter_site.common.middleware.NoNullInPathMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"  # only who is logged in has any
ROOT_URLCONF = "scooter_site.urls"
WSGI_APPLICATION = "scooter_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
FORM_RENDERER = "django.forms.renderers.DjangoTemplates"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}

# --- Accounts -------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_CLIENT_IP_CALLABLE = "scooter_site.common.client_address.client_address"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "admin/locked_out.html"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "log-in"
# Whether anybody can make an account. Off, administrators make them.
SIGN_UP = env.bool("SIGN_UP", default=False)
LOGIN_REDIRECT_URL = "admin:index"

# --- Language and time ----------------------------------------------------------------------------------------

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = True
FORMAT_MODULE_PATH = "scooter_site.formats"
USE_TZ = True

# --- API ------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "scooter_site.accounts.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    # Closed by default: a public endpoint says so itself.
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PAGINATION_CLASS": "scooter_site.common.pagination.StableCursorPagination",
    "DEFAULT_FILTER_BACKENDS": ["scooter_site.common.filters.StrictFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["scooter_site.common.throttling.ScopeThrottle"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "scooter_site.common.negotiation.StrictNegotiation",
    "EXCEPTION_HANDLER": "scooter_site.common.api_errors.errors_as_json",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
}
# Requests of one account, or of one address without an account: NUMBER/second, minute, hour or day; or off. Arrivals
# are consents to one study.
THROTTLE_RATES = {}
for _scope, _rate in {
    "lists": env.str("THROTTLE_LISTS", default="300/minute"),
    "files": env.str("THROTTLE_FILES", default="3000/minute"),
    "uploads": env.str("THROTTLE_UPLOADS", default="600/minute"),
    "log_in": env.str("THROTTLE_LOG_IN", default="60/hour"),
    "sign_up": env.str("THROTTLE_SIGN_UP", default="20/hour"),
    "arrivals": env.str("THROTTLE_ARRIVALS", default="200/hour"),
}.items():
    try:
        THROTTLE_RATES[_scope] = parse_rate(_rate)
    except ValueError as error:
        raise ImproperlyConfigured(f"THROTTLE_{_scope.upper()}: {error}") from None
SPECTACULAR_SETTINGS = {
    "TITLE": "Scooter API",
    "DESCRIPTION": "Images, attacks, target models and leaderboard of the Scooter platform.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    # Fields of one name with different words to choose from; without a name of its own, one gets a number.
    "ENUM_NAME_OVERRIDES": {
        "ImportStatusEnum": "imagedb.models.imports.ImportStatus",
        "UploadStatusEnum": "imagedb.models.uploads.UploadStatus",
        "SnapshotStatusEnum": "leaderboard.models.snapshot.SnapshotStatus",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "scooter_site.common.throttling.document_throttling",
    ],
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "defaultModelsExpandDepth": 0},
}

# --- Recruitment ----------------------------------------------------------------------------------------------

PROLIFIC_API_URL = env.str("PROLIFIC_API_URL", default="https://api.prolific.com")
PROLIFIC_COMPLETION_URL = env.str(
    "PROLIFIC_COMPLETION_URL", default="https://app.prolific.com/submissions/complete?cc={code}"
)
# Bonuses show in a submission with some delay. One that was asked for this long ago, whose answer was lost, and that is
# still not there is put before a person.
BONUS_SHOWS_WITHIN_MINUTES = env.int("BONUS_SHOWS_WITHIN_MINUTES", default=60)

# --- Admin ----------------------------------------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": "Scooter",
    "SITE_HEADER": "Scooter",
    "SITE_SUBHEADER": "Is it really imperceptible?",
    "SITE_SYMBOL": "electric_scooter",
    "SITE_URL": "/",
    "SHOW_HISTORY": True,
    "BORDER_RADIUS": "8px",
    "DASHBOARD_CALLBACK": "scooter_site.dashboard.dashboard",
    "SIDEBAR": {"navigation": "scooter_site.dashboard.navigation"},
    "STYLES": ["scooter_site.dashboard.stylesheet", "scooter_site.dashboard.study_stylesheet"],
    "SCRIPTS": ["scooter_site.dashboard.copy_script", "scooter_site.dashboard.refresh_script"],
    # Greys without a tint: the images beside them must look as they are. The accent is that of tokens.css.
    "COLORS": {
        "base": {
            "50": "#fafafa",
            "100": "#f4f4f4",
            "200": "#e4e4e4",
            "300": "#d0d0d0",
            "400": "#a1a1a1",
            "500": "#6b6b6b",
            "600": "#525252",
            "700": "#404040",
            "800": "#292929",
            "900": "#1a1a1a",
            "950": "#0d0d0d",
        },
        "primary": {
            "50": "oklch(97% .015 272)",
            "100": "oklch(93.5% .033 272)",
            "200": "oklch(87% .063 272)",
            "300": "oklch(78% .11 272)",
            "400": "oklch(77% .12 272)",
            "500": "oklch(70% .15 272)",
            "600": "#3038b0",
            "700": "oklch(37% .165 272)",
            "800": "oklch(32% .14 272)",
            "900": "oklch(27% .11 272)",
            "950": "oklch(20% .08 272)",
        },
    },
}

# --- Logging --------------------------------------------------------------------------------------------------

# No query strings and no bodies: both may hold a participant's id.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {"httpx": {"level": "WARNING"}},  # it would log whole addresses
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
}
logging.captureWarnings(True)

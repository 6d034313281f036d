# make demo   everything, with demonstration data, on http://localhost:8000 (PORT=8001 make demo: elsewhere);
#             FAKE_PROLIFIC=8010 make demo: with a stand-in for Prolific, on http://127.0.0.1:8010
# make test   lint, types, import contracts and every test
PORT ?= 8000
export SCOOTER_STARTED := $(shell date +%s)
VENV := .venv/bin/python

# The first Python that is new enough: the environment's own if it is there already.
FIND_PYTHON = for python in $(VENV) python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; python=; done; \
	[ -n "$$python" ] || { echo "Scooter needs Python 3.11 or newer; python3 is `python3 --version 2>&1`." >&2; exit 1; }
BOOTSTRAP = $(FIND_PYTHON); "$$python" scooter_site/demo/bootstrap.py
PRODUCTION_LIKE = DEBUG=off SECRET_KEY=$$($(VENV) -c 'import secrets; print(secrets.token_urlsafe(50))') \
	ALLOWED_HOSTS=scooter.example.org DATABASE_URL=postgres://scooter@localhost/scooter \
	REDIS_URL=redis://localhost:6379/0

.PHONY: demo remove-demo admin-password test lint lock clean install-dev

demo:
	@$(BOOTSTRAP) --free-port $(PORT) requirements-demo.txt
	@exec $(VENV) -m scooter_site.demo.serve --port $(PORT) $(if $(FAKE_PROLIFIC),--fake-prolific $(FAKE_PROLIFIC))

remove-demo:
	@$(VENV) -m scooter_site.demo.manage remove_demo

admin-password:
	@$(VENV) -m scooter_site.demo.manage changepassword admin

test: install-dev lint
	@$(VENV) -m tests.browser
	$(VENV) -m pytest -n auto --maxprocesses 4 -m "not services"
	$(VENV) -m pytest -m services

install-dev:
	@$(BOOTSTRAP) requirements-dev.txt

lint: install-dev
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m djlint templates --lint --quiet
	DEBUG=on $(VENV) -m mypy .
	DEBUG=on .venv/bin/lint-imports
	DEBUG=on DATABASE_URL=sqlite:///:memory: $(VENV) manage.py makemigrations --check --dry-run
	$(PRODUCTION_LIKE) $(VENV) manage.py check --deploy --fail-level WARNING

# The pinned requirements, from the short lists with the reasons. UPGRADE=--upgrade takes newer versions.
lock: install-dev
	for name in requirements requirements-demo requirements-dev; do \
		$(VENV) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
			$(UPGRADE) $$name.in --output-file $$name.txt || exit 1; done

clean:
	rm -rf .venv staticfiles .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

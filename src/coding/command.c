#include "coding/command.h"

#include "coding/internal.h"
#include "json/document/json.h"

#define NEED(program)                                                                              \
	"command -v " program " >/dev/null 2>&1 || { echo '#holt-missing " program                 \
	"'; exit 127; }\n"
#define LOCAL_BIN                                                                                  \
	"PATH=$PWD/node_modules/.bin:$PWD/../node_modules/.bin:$PWD/../../node_modules/.bin:$PATH\n"
#define VENV "PATH=$PWD/.venv/bin:$PWD/venv/bin:$PATH\n"
#define BOTH "exec 2>&1\n"

/*
 * A plugin of pytest that prints a line of JSON for each failure and one with the counts. A line of
 * its own, since pytest's text cuts messages and has no exact ids. It must not contain a quote of
 * the shell.
 */
static const char pytest_script[] =
	"PATH=$PWD/.venv/bin:$PWD/venv/bin:$PATH\n"
	"p= has='import importlib.util as u, sys; sys.exit(not u.find_spec(\"pytest\"))'\n"
	"t=$(command -v pytest || command -v pytest-3)\n"
	"for c in python3 python ${t:+$(sed -n \"1s/^#! *//p\" \"$t\")}; do\n"
	"command -v $c >/dev/null 2>&1 && $c -c \"$has\" 2>/dev/null && p=$c && break\n"
	"done\n"
	"[ \"$p\" ] || { echo '#holt-missing pytest'; exit 127; }\n"
	"exec $p -c '\n"
	"import json, os, sys\n"
	"import pytest\n"
	"class Report:\n"
	"    def __init__(self):\n"
	"        self.out = os.fdopen(os.dup(1), \"w\", encoding=\"utf-8\", "
	"errors=\"backslashreplace\")\n"
	"        self.passed = self.skipped = 0\n"
	"    def put(self, **what):\n"
	"        self.out.write(\"\\n#holt-test \" + json.dumps(what) + \"\\n\")\n"
	"        self.out.flush()\n"
	"    def failure(self, r):\n"
	"        crash = getattr(r.longrepr, \"reprcrash\", None)\n"
	"        file, line, text = \"\", 0, \"\"\n"
	"        if crash:\n"
	"            file, line, text = str(crash.path), crash.lineno, crash.message\n"
	"        elif getattr(r, \"location\", None):\n"
	"            file, line = r.location[0], (r.location[1] or 0) + 1\n"
	"        if not text:\n"
	"            text = getattr(r, \"longreprtext\", \"\") or str(r.longrepr)\n"
	"            text = \"\\n\".join(l for l in text.splitlines() if l[:2] == \"E \") or text\n"
	"        self.put(id=r.nodeid, file=file, line=line, text=text[:2000])\n"
	"    @pytest.hookimpl\n"
	"    def pytest_collectreport(self, report):\n"
	"        if report.failed:\n"
	"            self.failure(report)\n"
	"    @pytest.hookimpl\n"
	"    def pytest_runtest_logreport(self, report):\n"
	"        if report.failed:\n"
	"            self.failure(report)\n"
	"        elif report.skipped:\n"
	"            self.skipped += 1\n"
	"        elif report.when == \"call\":\n"
	"            self.passed += 1\n"
	"    @pytest.hookimpl\n"
	"    def pytest_sessionfinish(self):\n"
	"        self.put(passed=self.passed, skipped=self.skipped)\n"
	"sys.exit(pytest.main(sys.argv[1:], plugins=[Report()]))\n"
	"' --continue-on-collection-errors";

/* The build folder that is set up already, else build. */
#define MESON_SETUP                                                                                \
	NEED("meson")                                                                              \
	"d=build; for f in build builddir _build b; do\n"                                          \
	"[ -f $f/meson-private/coredata.dat ] && d=$f && break\ndone\n"                            \
	"[ -f $d/meson-private/coredata.dat ] || meson setup $d || exit\n"
#define CMAKE_SETUP                                                                                \
	NEED("cmake")                                                                              \
	"d=build; for f in build builddir _build b; do\n"                                          \
	"[ -f $f/CMakeCache.txt ] && d=$f && break\ndone\n"                                        \
	"[ -f $d/CMakeCache.txt ] || cmake -S . -B $d || exit\n"
#define CARGO_CHECK "exec cargo check --all-targets --message-format=json"
#define C_LINT                                                                                     \
	NEED("cppcheck")                                                                           \
	"exec cppcheck --quiet --enable=warning,style,performance,portability --template=gcc "     \
	"--error-exitcode=1 -i build -i builddir ."

/* Whether make has something to run for a target. A file or folder of its name is a target without
 * a rule, for which make does nothing and says that all is well. */
#define MAKE_HAS(target)                                                                           \
	"{ [ ! -e " target " ] || ! make -q " target " >/dev/null 2>&1; } && make -n " target      \
	" >/dev/null 2>&1"

static const struct {
	enum test_format format;
	const char *lines[PROJECT_TASKS]; /* NULL: decided by the package or the files */
} kinds[PROJECT_KINDS] = {
	[PROJECT_GO] = { TESTS_GO,
			 { NEED("go") "exec go test -json -count=1",
			   NEED("go") "if command -v golangci-lint >/dev/null 2>&1; then\n"
				      "exec golangci-lint run ./...\n"
				      "fi\nexec go vet ./...",
			   NEED("go") "exec go vet ./..." } },
	[PROJECT_RUST] = { TESTS_CARGO,
			   { NEED("cargo") BOTH "exec cargo test --no-fail-fast",
			     NEED("cargo") NEED("cargo-clippy") "exec cargo clippy --all-targets "
								"--message-format=json -- "
								"-D warnings",
			     NEED("cargo") CARGO_CHECK } },
	[PROJECT_NODE] = { TESTS_ANY,
			   { NULL, LOCAL_BIN NEED("eslint") "exec eslint . --format json",
			     LOCAL_BIN NEED("tsc") "exec tsc --noEmit --pretty false" } },
	[PROJECT_PYTHON] = { TESTS_PYTEST,
			     { pytest_script,
			       VENV "if command -v ruff >/dev/null 2>&1; then\n"
				    "exec ruff check --output-format=concise .\n"
				    "fi\ncommand -v flake8 >/dev/null 2>&1 && exec flake8 .\n" NEED(
					    "ruff"),
			       VENV NEED("mypy") "exec mypy --no-pretty --no-color-output "
						 "--show-column-numbers --no-error-summary ." } },
	[PROJECT_MESON] = { TESTS_MESON,
			    { BOTH MESON_SETUP "exec meson test -C $d --print-errorlogs", C_LINT,
			      BOTH MESON_SETUP "meson compile -C $d --clean && exec meson compile "
					       "-C $d" } },
	[PROJECT_CMAKE] = { TESTS_CTEST,
			    { BOTH CMAKE_SETUP "cmake --build $d && exec ctest --test-dir $d "
					       "--output-on-failure",
			      C_LINT,
			      BOTH CMAKE_SETUP "exec cmake --build $d --clean-first -- -k" } },
	[PROJECT_MAKE] = { TESTS_ANY,
			   { BOTH NEED("make") "if " MAKE_HAS("check") "; then exec make check; "
								       "fi\nexec make test",
			     NEED("make") "if " MAKE_HAS("lint") "; then exec make lint; "
								 "fi\n" C_LINT,
			     BOTH NEED("make") "exec make -k -B" } },
	[PROJECT_SCRIPT] = { TESTS_ANY },
};

/* The programs of a workspace's sandbox are those of the host's /usr, and maybe those of toolchains
 * of the home of the hub's user (config/toolchains.h). Its own user is not root, and has no network
 * unless somebody grants one. */
#define ON_HOST(package)                                                                           \
	"Ask a person to install it on the host: apt-get install " package                         \
	", or in their home by rustup, nvm, pyenv and the like, where this workspace has those "   \
	"(docs/coding.md, Toolchains)."

static const struct {
	const char *program, *hint;
} hints[] = {
	{ "pytest", ON_HOST("python3-pytest") },
	{ "ruff", "With a network: pip install ruff in a virtual environment (flake8 is used as "
		  "well)." },
	{ "mypy", ON_HOST("mypy") },
	{ "eslint", "Install it in the project: npm install --save-dev eslint." },
	{ "tsc", "Install it in the project: npm install --save-dev typescript." },
	{ "jest", "Install the project's packages: npm ci." },
	{ "vitest", "Install the project's packages: npm ci." },
	{ "cargo-clippy", ON_HOST("rust-clippy") },
	{ "cargo", ON_HOST("cargo") },
	{ "go", ON_HOST("golang-go") },
	{ "node", ON_HOST("nodejs") },
	{ "npm", ON_HOST("npm") },
	{ "pnpm", "Install it in the project: npm install --save-dev pnpm." },
	{ "yarn", "Install it in the project: npm install --save-dev yarn." },
};

const char *program_hint(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		if (str_is(name, hints[i].program))
			return hints[i].hint;
	}
	return "Install the package of this name in the sandbox, or use a template that has it.";
}

void command_init(struct command *c)
{
	*c = (struct command){ .line = BUF_INIT(COMMAND_MAX) };
}

void command_fini(struct command *c)
{
	buf_fini(&c->line);
}

/* ---- words --------------------------------------------------------------------------------- */

/* Appends s as one word of a shell. */
static int shell_quote(struct buf *to, struct str s, struct err *e)
{
	if (buf_add(to, "'", 1, e) < 0)
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\'' ? buf_add(to, "'\\''", 4, e) < 0
				   : buf_add(to, &s.p[i], 1, e) < 0)
			return -1;
	}
	return buf_add(to, "'", 1, e);
}

static int add(struct buf *to, const char *text, struct err *e)
{
	return buf_add(to, text, strlen(text), e);
}

/* With what is special in a regular expression behind a backslash. */
static int add_literal(struct buf *to, struct str s, struct err *e)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((strchr(".*+?()[]{}|^$\\/", s.p[i]) && buf_add(to, "\\", 1, e) < 0) ||
		    buf_add(to, &s.p[i], 1, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- package.json -------------------------------------------------------------------------- */

static bool depends(const struct json_val *v, const char *name)
{
	return json_get(json_get(v, "devDependencies"), name) ||
	       json_get(json_get(v, "dependencies"), name);
}

void package_read(const struct json_val *v, struct package *ret)
{
	struct json_iter it = json_iter(json_get(v, "scripts"));

	ret->n = 0;
	while (ret->n < PACKAGE_SCRIPTS_MAX && json_next(&it)) {
		if (json_type(it.val) == JSON_STR)
			ret->scripts[ret->n++] = (struct package_script){ it.key,
									  json_str(it.val) };
	}
	ret->jest = depends(v, "jest");
	ret->vitest = depends(v, "vitest");
}

static struct str package_script(const struct package *p, const char *name)
{
	for (size_t i = 0; p && i < p->n; i++) {
		if (str_is(p->scripts[i].name, name))
			return p->scripts[i].line;
	}
	return STR_NONE;
}

static const char *package_manager(const struct project *p)
{
	return p->has & PROJECT_HAS_PNPM ? "pnpm"
	     : p->has & PROJECT_HAS_YARN ? "yarn"
	     : p->has & PROJECT_HAS_BUN	 ? "bun"
					 : "npm";
}

static int package_run(const struct project *p, struct str name, struct buf *to, struct err *e)
{
	const char *manager = package_manager(p);

	if (buf_addf(to, e,
		     "command -v %s >/dev/null 2>&1 || { echo '#holt-missing %s'; exit 127; }\n"
		     "exec %s run %s",
		     manager, manager, manager,
		     strcmp(manager, "npm") == 0 ? "--silent -- " : "") < 0)
		return -1;
	return shell_quote(to, name, e);
}

/* The runner's call in the project's own script goes on behind it. */
static struct str command_behind(struct str line, const char *words)
{
	struct str s = str_trim(line);

	return str_take(&s, words) && (!s.n || s.p[0] == ' ') ? s : STR_NONE;
}

enum node_runner { NODE_TEST, NODE_JEST, NODE_VITEST, NODE_SCRIPT };

static enum node_runner node_runner(const struct package *p, struct str *ret_rest)
{
	struct str line = package_script(p, "test");
	static const struct {
		const char *words;
		enum node_runner runner;
	} rows[] = {
		{ "node --test", NODE_TEST },  { "jest", NODE_JEST },
		{ "npx jest", NODE_JEST },     { "vitest run", NODE_VITEST },
		{ "vitest", NODE_VITEST },     { "npx vitest run", NODE_VITEST },
		{ "npx vitest", NODE_VITEST },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		*ret_rest = command_behind(line, rows[i].words);
		if (ret_rest->p && str_find(*ret_rest, "reporter") == ret_rest->n)
			return rows[i].runner;
	}
	*ret_rest = STR_LIT("");
	if (line.p)
		return NODE_SCRIPT;
	return p && p->jest ? NODE_JEST : p && p->vitest ? NODE_VITEST : NODE_TEST;
}

/* "outer > inner": some runners match names of tests, others those with all groups before them,
 * joined by a blank. */
static int add_name_pattern(struct buf *to, struct str name, bool suffixes, struct err *e)
{
	struct str rest = name;

	for (bool first = true; rest.n > 0; first = false) {
		struct str part = rest;

		if (add(to, first ? "^" : "|^", e) < 0)
			return -1;
		while (part.n > 0) {
			size_t n = str_find(part, " > ");

			if (add_literal(to, str_upto(part, n), e) < 0 ||
			    (n < part.n && add(to, "( > | )", e) < 0))
				return -1;
			part = str_from(part, n + 3);
		}
		if (add(to, "$", e) < 0)
			return -1;
		if (!suffixes)
			break;
		rest = str_from(rest, str_find(rest, " > ") + 3);
	}
	return 0;
}

/* One regular expression of all names, or none where a whole file is meant. */
static int add_name_option(struct buf *to, const char *option, const struct test_id *ids, size_t n,
			   bool suffixes, struct err *e)
{
	autobuf struct buf pattern = BUF_INIT(COMMAND_MAX);

	for (size_t i = 0; i < n; i++) {
		if (!ids[i].name.n)
			return 0;
		if ((i > 0 && add(&pattern, "|", e) < 0) ||
		    add_name_pattern(&pattern, ids[i].name, suffixes, e) < 0)
			return -1;
	}
	return add(to, option, e) < 0 ? -1 : shell_quote(to, buf_str(&pattern), e);
}

/* Each scope once, as a word. */
static int add_scopes(struct buf *to, const struct test_id *ids, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		bool known = !ids[i].scope.n;

		for (size_t k = 0; k < i; k++)
			known |= str_eq(ids[k].scope, ids[i].scope);
		if (!known && (add(to, " ", e) < 0 || shell_quote(to, ids[i].scope, e) < 0))
			return -1;
	}
	return 0;
}

static int node_command(const struct project *p, const struct package *package,
			const struct test_id *ids, size_t n, struct command *ret, struct err *e)
{
	struct buf *to = &ret->line;
	struct str rest;

	switch (node_runner(package, &rest)) {
	case NODE_TEST:
		if (add(to, NEED("node") LOCAL_BIN "exec node --test --test-reporter=tap", e) < 0 ||
		    (n && add_name_option(to, " --test-name-pattern=", ids, n, true, e) < 0))
			return -1;
		return buf_add(to, rest.p, rest.n, e);
	case NODE_JEST:
		ret->format = TESTS_JEST;
		if (add(to, LOCAL_BIN NEED("jest") BOTH "export CI=1 NO_COLOR=1\njest", e) < 0 ||
		    buf_add(to, rest.p, rest.n, e) < 0)
			return -1;
		if (!n)
			return 0;
		return add_name_option(to, " -t ", ids, n, false, e) < 0
			     ? -1
			     : add_scopes(to, ids, n, e);
	case NODE_VITEST:
		if (add(to,
			LOCAL_BIN NEED(
				"vitest") "export CI=1 NO_COLOR=1\nvitest run --reporter=tap-flat",
			e) < 0 ||
		    buf_add(to, rest.p, rest.n, e) < 0)
			return -1;
		if (!n)
			return 0;
		return add_name_option(to, " -t ", ids, n, false, e) < 0
			     ? -1
			     : add_scopes(to, ids, n, e);
	case NODE_SCRIPT:
		ret->everything = n > 0;
		return add(to, BOTH, e) < 0 ? -1 : package_run(p, STR_LIT("test"), to, e);
	}
	return 0;
}

/* ---- commands ------------------------------------------------------------------------------ */

static int script_command(const struct project *p, enum project_task task, struct command *ret,
			  struct err *e)
{
	static const char *const names[PROJECT_TASKS] = { "test", "lint", "typecheck" };
	struct str file = p->scripts[task];

	if (!file.n)
		return err_set(e, ERR_INVALID, "the project has no script/%s or %s.sh", names[task],
			       names[task]);
	return buf_addf(&ret->line, e, BOTH "if [ -x %.*s ]; then exec ./%.*s; fi\nexec sh %.*s",
			STR_ARG(file), STR_ARG(file), STR_ARG(file));
}

int command_for(const struct project *p, const struct package *package, enum project_task task,
		struct command *ret, struct err *e)
{
	static const char *const scripts[PROJECT_TASKS][3] = {
		[TASK_LINT] = { "lint" },
		[TASK_TYPECHECK] = { "typecheck", "type-check", "check-types" },
	};

	ret->format = kinds[p->kind].format;
	if (p->kind == PROJECT_SCRIPT)
		return script_command(p, task, ret, e);
	if (p->kind == PROJECT_NODE && task == TASK_TEST)
		return node_command(p, package, NULL, 0, ret, e);
	for (size_t i = 0; p->kind == PROJECT_NODE && i < 3 && scripts[task][i]; i++) {
		if (package_script(package, scripts[task][i]).p)
			return package_run(p, str_of(scripts[task][i]), &ret->line, e);
	}
	if (add(&ret->line, kinds[p->kind].lines[task], e) < 0)
		return -1;
	return p->kind == PROJECT_GO && task == TASK_TEST ? add(&ret->line, " ./...", e) : 0;
}

/* -run '^(TestA|TestB)$' and the packages; of "TestA/sub" all of TestA runs. */
static int go_rerun(const struct test_id *ids, size_t n, struct buf *to, struct err *e)
{
	autobuf struct buf pattern = BUF_INIT(COMMAND_MAX);

	if (add(&pattern, "^(", e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct str name = str_upto(ids[i].name, str_find(ids[i].name, "/"));

		if (!name.n) {
			pattern.n = 0; /* all tests of its package */
			break;
		}
		if ((i > 0 && add(&pattern, "|", e) < 0) || add_literal(&pattern, name, e) < 0)
			return -1;
	}
	if (pattern.n > 0 && (add(&pattern, ")$", e) < 0 || add(to, " -run ", e) < 0 ||
			      shell_quote(to, buf_str(&pattern), e) < 0))
		return -1;
	return add_scopes(to, ids, n, e);
}

static int each_word(struct buf *to, const struct test_id *ids, size_t n,
		     int (*word)(struct test_id id, struct buf *to, struct err *e), struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		autobuf struct buf b = BUF_INIT(2 * TEST_ID_MAX + 8);

		if (word(ids[i], &b, e) < 0 || add(to, " ", e) < 0 ||
		    shell_quote(to, buf_str(&b), e) < 0)
			return -1;
	}
	return 0;
}

static int name_word(struct test_id id, struct buf *to, struct err *e)
{
	return buf_add(to, id.name.p, id.name.n, e);
}

/* file::test, or a file that could not be imported */
static int pytest_word(struct test_id id, struct buf *to, struct err *e)
{
	return id.name.n ? test_id_text(id, to, e) : buf_add(to, id.scope.p, id.scope.n, e);
}

static int meson_word(struct test_id id, struct buf *to, struct err *e)
{
	if (id.scope.n && (buf_add(to, id.scope.p, id.scope.n, e) < 0 || add(to, ":", e) < 0))
		return -1;
	return buf_add(to, id.name.p, id.name.n, e);
}

static bool all_named(const struct test_id *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!ids[i].name.n)
			return false;
	}
	return true;
}

static int ctest_rerun(const struct test_id *ids, size_t n, struct buf *to, struct err *e)
{
	autobuf struct buf pattern = BUF_INIT(COMMAND_MAX);

	if (add(&pattern, "^(", e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if ((i > 0 && add(&pattern, "|", e) < 0) ||
		    add_literal(&pattern, ids[i].name, e) < 0)
			return -1;
	}
	if (add(&pattern, ")$", e) < 0 || add(to, " -R ", e) < 0)
		return -1;
	return shell_quote(to, buf_str(&pattern), e);
}

int command_rerun(const struct project *p, const struct package *package, const struct test_id *ids,
		  size_t n, struct command *ret, struct err *e)
{
	struct buf *to = &ret->line;

	if (p->kind == PROJECT_NODE) {
		ret->format = kinds[p->kind].format;
		return node_command(p, package, ids, n, ret, e);
	}
	if (p->kind == PROJECT_GO) {
		ret->format = TESTS_GO;
		return add(to, kinds[p->kind].lines[TASK_TEST], e) < 0 ? -1
								       : go_rerun(ids, n, to, e);
	}
	if (command_for(p, package, TASK_TEST, ret, e) < 0)
		return -1;
	switch (p->kind) {
	case PROJECT_RUST:
		if (!all_named(ids, n))
			break;
		return add(to, " -- --exact", e) < 0 ? -1 : each_word(to, ids, n, name_word, e);
	case PROJECT_PYTHON:
		return each_word(to, ids, n, pytest_word, e);
	case PROJECT_MESON:
		return each_word(to, ids, n, meson_word, e);
	case PROJECT_CMAKE:
		return ctest_rerun(ids, n, to, e);
	default:
		break;
	}
	ret->everything = true;
	return 0;
}

int command_script(const struct project *p, const struct package *package, struct str name,
		   struct command *ret, struct err *e)
{
	struct buf *to = &ret->line;

	for (size_t i = 0; i < name.n; i++) {
		if ((unsigned char)name.p[i] < ' ' || (i == 0 && name.p[i] == '-') ||
		    name.p[i] == '/' || name.p[i] == '=')
			return err_set(e, ERR_INVALID,
				       "a script's name has no /, = or control "
				       "character, and no - in front");
	}
	if (p->kind == PROJECT_NODE) {
		for (size_t i = 0; package && i < package->n; i++) {
			if (str_eq(package->scripts[i].name, name))
				return package_run(p, name, to, e);
		}
		if (add(to, "echo '#holt-scripts'", e) < 0)
			return -1;
		for (size_t i = 0; package && i < package->n && i < 50; i++) {
			if (add(to, " ", e) < 0 || shell_quote(to, package->scripts[i].name, e) < 0)
				return -1;
		}
		return add(to, "; exit 127", e);
	}
	if (add(to, "n=", e) < 0 || shell_quote(to, name, e) < 0)
		return -1;
	return add(
		to,
		"\nfor d in script scripts bin; do\n"
		"[ -f \"$d/$n\" ] && [ -x \"$d/$n\" ] && exec \"./$d/$n\"\n"
		"[ -f \"$d/$n.sh\" ] && exec sh \"$d/$n.sh\"\n"
		"done\n"
		"if [ -f Makefile ] || [ -f makefile ] || [ -f GNUmakefile ]; then\n"
		"make -n \"$n\" >/dev/null 2>&1 && exec make \"$n\"\n"
		"fi\n"
		"echo '#holt-scripts' $(ls script scripts bin 2>/dev/null | grep -v : | head -50) "
		"$(sed -n 's/^\\([A-Za-z0-9_.-]*\\):.*/\\1/p' Makefile makefile GNUmakefile "
		"2>/dev/null | grep -v '^\\.' | sort -u | head -n 50)\nexit 127",
		e);
}

#include "coding/project.h"

/* Folders of what others made are not looked into. Names are matched again below. */
const char project_names_command[] =
	"find . -maxdepth 4 -type d \\( -name .git -o -name node_modules -o -name vendor -o "
	"-name target -o -name build -o -name dist -o -name .venv -o -name venv -o "
	"-name site-packages -o -name __pycache__ \\) -prune -o -type f \\( -name go.mod -o "
	"-name Cargo.toml -o -name package.json -o -name pyproject.toml -o -name 'setup.*' -o "
	"-name pytest.ini -o -name tox.ini -o -name requirements.txt -o -name conftest.py -o "
	"-name 'test_*.py' -o -name meson.build -o -name CMakeLists.txt -o -name '*akefile' -o "
	"-name pnpm-lock.yaml -o -name yarn.lock -o -name 'bun.lock*' -o -name '*.sh' -o "
	"-name test -o -name lint -o -name typecheck \\) -print0 2>/dev/null | head -c 262144";

const char *const project_kind_names[PROJECT_KINDS] = {
	[PROJECT_GO] = "go",	     [PROJECT_RUST] = "rust",	  [PROJECT_NODE] = "node",
	[PROJECT_PYTHON] = "python", [PROJECT_MESON] = "meson",	  [PROJECT_CMAKE] = "cmake",
	[PROJECT_MAKE] = "make",     [PROJECT_SCRIPT] = "script",
};

static const struct {
	const char *name;
	enum project_kind kind;
} markers[] = {
	{ "go.mod", PROJECT_GO },
	{ "Cargo.toml", PROJECT_RUST },
	{ "package.json", PROJECT_NODE },
	{ "pyproject.toml", PROJECT_PYTHON },
	{ "setup.py", PROJECT_PYTHON },
	{ "setup.cfg", PROJECT_PYTHON },
	{ "pytest.ini", PROJECT_PYTHON },
	{ "tox.ini", PROJECT_PYTHON },
	{ "requirements.txt", PROJECT_PYTHON },
	{ "meson.build", PROJECT_MESON },
	{ "CMakeLists.txt", PROJECT_CMAKE },
	{ "Makefile", PROJECT_MAKE },
	{ "makefile", PROJECT_MAKE },
	{ "GNUmakefile", PROJECT_MAKE },
};

static const struct {
	const char *name;
	unsigned flag;
} companions[] = {
	{ "pnpm-lock.yaml", PROJECT_HAS_PNPM },
	{ "yarn.lock", PROJECT_HAS_YARN },
	{ "bun.lock", PROJECT_HAS_BUN },
	{ "bun.lockb", PROJECT_HAS_BUN },
};

/* The first of a task that is there wins. */
static const struct {
	const char *path;
	enum project_task task;
} scripts[] = {
	{ "script/test", TASK_TEST },
	{ "scripts/test", TASK_TEST },
	{ "bin/test", TASK_TEST },
	{ "test.sh", TASK_TEST },
	{ "run_tests.sh", TASK_TEST },
	{ "run-tests.sh", TASK_TEST },
	{ "scripts/test.sh", TASK_TEST },
	{ "script/lint", TASK_LINT },
	{ "scripts/lint", TASK_LINT },
	{ "bin/lint", TASK_LINT },
	{ "lint.sh", TASK_LINT },
	{ "scripts/lint.sh", TASK_LINT },
	{ "script/typecheck", TASK_TYPECHECK },
	{ "scripts/typecheck", TASK_TYPECHECK },
	{ "bin/typecheck", TASK_TYPECHECK },
	{ "typecheck.sh", TASK_TYPECHECK },
	{ "scripts/typecheck.sh", TASK_TYPECHECK },
};

static struct project *project_at(struct projects *all, enum project_kind kind, struct str dir)
{
	for (size_t i = 0; i < all->n; i++) {
		if (all->p[i].kind == kind && str_is(dir, all->p[i].dir))
			return &all->p[i];
	}
	return NULL;
}

static struct project *project_add(struct projects *all, enum project_kind kind, struct str dir)
{
	struct project *p = project_at(all, kind, dir);

	if (p || all->n == PROJECTS_MAX || dir.n >= PROJECT_DIR_MAX)
		return p;
	p = &all->p[all->n++];
	*p = (struct project){ .kind = kind };
	if (dir.n > 0)
		memcpy(p->dir, dir.p, dir.n);
	return p;
}

/* "a/b/c" ends with "/b/c" or is "b/c": what stands before is the folder. */
static bool below(struct str path, const char *name, struct str *ret_dir)
{
	size_t n = strlen(name);

	if (!str_ends(path, name))
		return false;
	if (path.n > n && path.p[path.n - n - 1] != '/')
		return false;
	*ret_dir = (struct str){ path.p, path.n > n ? path.n - n - 1 : 0 };
	return true;
}

static void project_look_at(struct projects *all, struct str path)
{
	struct str dir;

	for (size_t i = 0; i < ARRAY_LEN(markers); i++) {
		if (below(path, markers[i].name, &dir))
			project_add(all, markers[i].kind, dir);
	}
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		struct project *p;

		if (!below(path, scripts[i].path, &dir))
			continue;
		p = project_add(all, PROJECT_SCRIPT, dir);
		if (p && !p->scripts[scripts[i].task].n)
			p->scripts[scripts[i].task] = str_of(scripts[i].path);
	}
}

/* Tests without a file that says where their project is: it is all of the folder. */
static void project_look_at_test(struct projects *all, struct str path)
{
	const char *slash = memrchr(path.p, '/', path.n);
	size_t at = slash ? (size_t)(slash + 1 - path.p) : 0;
	struct str name = { path.p + at, path.n - at };

	for (size_t i = 0; i < all->n; i++) {
		if (all->p[i].kind == PROJECT_PYTHON)
			return;
	}
	if (str_ends(name, ".py") && (str_starts(name, "test_") || str_is(name, "conftest.py")))
		project_add(all, PROJECT_PYTHON, STR_LIT(""));
}

static unsigned depth_of(const char *dir)
{
	unsigned n = *dir != '\0';

	for (; *dir; dir++)
		n += *dir == '/';
	return n;
}

/* Whether the folder of one holds that of the other. */
static bool holds(const struct project *up, const struct project *p)
{
	size_t n = strlen(up->dir);

	if (n == 0)
		return true;
	return strncmp(up->dir, p->dir, n) == 0 && (p->dir[n] == '/' || p->dir[n] == '\0');
}

/* A project below another of its kind is a part of that. Of two ways to build C in one folder the
 * first of the kinds counts, a Makefile beside any other kind serves that, and so does a script
 * anywhere below. */
static bool is_part(const struct projects *all, const struct project *p)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct project *up = &all->p[i];
		bool same = strcmp(up->dir, p->dir) == 0;

		if (up == p || !holds(up, p))
			continue;
		if (up->kind == p->kind ||
		    (p->kind == PROJECT_CMAKE && same && up->kind == PROJECT_MESON) ||
		    (p->kind == PROJECT_MAKE && same && up->kind < p->kind) ||
		    (p->kind == PROJECT_SCRIPT && up->kind < p->kind))
			return true;
	}
	return false;
}

static int project_order(const void *a, const void *b)
{
	const struct project *x = a, *y = b;
	unsigned dx = depth_of(x->dir), dy = depth_of(y->dir);

	if (dx != dy)
		return dx < dy ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->dir, y->dir);
}

/* Calls each() with every path, without "./". */
static void each_name(struct str names, struct projects *all,
		      void (*each)(struct projects *all, struct str path))
{
	while (names.n > 0) {
		const char *end = memchr(names.p, '\0', names.n);
		struct str path = { names.p, end ? (size_t)(end - names.p) : 0 };

		if (!end)
			return; /* it was cut */
		names = (struct str){ end + 1, names.n - path.n - 1 };
		if (str_starts(path, "./"))
			path = (struct str){ path.p + 2, path.n - 2 };
		if (path.n > 0 && path.n < PROJECT_DIR_MAX)
			each(all, path);
	}
}

static void project_accompany(struct projects *all, struct str path)
{
	struct project *p;
	struct str dir;

	for (size_t i = 0; i < ARRAY_LEN(companions); i++) {
		if (below(path, companions[i].name, &dir) &&
		    (p = project_at(all, PROJECT_NODE, dir)))
			p->has |= companions[i].flag;
	}
}

void projects_find(struct str names, struct projects *ret)
{
	struct projects *all = ret;
	bool part[PROJECTS_MAX];
	size_t n = 0;

	all->n = 0;
	each_name(names, all, project_look_at);
	each_name(names, all, project_look_at_test);
	for (size_t i = 0; i < all->n; i++)
		part[i] = is_part(all, &all->p[i]);
	for (size_t i = 0; i < all->n; i++) {
		if (!part[i])
			all->p[n++] = all->p[i];
	}
	all->n = n;
	each_name(names, all, project_accompany);
	qsort(all->p, all->n, sizeof(all->p[0]), project_order);
}

/* ---- which one ----------------------------------------------------------------------------- */

static bool is_language(enum project_kind kind, struct str language)
{
	if (!language.n || str_is(language, project_kind_names[kind]))
		return true;
	if (kind == PROJECT_NODE)
		return str_is(language, "javascript") || str_is(language, "typescript");
	return kind >= PROJECT_MESON && kind <= PROJECT_MAKE &&
	       (str_is(language, "c") || str_is(language, "c++"));
}

static int projects_several(const struct project *const *p, size_t n, struct err *e)
{
	autobuf struct buf b = BUF_INIT(160);
	struct err full;

	for (size_t i = 0; i < n; i++) {
		if (buf_addf(&b, &full, "%s%s in %s", b.n ? ", " : "",
			     project_kind_names[p[i]->kind], p[i]->dir[0] ? p[i]->dir : ".") < 0)
			break;
	}
	return err_set(e, ERR_INVALID, "several projects (%s): choose by language or path",
		       b.p ? b.p : "");
}

const struct project *projects_choose(const struct projects *all, struct str language,
				      struct str dir, struct err *e)
{
	const struct project *fit[PROJECTS_MAX];
	size_t n = 0;

	while (str_ends(dir, "/"))
		dir.n--;
	if (str_is(dir, "."))
		dir.n = 0;
	else if (str_starts(dir, "./"))
		dir = (struct str){ dir.p + 2, dir.n - 2 };
	for (size_t i = 0; i < all->n; i++) {
		const struct project *p = &all->p[i];

		if (!is_language(p->kind, language) || (dir.p && !str_is(dir, p->dir)))
			continue;
		/* They are in order of their depth. */
		if (n > 0 && depth_of(p->dir) > depth_of(fit[0]->dir))
			break;
		fit[n++] = p;
	}
	if (n == 1)
		return fit[0];
	if (n > 1)
		projects_several(fit, n, e);
	else if (language.n > 0)
		err_set(e, ERR_INVALID, "no project of language \"%.*s\" found",
			STR_CUT(language, 32));
	else
		err_set(e, ERR_INVALID,
			"no project found: go.mod, Cargo.toml, package.json, pyproject.toml, "
			"meson.build, CMakeLists.txt, Makefile or script/test");
	return NULL;
}

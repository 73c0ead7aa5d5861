/* The package of a module (modules/package.h), as clients see it, and module.update. */
#include <stdlib.h>

#include "config/package.h"
#include "modules/code/clean.h"
#include "modules/package.h"
#include "op/module/module.h"
#include "op/ops.h"

enum { TEXT_CHARS = 300, CHANGES_MAX = 200 };

#define P struct module_package
static const struct field package_fields[] = {
	FIELD(P, kind, .flags = FIELD_REQUIRED, .doc = "npm, PyPI or image."),
	FIELD(P, name, .flags = FIELD_REQUIRED, .doc = "Name of the package."),
	FIELD(P, version, .flags = FIELD_REQUIRED, .doc = "Exact version; of an image its digest."),
	FIELD(P, license, .doc = "Licence, as the publisher says."),
	FIELD(P, author, .doc = "Author, as the publisher says."),
	FIELD(P, maintainers, .doc = "Maintainers, as the registry says."),
	FIELD(P, repository, .doc = "Repository, as the publisher says."),
	FIELD(P, bytes, .flags = FIELD_REQUIRED, .doc = "Size of all files."),
	FIELD(P, files, .flags = FIELD_REQUIRED, .doc = "Number of files and directories."),
	FIELD(P, dependencies, .flags = FIELD_REQUIRED,
	      .doc = "Number of packages that it was fetched with."),
	FIELD(P, scripts, .doc = "Install scripts."),
	FIELD(P, scripts_run, .flags = FIELD_REQUIRED,
	      .doc = "The operator's file let the install scripts run. False: none has run."),
	FIELD(P, lock, .flags = FIELD_REQUIRED,
	      .doc = "Digest of the names, versions and digests of all that was fetched."),
	FIELD(P, image, .flags = FIELD_REQUIRED, .doc = "Digest of the image that it runs from."),
	FIELD(P, changes, .doc = "How it differs from the package that is approved."),
};
const struct field_table module_package_table = FIELD_TABLE(P, package_fields);
#undef P

/* ---- texts of its publisher ------------------------------------------------------------------ */

static int package_text(struct arena *a, struct str from, struct str *ret, struct err *e)
{
	autobuf struct buf b = BUF_INIT(16 << 10);

	if (!from.n)
		return 0;
	if (clean_text(&b, from, CLEAN_LINE, TEXT_CHARS, e) < 0)
		return -1;
	*ret = (struct str){ arena_dup(a, buf_str(&b), e), b.n };
	return ret->p ? 0 : -1;
}

static int package_texts(struct arena *a, const struct field_strs *from, struct field_strs *ret,
			 struct err *e)
{
	struct str *p = arena_array(a, from->n, sizeof(*p), e);

	for (size_t i = 0; p && i < from->n; i++) {
		p[i] = STR_LIT("");
		if (package_text(a, from->p[i], &p[i], e) < 0)
			return -1;
	}
	*ret = (struct field_strs){ p, from->n };
	return p ? 0 : -1;
}

/* ---- what an update changes ------------------------------------------------------------------ */

struct changes {
	struct arena *arena;
	struct str *p;
	size_t n, more; /* more: that are not listed */
	struct err *e;
};

static void change_add(struct changes *c, const char *what, struct str text)
{
	struct str clean = STR_LIT("");
	char *line;

	if (c->e->code)
		return;
	if (c->n == CHANGES_MAX) {
		c->more++;
		return;
	}
	if (package_text(c->arena, text, &clean, c->e) < 0)
		return;
	line = arena_printf(c->arena, c->e, "%s %.*s", what, STR_ARG(clean));
	if (line)
		c->p[c->n++] = str_of(line);
}

static void change_text(struct changes *c, const char *what, struct str old, struct str now)
{
	char label[64];

	if (str_eq(old, now))
		return;
	snprintf(label, sizeof(label), "- %s", what);
	change_add(c, label, old);
	snprintf(label, sizeof(label), "+ %s", what);
	change_add(c, label, now);
}

static int change_order(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static struct str *change_sorted(struct changes *c, const struct field_strs *list)
{
	struct str *p = arena_array(c->arena, list->n, sizeof(*p), c->e);

	if (!p || !list->n)
		return p;
	memcpy(p, list->p, list->n * sizeof(*p));
	qsort(p, list->n, sizeof(*p), change_order);
	return p;
}

/* What only one of two lists has. */
static void change_lists(struct changes *c, const char *what, const struct field_strs *old,
			 const struct field_strs *now)
{
	struct str *a = change_sorted(c, old), *b = change_sorted(c, now);
	char minus[32], plus[32];
	size_t i = 0, k = 0;

	snprintf(minus, sizeof(minus), "- %s", what);
	snprintf(plus, sizeof(plus), "+ %s", what);
	while (a && b && (i < old->n || k < now->n)) {
		int order = i == old->n ? 1 : k == now->n ? -1 : str_cmp(a[i], b[k]);

		if (order < 0)
			change_add(c, minus, a[i++]);
		else if (order > 0)
			change_add(c, plus, b[k++]);
		else
			i++, k++;
	}
}

static int package_changes(struct arena *a, const struct package_record *old,
			   const struct package_record *now, struct field_strs *ret, struct err *e)
{
	struct changes c = { .arena = a, .e = e };

	c.p = arena_array(a, CHANGES_MAX + 1, sizeof(*c.p), e);
	if (!c.p)
		return -1;
	change_text(&c, "version", old->version, now->version);
	change_text(&c, "author", old->author, now->author);
	change_text(&c, "license", old->license, now->license);
	change_text(&c, "repository", old->repository, now->repository);
	change_lists(&c, "maintainer", &old->maintainers, &now->maintainers);
	change_lists(&c, "script", &old->scripts, &now->scripts);
	change_lists(&c, "dependency", &old->dependencies, &now->dependencies);
	if (!e->code && c.n == 0)
		change_add(&c, "the same versions, with other files", STR_LIT(""));
	if (!e->code && c.more)
		c.p[c.n++] = str_of(arena_printf(a, e, "… and %zu more", c.more));
	*ret = (struct field_strs){ c.p, c.n };
	return e->code ? -1 : 0;
}

/* ---- what it is ------------------------------------------------------------------------------ */

static int package_fill(struct arena *a, const struct upstream_info *i, const struct package *p,
			struct module_package *ret, struct err *e)
{
	const struct package_record *r = &p->record;

	*ret = (struct module_package){ .bytes = r->bytes,
					.files = r->files,
					.dependencies = (uint32_t)r->dependencies.n,
					.scripts_run = i->server->sandbox.install_scripts };
	return package_text(a, r->kind, &ret->kind, e) < 0 ||
			       package_text(a, r->name, &ret->name, e) < 0 ||
			       package_text(a, r->version, &ret->version, e) < 0 ||
			       package_text(a, r->license, &ret->license, e) < 0 ||
			       package_text(a, r->author, &ret->author, e) < 0 ||
			       package_text(a, r->repository, &ret->repository, e) < 0 ||
			       package_text(a, r->lock, &ret->lock, e) < 0 ||
			       package_text(a, str_of(p->image), &ret->image, e) < 0 ||
			       package_texts(a, &r->maintainers, &ret->maintainers, e) < 0 ||
			       package_texts(a, &r->scripts, &ret->scripts, e) < 0
		     ? -1
		     : 0;
}

int module_packages(struct call *c, const struct upstream_info *i, struct module_info *ret,
		    struct err *e)
{
	struct arena *a = call_arena(c);
	struct config_package entry;

	if (!i->is_package || config_package_read(i->server, &entry, e) <= 0)
		return 0;
	ret->wanted = str_of(arena_printf(
		a, e, "%s %.*s%s%.*s", config_package_kind_names[entry.kind], STR_ARG(entry.name),
		entry.version.p && entry.kind == CONFIG_NPM ? "@" : "", STR_ARG(entry.version)));
	ret->has_package = i->package != NULL;
	ret->has_update = i->update != NULL;
	if (!ret->wanted.p ||
	    (i->package && package_fill(a, i, i->package, &ret->package, e) < 0) ||
	    (i->update && package_fill(a, i, i->update, &ret->update, e) < 0))
		return -1;
	return i->package && i->update ? package_changes(a, &i->package->record, &i->update->record,
							 &ret->update.changes, e)
				       : 0;
}

/* ---- module.update --------------------------------------------------------------------------- */

struct module_update_request {
	struct str module;
};
static const struct field update_fields[] = { MODULE_NAME_ROW(struct module_update_request) };
static const struct field_table update_table = FIELD_TABLE(struct module_update_request,
							   update_fields);

struct updating {
	struct call *call;
	struct upstream_fetching fetching;
};

static void update_on_done(void *owner, const struct err *err)
{
	struct updating *w = owner;
	const struct module_update_request *q = call_request(w->call);
	struct err e = err ? *err : ERR_INIT;
	struct upstream *u = err ? NULL : module_of(w->call, q->module, &e);

	call_on_cancel(w->call, NULL, NULL);
	if (u)
		module_tell(w->call, u, NULL, NULL);
	else
		call_fail(w->call, &e);
}

static void update_on_cancel(void *data)
{
	struct updating *w = data;
	struct err e;

	upstream_fetch_leave(&w->fetching);
	err_set(&e, ERR_CANCELLED, "the package is fetched on");
	call_fail(w->call, &e);
}

static void update_run(struct call *c, const void *request)
{
	const struct module_update_request *q = request;
	struct err e = ERR_INIT;
	struct updating *w = arena_alloc(call_arena(c), sizeof(*w), &e);
	struct upstream *u = w ? module_to_decide(c, q->module, &e) : NULL;
	int rc;

	if (w)
		*w = (struct updating){ .call = c,
					.fetching = { .on_done = update_on_done, .owner = w } };
	rc = u ? upstream_fetch_start(u, &w->fetching, &e) : -1;
	if (rc < 0)
		call_fail(c, &e);
	else if (rc > 0)
		module_tell(c, u, NULL, NULL); /* there is nothing to fetch */
	else
		call_on_cancel(c, update_on_cancel, w);
}

const struct op module_update_op = {
	.action = "module.update",
	.doc = "Fetches the package that a module's entry names, for module.approve. What was "
	       "approved runs until then.",
	.effect = OP_ADMINISTER,
	.request = &update_table,
	.result = &module_info_table,
	.expand = module_expand,
	.run = update_run,
};

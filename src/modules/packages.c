/*
 * The packages of modules: what each runs, what was fetched for it, and which images of them are
 * still needed. A row of the registry names the images of a module, and no image that a row names
 * is removed (store_keeps_image()).
 */
#include "base/log.h"
#include "config/package.h"
#include "modules/internal.h"
#include "modules/verb.h"

enum { WANTED_MAX = 8 << 10, SWEEP_SECONDS = 300, SWEPT_MAX = 32 /* at once */ };

int packages_wanted(const struct upstream *u, struct err *e)
{
	autobuf struct buf text = BUF_INIT(WANTED_MAX);

	return package_wanted(u->server, &text, e);
}

/* ---- what it runs ---------------------------------------------------------------------------- */

/* The digest of what the entry wants. 1; 0: it runs no package. */
static int packages_for(const struct upstream *u, char ret[HASH_HEX + 1], struct err *e)
{
	autobuf struct buf text = BUF_INIT(WANTED_MAX);
	int is = package_wanted(u->server, &text, e);

	return is <= 0 ? is : hash_of(buf_str(&text), ret, e) < 0 ? -1 : 1;
}

/* NULL where there is none, where it is another than the entry wants, or where its files are not
 * there: then it has to be fetched. */
static struct package *packages_open(const struct upstream *u, const struct upstream_image *image)
{
	char wanted[HASH_HEX + 1];
	struct err e = ERR_INIT;
	struct package *p;

	if (!image->digest[0] || !hub_images(u->all->hub) || packages_for(u, wanted, &e) <= 0)
		return NULL;
	if (image->for_entry[0] && strcmp(image->for_entry, wanted) != 0)
		return NULL;
	p = package_open(hub_images(u->all->hub), str_of(image->digest), u->server, &e);
	if (!p)
		log_warn("module %s: %s", u->name, e.msg);
	return p;
}

void packages_fit(struct upstream *u)
{
	package_unref(take_ptr(u->package));
	package_unref(take_ptr(u->update));
	u->package = packages_open(u, &u->package_image);
	u->update = packages_open(u, &u->update_image);
}

int packages_target(const struct package *p, const struct config_server *s, struct config_target *t,
		    struct err *e)
{
	const struct package_record *r = &p->record;
	struct config_package entry;
	const char **argv;
	size_t n = 0;

	if (config_package_read(s, &entry, e) <= 0)
		return err_set(e, ERR_BUG, "its entry runs no package");
	argv = arena_array(&t->lists, r->program.n + r->arguments.n + s->args.n + 1, sizeof(*argv),
			   e);
	if (!argv)
		return -1;
	/* The package outlives the connection's target. */
	for (size_t i = 0; i < r->program.n; i++)
		argv[n++] = r->program.p[i].p;
	for (size_t i = 0; entry.rest == s->args.n && i < r->arguments.n; i++)
		argv[n++] = r->arguments.p[i].p;
	for (size_t i = entry.rest; i < s->args.n; i++)
		argv[n++] = t->argv[1 + i];
	if (n == 0)
		return err_set(e, ERR_INVALID,
			       "the image does not say what it runs: name the program behind it");
	t->argv = argv;
	return 0;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* Whether there is nothing new in what was fetched: then what is approved stays. Both are what the
 * entry wants now. */
static bool packages_same(const struct package *a, const struct package *b)
{
	return a && str_eq(a->record.lock, b->record.lock) &&
	       str_eq(a->record.version, b->record.version);
}

static int packages_put(struct upstream *u, const char *image, struct err *e)
{
	struct upstream_image was = u->update_image, now = { .digest = "" };
	char wanted[HASH_HEX + 1] = "";
	struct package *got;

	if (packages_for(u, wanted, e) <= 0 || strcmp(wanted, u->fetch_for) != 0)
		return err_set(e, ERR_CONFLICT, "the entry of module %s is another now", u->name);
	got = package_open(hub_images(u->all->hub), str_of(image), u->server, e);
	if (!got)
		return -1;
	memcpy(now.digest, got->image, sizeof(now.digest));
	memcpy(now.for_entry, wanted, sizeof(now.for_entry));
	u->update_image = packages_same(u->package, got) ? (struct upstream_image){ .digest = "" }
							 : now;
	package_unref(got);
	if (grant_write(u, e) < 0) {
		u->update_image = was;
		return -1;
	}
	packages_fit(u);
	grant_digest(u);
	upstreams_changed(u->all);
	return 0;
}

static void packages_on_fetched(void *owner, const char *image, const struct err *err)
{
	struct upstream *u = owner;
	struct upstreams *all = u->all;
	struct upstream_fetching *f = take_ptr(u->fetching);
	struct err e = ERR_INIT;

	u->fetch = NULL;
	all->fetching--;
	if (err)
		e = *err;
	else if (u->is_gone)
		err_set(&e, ERR_MODULE_NOT_FOUND, "there is no module %s any more", u->name);
	else
		packages_put(u, image, &e);
	if (f)
		f->on_done(f->owner, e.code ? &e : NULL);
	upstream_try_free(u);
	packages_sweep(all);
	all->open--;
	upstreams_try_close(all);
}

int upstream_fetch_start(struct upstream *u, struct upstream_fetching *f, struct err *e)
{
	const struct package_fetch_spec spec = { .loop = u->all->loop,
						 .images = hub_images(u->all->hub),
						 .config = u->config,
						 .server = u->server,
						 .options = u->all->build,
						 .on_done = packages_on_fetched,
						 .owner = u };
	char wanted[HASH_HEX + 1];
	int is = packages_for(u, wanted, e);

	if (is <= 0)
		return is < 0 ? -1 : 1;
	if (u->fetch)
		return err_set(e, ERR_CONFLICT, "the package of module %s is being fetched",
			       u->name);
	if (!hub_images(u->all->hub))
		return err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder has packages");
	u->fetch = package_fetch_start(&spec, e);
	if (!u->fetch)
		return -1;
	memcpy(u->fetch_for, wanted, sizeof(u->fetch_for));
	f->of = u;
	u->fetching = f;
	u->all->open++;
	u->all->fetching++;
	return 0;
}

void upstream_fetch_leave(struct upstream_fetching *f)
{
	if (f->of->fetching == f)
		f->of->fetching = NULL;
}

/* ---- what is not needed any more ------------------------------------------------------------- */

struct sweep {
	const struct upstreams *all;
	struct str left[SWEPT_MAX]; /* modules that are not in the file any more, and have images */
	size_t n_left;
	struct str names[SWEPT_MAX];
	size_t n;
	struct str digests[IMAGES_MAX]; /* that rows have */
	size_t n_digests;
	struct arena *arena;
};

static bool sweep_is_there(const struct upstreams *all, struct str name)
{
	const struct upstream *u = all->first;
	struct err off;

	while (u && !str_is(name, u->name))
		u = u->next;
	return u || upstreams_check(all, &off) < 0; /* then none is, and all come back */
}

static int sweep_row(void *arg, const struct store_module *r, struct err *e)
{
	const struct str images[] = { r->package, r->update };
	struct sweep *s = arg;

	if (!sweep_is_there(s->all, r->name)) {
		if ((!r->package.n && !r->update.n) || s->n_left == SWEPT_MAX)
			return 0;
		s->left[s->n_left] = (struct str){ arena_dup(s->arena, r->name, e), r->name.n };
		return s->left[s->n_left++].p ? 0 : -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(images); i++) {
		if (!images[i].n || s->n_digests == IMAGES_MAX)
			continue;
		s->digests[s->n_digests] = (struct str){ arena_dup(s->arena, images[i], e),
							 images[i].n };
		if (!s->digests[s->n_digests++].p)
			return -1;
	}
	return 0;
}

static bool sweep_has(const struct sweep *s, struct str digest)
{
	for (size_t i = 0; i < s->n_digests; i++) {
		if (str_eq(s->digests[i], digest))
			return true;
	}
	return false;
}

static int sweep_names(struct sweep *s, const struct image_names *names, struct err *e)
{
	for (size_t i = 0; i < names->n && s->n < SWEPT_MAX; i++) {
		struct str name = names->p[i].name;

		if (!str_starts(name, PACKAGE_IMAGES) || sweep_has(s, names->p[i].digest))
			continue;
		s->names[s->n] = (struct str){ arena_dup(s->arena, name, e), name.n };
		if (!s->names[s->n++].p)
			return -1;
	}
	return 0;
}

static void sweep_on_done(void *arg, const struct verb_end *end)
{
	struct upstreams *all = arg;

	all->sweeping = NULL;
	if (all->sweep_again)
		packages_sweep(all);
	all->open--;
	upstreams_try_close(all);
}

/* What runs is kept by its sandbox's lock, and what a row has by the row: so `holt images rm`
 * refuses it, whatever this thinks. */
static int sweep_start(struct upstreams *all, struct sweep *s, struct err *e)
{
	AUTO(images_close) struct images *store = images_look(hub_images(all->hub), e);
	autodoc struct image_doc doc = { NULL, NULL };
	const char *words[SWEPT_MAX + 3] = { "images", "rm" };
	struct image_names names;

	if (!store)
		return e->code == ERR_TEMPLATE_NOT_FOUND ? 0 : -1;
	if (store_modules(hub_store(all->hub), sweep_row, s, e) < 0)
		return -1;
	for (size_t i = 0; i < s->n_left; i++) {
		if (store_module_let_go(hub_store(all->hub), s->left[i], e) < 0)
			return -1;
	}
	if (images_names(store, &doc, &names, e) < 0 || sweep_names(s, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++)
		words[2 + i] = s->names[i].p;
	if (s->n == 0)
		return 0;
	all->sweeping = verb_run_start(hub_loop(all->hub), words, SWEEP_SECONDS, sweep_on_done, all,
				       e);
	all->open += all->sweeping != NULL;
	return all->sweeping ? 0 : -1;
}

/* Not while something is fetched: its image has a name before a row has it. */
void packages_sweep(struct upstreams *all)
{
	struct err e = ERR_INIT;
	struct sweep *s;

	all->sweep_again = all->sweeping;
	if (all->closing || all->fetching || all->sweeping || !hub_images(all->hub) ||
	    !hub_store(all->hub))
		return;
	s = calloc(1, sizeof(*s));
	if (s) {
		s->all = all;
		s->arena = arena_new(4 << 20);
	}
	if (s && s->arena && sweep_start(all, s, &e) < 0)
		log_warn("packages that are not needed any more: %s", e.msg);
	if (s)
		arena_free(s->arena);
	free(s);
}

void packages_close(struct upstreams *all)
{
	for (struct upstream *u = all->first; u; u = u->next) {
		if (u->fetch)
			package_fetch_cancel(u->fetch);
	}
	for (struct upstream *u = all->gone; u; u = u->next) {
		if (u->fetch)
			package_fetch_cancel(u->fetch);
	}
	if (all->sweeping)
		verb_run_cancel(all->sweeping);
}

#include "cli/agent/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/images/store.h"
#include "modules/registry.h"

struct fetching {
	bool done;
	struct err err; /* code ERR_NONE: it was fetched */
};

static void fetching_on_done(void *owner, const char *image, const struct err *e)
{
	struct fetching *f = owner;

	f->done = true;
	if (e)
		f->err = *e;
}

static void fetch_tell_registry(const struct agent_fetch *f)
{
	struct registry r = { .n_hosts = 0 };
	struct err ignored;

	if (registry_read(CONFIG_NPM, &r, &ignored) == 0) {
		fputs("fetching ", stderr);
		safe_short(stderr, f->package, 120);
		fprintf(stderr, " from %s ...\n", r.url);
	}
	registry_fini(&r);
}

static int fetch_wait(const struct package_fetch_spec *spec, struct fetching *f, struct err *e)
{
	if (!package_fetch_start(spec, e))
		return -1;
	while (!f->done && uv_run(spec->loop, UV_RUN_ONCE))
		;
	while (uv_run(spec->loop, UV_RUN_DEFAULT))
		;
	if (!f->err.code)
		return 0;
	*e = f->err;
	return -1;
}

int agent_fetch(const struct agent_fetch *f, struct err *e)
{
	struct fetching wait = { .done = false, .err = ERR_INIT };
	char images[PATH_MAX], image[IMAGE_NAME_MAX + 1], name[80];
	AUTO(images_close) struct images *store = image_cli_open(e);
	struct package_fetch_spec spec = { .images = images,
					   .image = image,
					   .config = f->config,
					   .on_done = fetching_on_done,
					   .owner = &wait };
	struct config_server entry;
	struct str words[4];
	uv_loop_t loop;
	int rc;

	snprintf(name, sizeof(name), "agent.%.*s", STR_CUT(f->program, 64));
	agent_package_entry(str_of(name), f->package, f->program, f->scripts, words, &entry);
	spec.server = &entry;
	if (!store || home_file("images", images, e) < 0 ||
	    agent_image_name(f->prefix, f->package, f->program, image, e) < 0)
		return -1;
	if (uv_loop_init(&loop) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	spec.loop = &loop;
	fetch_tell_registry(f);
	rc = fetch_wait(&spec, &wait, e);
	uv_loop_close(&loop);
	return rc;
}

struct package *agent_fetched(const char *prefix, struct str package, struct str program,
			      struct err *e)
{
	autoimage struct image image = { .record = { .bytes = 0 } };
	char name[IMAGE_NAME_MAX + 1], images[PATH_MAX];
	struct err none = ERR_INIT;

	if (agent_image_name(prefix, package, program, name, e) < 0 ||
	    home_where("images", images, e) < 0 || image_cli_look(str_of(name), &image, &none) < 0)
		return NULL;
	return agent_package_open(images, image.record.digest, package, program, e);
}

bool agent_fetch_ran_scripts(const struct package *p)
{
	static const char with[] = " with install scripts";
	struct str wanted = p->record.wanted;

	return wanted.n && memmem(wanted.p, wanted.n, with, sizeof(with) - 1);
}

void agent_fetch_tell(const struct package *p)
{
	const struct package_record *r = &p->record;
	char size[16];

	image_cli_size(r->bytes, size);
	safe_line(stdout, r->name);
	putchar(' ');
	safe_line(stdout, r->version);
	printf(": %s, %zu packages it depends on, lock %.12s\n", size, r->dependencies.n,
	       r->lock.p);
	if (!r->scripts.n)
		return;
	fputs(agent_fetch_ran_scripts(p) ? "  install scripts, which ran in the sandbox: "
					 : "  install scripts, which did not run: ",
	      stdout);
	for (size_t i = 0; i < r->scripts.n && i < 8; i++) {
		fputs(i ? "; " : "", stdout);
		safe_short(stdout, r->scripts.p[i], 120);
	}
	puts(r->scripts.n > 8 ? "; ..." : "");
}
